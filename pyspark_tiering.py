"""Spark looks for a module of this name when it is asked for the format `tiering`: no registration is needed."""

from spark_jobs.source.data_source import TieringDataSource as DefaultSource

__all__ = ["DefaultSource"]
