"""One segment without a log around it."""

from pathlib import Path

from small_logs import Clock, small_config

from local_log.engine.config import LogConfig
from local_log.engine.segment import Segment
from local_log.os_disk import OsWritableDisk


def segment(folder: Path, base_offset: int = 40, config: LogConfig | None = None, clock: Clock | None = None) -> Segment:
    return Segment(OsWritableDisk(), str(folder), base_offset, config or small_config(), clock or Clock())


def found_offset(one: Segment, offset: int) -> int | None:
    found = one.translate(offset)
    return None if found is None else found.offset
