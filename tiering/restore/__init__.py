"""Restores archived partitions as a log directory that a broker starts on: plan, segments, and the names that make it whole."""
