"""Kafka's protocol over both tiers: what `tiering serve` answers to any Kafka client."""
