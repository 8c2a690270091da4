"""Kafka's on-disk formats: bytes in, values out. No file, no clock, no thread."""
