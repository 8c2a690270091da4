"""Kafka's storage engine: what its `UnifiedLog` does with the same input, down to the bytes of every file."""
