"""Spark over the archive: a data source and the jobs that reread it."""
