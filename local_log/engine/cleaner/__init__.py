"""Compacts a log: keeps the last record of each key (Kafka's LogCleaner). `clean` does one round over one log."""

from local_log.engine.cleaner.cleaning import clean
from local_log.engine.cleaner.offset_map import OffsetMap

__all__ = ["OffsetMap", "clean"]
