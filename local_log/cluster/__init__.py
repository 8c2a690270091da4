"""The cluster's metadata as a broker has it on disk: the log and the snapshots of `__cluster_metadata-0`."""
