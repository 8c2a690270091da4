"""One archived segment as a manifest or a page names it: its two objects, their parts and encoding. Sizes are bytes, times ms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from local_log.formats.checkpoints import EpochEntry
from remote.manifest.gaps import NO_FIELDS

IDENTITY = "identity"

ZSTD = "zstd"

OFFSET_INDEX = "offset_index"

TIME_INDEX = "time_index"

TRANSACTION_INDEX = "transaction_index"

ABORTED_LATER = "aborted_later"

LEAST_TIME_INDEX = "least_time_index"

PRODUCER_SNAPSHOT = "producer_snapshot"

LEADER_EPOCH_CHECKPOINT = "leader_epoch_checkpoint"


class SegmentState(StrEnum):
    """Kafka's RemoteLogSegmentState, and what each state is in the archive.

    COPY_SEGMENT_STARTED      objects that no manifest names: a copy is under way, or has failed
    COPY_SEGMENT_FINISHED     an entry, in the manifest or in a page
    DELETE_SEGMENT_STARTED    in `deleting`: new reads do not use it, its objects still exist
    DELETE_SEGMENT_FINISHED   its objects are deleted, and the manifest does not name it
    """

    copy_started = "COPY_SEGMENT_STARTED"
    copy_finished = "COPY_SEGMENT_FINISHED"
    delete_started = "DELETE_SEGMENT_STARTED"
    delete_finished = "DELETE_SEGMENT_FINISHED"


@dataclass(frozen=True, slots=True)
class AuxRange:
    """Bytes `[start, end)` of an aux object and their CRC-32C, so that one part can be read and trusted alone."""

    start: int
    end: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class EncodingInfo:
    """How the objects of an entry whose encoding is not IDENTITY hold its segment (see `remote.transforms`).

    Sizes and CRC-32C are those of the objects as they are stored; the entry's own speak of the segment. `chunk_index` is that of
    the `.log` object, in base64; the aux object has a chunk for each of `aux_ranges`, and `aux_lengths` are the bytes that they
    take there. What is not encrypted has no `key_id`, `wrapped_key` and `nonce` (both base64): they are "".
    """

    chunk_index: str
    aux_lengths: tuple[int, ...]
    log_size: int
    log_crc32c: int
    aux_size: int
    aux_crc32c: int
    key_id: str = ""
    wrapped_key: str = ""
    nonce: str = ""
    unknown: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)


@dataclass(frozen=True, slots=True)
class StoredObject:
    """An object as the store has it: its name, its size and its CRC-32C."""

    name: str
    size: int
    crc32c: int


@dataclass(frozen=True, slots=True)
class SegmentEntry:
    """One archived segment: its `.log` object, byte for byte, and the `.aux` object with everything that lay beside it.

    Sizes, CRC-32C and ranges are those of the segment and its parts, whatever `encoding` made of them: the objects' own are in
    `stored_log` and `stored_aux`.

    `end_offset` is where the next segment starts: past `last_offset` when compaction or a control record left nothing there.
    `aux_ranges` names the parts of the aux object; parts that the segment did not have are missing. ABORTED_LATER holds, in
    the form of a transaction index, the aborted transactions with records here whose marker lies in a later segment, and
    LEAST_TIME_INDEX where times have passed (`remote.segment.times`). `min_timestamp_ms` is None where it is not known: in
    entries from before there was one, and where a batch's records cannot be read.
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
    encoded: EncodingInfo | None = None
    min_timestamp_ms: int | None = None
    unknown: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)

    @property
    def is_encrypted(self) -> bool:
        """Whether what it holds must lie nowhere in the clear; an encoding that we do not know counts as one that hides it."""
        return self.encoding not in (IDENTITY, ZSTD)

    @property
    def is_compacted(self) -> bool:
        """Whether it has fewer records than offsets: control records count, so nothing but compaction has taken them."""
        return self.record_count < self.end_offset - self.base_offset

    @property
    def written_ms(self) -> int:
        """Its greatest timestamp; where messages have none, when it was archived (Kafka asks when the file was last written)."""
        return self.max_timestamp_ms if self.max_timestamp_ms >= 0 else self.copied_at_ms

    @property
    def stored_log(self) -> StoredObject:
        """The `.log` object."""
        of = self.encoded or self
        return StoredObject(self.log_name, of.log_size, of.log_crc32c)

    @property
    def stored_aux(self) -> StoredObject:
        """The `.aux` object."""
        of = self.encoded or self
        return StoredObject(self.aux_name, of.aux_size, of.aux_crc32c)
