"""Reads over both tiers: records, coverage by offset and time, and the time up to which a topic is archived."""
