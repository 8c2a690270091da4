"""A log's producers: their states, the manager with its snapshots, and the replay from the log."""
