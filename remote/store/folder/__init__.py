"""A folder of this machine as an object store."""
