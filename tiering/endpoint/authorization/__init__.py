"""What a client may do: Kafka's access control lists."""
