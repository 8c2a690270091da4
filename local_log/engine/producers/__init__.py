"""What a log knows of its producers: their states, the manager that keeps and snapshots them, and their replay from the log."""
