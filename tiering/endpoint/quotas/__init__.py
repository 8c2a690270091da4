"""How many bytes a second clients may fetch (Kafka's client quotas)."""
