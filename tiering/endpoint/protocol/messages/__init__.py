"""The messages of each API, as the schemas of Kafka 4.3 define them. One module an API."""
