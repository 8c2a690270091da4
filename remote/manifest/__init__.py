"""The manifest of a partition: what its archive holds. Immutable versions in a chain, committed by put-if-absent."""
