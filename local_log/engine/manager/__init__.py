"""Manages the logs of all directories in log.dirs: startup, maintenance, retention, shutdown (Kafka's LogManager)."""
