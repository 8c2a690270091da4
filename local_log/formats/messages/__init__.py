"""The message formats before record batches: magic 0 and 1, and Kafka 0.7's."""
