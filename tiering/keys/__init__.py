"""The keys of an encrypted archive: rotation."""
