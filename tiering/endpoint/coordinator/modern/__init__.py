"""Consumer groups of KIP-848, whose partitions the coordinator assigns (Kafka's package `modern.consumer`)."""
