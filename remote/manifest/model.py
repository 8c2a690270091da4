"""The manifest as values. Offsets are Kafka's; times are ms; sizes are bytes; ranges are `[start, end)`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from local_log.formats.checkpoints import EpochEntry
from remote.object_keys import PartitionPath

IDENTITY = "identity"

OFFSET_INDEX = "offset_index"
TIME_INDEX = "time_index"
TRANSACTION_INDEX = "transaction_index"
ABORTED_LATER = "aborted_later"
PRODUCER_SNAPSHOT = "producer_snapshot"
LEADER_EPOCH_CHECKPOINT = "leader_epoch_checkpoint"

_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class AuxRange:
    """Bytes `[start, end)` of an aux object and their CRC-32C, so that one part can be read and trusted alone."""

    start: int
    end: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """One archived segment: its `.log` object, byte for byte, and the `.aux` object with everything that lay beside it.

    `end_offset` is where the next segment starts: past `last_offset` when compaction or a control record left nothing there.
    `aux_ranges` names the parts of the aux object; parts that the segment did not have are missing. ABORTED_LATER holds, in
    the form of a transaction index, the aborted transactions with records here whose marker lies in a later segment.
    `unknown` are fields that a newer writer has put here.
    """

    segment_id: str
    base_offset: int
    end_offset: int
    last_offset: int
    max_timestamp_ms: int
    record_count: int
    leader_epochs: tuple[EpochEntry, ...]
    log_name: str
    log_size: int
    log_crc32c: int
    aux_name: str
    aux_size: int
    aux_crc32c: int
    aux_ranges: Mapping[str, AuxRange]
    txn_index_empty: bool
    encoding: str
    copied_at_ms: int
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets `[start, end)` that the archive knows it does not have, why, and since when."""

    start: int
    end: int
    reason: str
    noticed_at_ms: int
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version. Version 0 is the partition that nobody has archived yet; it is never stored.

    `parent_sha256` is the hash of the stored bytes of version - 1, "" for version 1. `put_id` is new for every commit, so
    that a writer whose answer was lost knows its own. `local_log_start_offsets` is by source (a log directory's id), as last
    seen. `entries` are in the order of their base offsets.
    """

    topic: str
    topic_id: str
    partition: int
    version: int
    parent_sha256: str
    put_id: str
    writer: str
    writer_epoch: int
    committed_at_ms: int
    log_start_offset: int
    local_log_start_offsets: Mapping[str, int]
    leader_epochs: tuple[EpochEntry, ...]
    entries: tuple[SegmentEntry, ...]
    gaps: tuple[Gap, ...]
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    @property
    def path(self) -> PartitionPath:
        """Where the partition lies in the archive."""
        return PartitionPath(self.topic, self.topic_id, self.partition)

    @property
    def end_offset(self) -> int:
        """The offset after the last archived one; the log start offset where nothing is archived."""
        return max((e.end_offset for e in self.entries), default=self.log_start_offset)


def never_archived(topic: str, topic_id: str, partition: int, log_start_offset: int) -> Manifest:
    """Version 0 of a partition whose log starts at `log_start_offset`."""
    return Manifest(topic, topic_id, partition, 0, "", "", "", 0, 0, log_start_offset, {}, (), (), ())


def missing_ranges(manifest: Manifest) -> tuple[tuple[int, int], ...]:
    """The ranges between the log start offset and the end offset that no entry covers, in order."""
    missing = []
    covered = manifest.log_start_offset
    for entry in manifest.entries:
        if entry.base_offset > covered:
            missing.append((covered, entry.base_offset))
        covered = max(covered, entry.end_offset)
    return tuple(missing)


def covers(manifest: Manifest, start: int, end: int) -> bool:
    """Whether entries hold all offsets of `[start, end)`, as far as they are not below the log start offset."""
    start = max(start, manifest.log_start_offset)
    return start >= end or (end <= manifest.end_offset and not any(a < end and b > start for a, b in missing_ranges(manifest)))
