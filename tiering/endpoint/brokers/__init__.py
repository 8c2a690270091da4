"""Which brokers answer for an archive together, and which of them leads a partition."""
