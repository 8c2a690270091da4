"""Segments as the uploader takes them: changed, copied and refused."""

from dataclasses import replace

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from made_manifests import PATH

from local_log.errors import Corrupt
from remote.manifest.segment_entry import SegmentEntry
from remote.segment.check import LogSegmentData, check_beside, check_log
from remote.segment.repair import checked_copy
from remote.segment.upload import copy_segment
from remote.store.api import ObjectStore

PARTITIONS = ("g-txn-0", "g-codec-lz4-0", "g-compacted-txn-0", "g-trimmed-0", "g-big-0")


def with_body(segment: LogSegmentData, body: bytes | bytearray) -> LogSegmentData:
    return replace(segment, size=len(body), read=lambda start, end: bytes(body[start:end]))


def copy(store: ObjectStore, segment: LogSegmentData) -> SegmentEntry:
    return copy_segment(store, PATH, checked_copy(segment), FixedClock(), CountingIds())


def refused(segment: LogSegmentData) -> Corrupt:
    """The finding for which a segment is refused before anything is written."""
    store = MemoryStore()
    with pytest.raises(Corrupt) as raised:
        copy(store, segment)
    assert store.calls == []
    return raised.value


def found_beside(segment: LogSegmentData) -> Corrupt:
    """The finding in one of the files beside a segment's log."""
    checked = check_log(segment)
    with pytest.raises(Corrupt) as raised:
        check_beside(checked)
    return raised.value


def flipped(body: bytes, position: int, bit: int = 0) -> bytearray:
    damaged = bytearray(body)
    damaged[position] ^= 1 << bit
    return damaged
