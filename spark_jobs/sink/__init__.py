"""Rows to archived segments. What executors load of it imports `remote` and `local_log.formats` and nothing else of ours."""
