"""The records of a log as its consumers should get them, read from its committed batches without the code under test."""

import struct
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from local_log.engine.memory_records import batch_at
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from remote.manifest.model import Manifest
from simulated.judge import Log

_BASE_TIMESTAMP_AT, _COUNT_AT = 27, 57


class Row(NamedTuple):
    """A record; its time is in milliseconds."""

    offset: int
    time: int
    value: bytes | None


@lru_cache(maxsize=4_096)
def records_of(body: bytes) -> tuple[Row, ...]:
    """The records of a batch that is not compressed."""
    base = int.from_bytes(body[:8])
    (first_time,), (count,) = struct.unpack_from(">q", body, _BASE_TIMESTAMP_AT), struct.unpack_from(">i", body, _COUNT_AT)
    at, found = BATCH_HEADER_BYTES, list[Row]()
    for _ in range(count):
        size, at = _varint(body, at)
        end = at + size
        time, at = _varint(body, at + 1)  # after the attributes
        offset, at = _varint(body, at)
        _, at = _bytes(body, at)
        value, _ = _bytes(body, at)
        found.append(Row(base + offset, first_time + time, value))
        at = end
    return tuple(found)


def rows_of(log: Log, start: int, end: int, *, committed: bool) -> list[Row]:
    """The records of `[start, end)` that applications see: no markers, and of aborted transactions only who reads uncommitted."""
    ends: dict[int, list[int]] = {}
    for offset, producer in sorted(log.ended.items()):
        ends.setdefault(producer, []).append(offset)
    found: list[Row] = []
    for base, body in sorted(log.committed.items()):
        if base >= end:
            break
        batch = batch_at(body, 0)
        if batch.last_offset < start or batch.is_control:
            continue
        if committed and batch.is_transactional:
            ended = next((offset for offset in ends.get(batch.producer_id, ()) if offset > base), None)
            if ended in log.aborted:
                continue
        found += [row for row in records_of(body) if start <= row.offset < end]
    return found


def markers_in(log: Log, start: int, end: int) -> int:
    """How many records of `[start, end)` applications never see."""
    return sum(start <= offset < end for offset in log.ended)


def without_gaps(rows: Iterable[Row], manifest: Manifest) -> list[Row]:
    """Those that a version of the archive has."""
    gaps = [(gap.start, gap.end) for gap in manifest.gaps]
    return [row for row in rows if not any(start <= row.offset < end for start, end in gaps)]


def _varint(body: bytes, at: int) -> tuple[int, int]:
    raw = shift = 0
    while True:
        byte = body[at]
        at += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            return (raw >> 1) ^ -(raw & 1), at
        shift += 7


def _bytes(body: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(body, at)
    return (None, at) if size < 0 else (body[at : at + size], at + size)
