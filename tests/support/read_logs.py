"""Logs as their readers open them: golden ones, and ones of bytes that are made by hand."""

from collections.abc import Callable
from pathlib import Path

from local_log.formats.filenames import TopicPartition, offset_file
from local_log.formats.visible_records import record_batches
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader, open_log
from local_log.os_disk import OsDisk

NAMED = TopicPartition("orders", 0)


def golden(logs: Path, name: str) -> LogReader:
    return next(log for log in LogDir(OsDisk(), str(logs)).logs() if str(log.partition) == name)


def offsets_of(log: LogReader, start: int, end: int, *, committed: bool = False) -> list[int]:
    aborted = log.aborted(start, end) if committed else ()
    batches = record_batches(log.chunks(start, end), start, end, aborted)
    return [offset for records in batches for offset in records.column("offset").to_pylist()]


def hand_made(folder: Path, *logs: tuple[int, bytes]) -> Callable[..., LogReader]:
    for base, data in logs:
        (folder / offset_file(base, ".log")).write_bytes(data)
    return lambda start=None, high_watermark=None: open_log(OsDisk(), str(folder), NAMED, start, high_watermark)


def break_(file: Path) -> None:
    file.write_bytes(file.read_bytes() + b"x")
