"""Reads over both tiers: records, coverage by offset and time, and how far in time an archive has a topic."""
