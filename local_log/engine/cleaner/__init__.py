"""Compacts a log: keeps the last record of each key (Kafka's LogCleaner). `dirty_part` says what is to be
cleaned and whether it is time to, `clean` does one round over one log."""

from local_log.engine.cleaner.cleaning import clean
from local_log.engine.cleaner.dirty import DirtyPart, dirty_part
from local_log.engine.cleaner.swap import CleaningAborted
from local_log.formats.offset_map import OffsetMap

__all__ = ["CleaningAborted", "DirtyPart", "OffsetMap", "clean", "dirty_part"]
