"""Messages of Kafka's protocol as values: bytes in and out, without connections."""
