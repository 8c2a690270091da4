"""Fetches that are repeated, answered by a compiled loop. What it does not know Python answers, with the same bytes."""
