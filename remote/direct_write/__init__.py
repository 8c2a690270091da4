"""Writes a topic straight to the archive, without a local log: segments first, then one commit over all partitions."""
