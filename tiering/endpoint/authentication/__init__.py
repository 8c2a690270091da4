"""Who a client is: SASL as Kafka has it, without sockets."""
