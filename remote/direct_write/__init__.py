"""Writes a topic directly to the archive, without a local log: first the segments, then one commit for all partitions."""
