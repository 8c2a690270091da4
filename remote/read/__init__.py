"""Reads archived segments: fetch plan, read-ahead, caches, and the log that joins them."""
