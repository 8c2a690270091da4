"""Tools for log directories: dump, recover, truncate, import."""
