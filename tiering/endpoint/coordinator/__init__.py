"""Consumer groups: what they commit is kept in the topic `__consumer_offsets`, as Kafka's group coordinator keeps it."""
