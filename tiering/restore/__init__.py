"""Restores archived partitions into a log directory that a broker can start on."""
