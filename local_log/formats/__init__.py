"""Kafka's on-disk formats: pure functions from bytes to values and back. No files, no clock, no threads."""
