"""Checks whether a store meets the requirements of an archive."""
