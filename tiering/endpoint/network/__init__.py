"""Connections as a state machine: bytes in, frames and decisions out, without sockets and clocks."""
