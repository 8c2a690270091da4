"""Key management of an encrypted archive: rotation."""
