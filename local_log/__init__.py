"""The local tier: a Kafka log directory, byte for byte."""
