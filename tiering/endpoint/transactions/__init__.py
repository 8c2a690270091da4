"""Producer ids and transactions (KIP-98, KIP-360, KIP-447, KIP-890), kept in `__transaction_state` in Kafka's own format."""
