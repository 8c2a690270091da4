"""A KRaft cluster's metadata, read from a broker's copy of `__cluster_metadata-0`: the log and its snapshots."""
