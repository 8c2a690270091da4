"""Kafka's storage engine: for the same input it writes the same bytes to every file as Kafka's `UnifiedLog`."""
