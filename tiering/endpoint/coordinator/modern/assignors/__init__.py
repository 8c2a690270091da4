"""The assignors of consumer groups: who is to read which partitions."""
