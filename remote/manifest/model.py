"""The manifest as values. Offsets are Kafka's; times are ms; sizes are bytes; ranges are `[start, end)`.

The newest entries stand in the manifest itself, the older ones in pages that it refers to: a page of level 0 holds entries, one
of level n refs of level n - 1. What reads entries asks `Entries`, which knows where they are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from local_log.formats.checkpoints import EpochEntry
from local_log.ranges import joined, uncovered
from remote.keys import PartitionPath
from remote.manifest.gaps import Divergence, Gap

IDENTITY = "identity"
ZSTD = "zstd"

OFFSET_INDEX = "offset_index"
TIME_INDEX = "time_index"
TRANSACTION_INDEX = "transaction_index"
ABORTED_LATER = "aborted_later"
LEAST_TIME_INDEX = "least_time_index"
PRODUCER_SNAPSHOT = "producer_snapshot"
LEADER_EPOCH_CHECKPOINT = "leader_epoch_checkpoint"

_NOTHING: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Limits:
    """How much stands in one manifest, and in one page.

    At most `inline_max` entries are in the manifest itself; a page takes `page_entries` of them. At most `fan_out` refs of each
    level are in the manifest, or as many in a page; a page that late entries fall into may grow to twice its size. At most
    `deleting_max` items are being deleted. The fan-out is wide, so that of a million segments each is one page away: a read of
    an old record then costs 5 requests (listing, manifest, page, index, data). A thousand refs are 300 KB, a page is 110 KB.
    """

    inline_max: int = 1_024
    page_entries: int = 1_000
    fan_out: int = 1_024
    deleting_max: int = 1_024


LIMITS = Limits()

CLOCK_DIFFERENCE_MS_MAX = 3_600_000
"""By how much times may be off that are compared: those of two machines, or of two objects as a store tells them."""


class SegmentState(StrEnum):
    """Kafka's RemoteLogSegmentState, and what of it stands for each.

    COPY_SEGMENT_STARTED      objects that no manifest names (yet): uploaded, or left behind by a copy that failed
    COPY_SEGMENT_FINISHED     an entry, in the manifest or in a page
    DELETE_SEGMENT_STARTED    in `deleting`: nobody new reads it, its objects are still there
    DELETE_SEGMENT_FINISHED   its objects are gone, and no manifest names it any more
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
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


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
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

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


@dataclass(frozen=True, slots=True)
class PageBounds:
    """What of all entries below a page retention has to know, so that it can take them together or leave them unread.

    `overlaps`: whether two of them have an offset in common. `least_epoch`: the least of the last leader epochs of those that
    have any, else -1. `oldest_ms`, `youngest_ms`: the least and the greatest `written_ms`. `first_log_size`: the first one's.
    """

    overlaps: bool
    least_epoch: int
    oldest_ms: int
    youngest_ms: int
    first_log_size: int


@dataclass(frozen=True, slots=True)
class PageRef:
    """An immutable page of older entries, and what a search has to know of it without reading it.

    `base_offset` and `last_base_offset` are those of the first and the last entry below it, `min_end_offset` and `end_offset`
    the least and the greatest of their ends, `max_timestamp_ms` the greatest of their timestamps. `count`, `log_bytes` and
    `aux_bytes` are of all entries below it. `size` and `crc32c` are the page object's own. `bounds` are None where the page was
    written before there were any. `sha256` is the page object's, in hexadecimal digits, where the manifest is signed.
    """

    level: int
    name: str
    base_offset: int
    last_base_offset: int
    min_end_offset: int
    end_offset: int
    max_timestamp_ms: int
    count: int
    log_bytes: int
    aux_bytes: int
    size: int
    crc32c: int
    bounds: PageBounds | None = None
    sha256: str | None = None
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


Item = SegmentEntry | PageRef
"""What stands in a manifest's or a page's list."""


@dataclass(frozen=True, slots=True)
class Deleting:
    """An entry, or all entries below a page, that retention has given up at `since_ms` and whose objects are still there."""

    item: Item
    since_ms: int
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)

    @property
    def id(self) -> str:
        """The segment id, or the page's name."""
        return item_id(self.item)


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets `[start, end)` that left every local log before they were archived, why, since when that is known, and who has
    acknowledged it and when, "" and 0 for nobody. What is missing of them now is said by `losses.lost_ranges`.
    """

    start: int
    end: int
    reason: str
    noticed_at_ms: int
    acknowledged_at_ms: int = 0
    acknowledged_by: str = ""
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class WriteMark:
    """A write over all `partitions` of a topic, numbered from 0 on, and the attempt of it that was committed."""

    write_id: str
    attempt_id: str
    partitions: int
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """What a write adds here if it is committed, which its record alone says (see `writes`): nobody reads it before.

    `topic` and `topic_id` are where that record lies. `lineage` are the partition's leader epochs with these entries.
    """

    topic: str
    topic_id: str
    mark: WriteMark
    entries: tuple[SegmentEntry, ...]
    lineage: tuple[EpochEntry, ...]
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version. Version 0 is the partition that nobody has archived yet; it is never stored.

    `parent_sha256` is the hash of the stored bytes of version - 1, "" for version 1. `put_id` is new for every commit, so
    that a writer whose answer was lost knows its own. `local_log_start_offsets` is by source (a log directory's id), as last
    seen. `entries` and `pages` are in the order of their base offsets. Entries that came late, below what the pages hold, stay
    among `entries` until there are too many of those. `gaps` are of the whole partition, whatever lies in pages.
    `deleted_at_ms` is when the topic with this id was deleted, 0 where it was not: nothing is archived under it any more.
    `written` is the last committed write of rows that no broker had, None for a partition that only a broker's logs are in;
    `pending` is one that is not known here to be committed or given up.
    `local_log_end_offsets` are where the sources' logs ended at their last commits, `gone` since when sources have the partition
    no more. `losses` are of the whole partition, also of offsets behind `end_offset`. `only_seen`: nothing was ever copied.
    `diverged` are histories that were given up, the latest last; `kept_from` is the topic id from which what is here was, or "".
    `data_committed_at_ms` is when the last commit was that brought offsets which the archive did not have, 0 where none is known.
    `signed_by` is the key that has wrapped the key of its signature, "" where it is not signed (see `signatures`).
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
    pages: tuple[PageRef, ...] = ()
    deleting: tuple[Deleting, ...] = ()
    deleted_at_ms: int = 0
    written: WriteMark | None = None
    pending: PendingWrite | None = None
    local_log_end_offsets: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    gone: Mapping[str, int] = field(default_factory=lambda: _NOTHING)
    losses: tuple[Loss, ...] = ()
    only_seen: bool = False
    data_committed_at_ms: int = field(default=0, kw_only=True)
    diverged: tuple[Divergence, ...] = field(default=(), kw_only=True)
    kept_from: str = field(default="", kw_only=True)
    unknown: Mapping[str, Any] = field(default_factory=lambda: _NOTHING)
    signed_by: str = ""

    @property
    def path(self) -> PartitionPath:
        """Where the partition lies in the archive."""
        return PartitionPath(self.topic, self.topic_id, self.partition)

    @property
    def items(self) -> Iterator[Item]:
        """The pages, then the entries that stand in the manifest itself."""
        yield from self.pages
        yield from self.entries

    @property
    def holes(self) -> tuple[Gap, ...]:
        """The gaps in which records may be missing, in order: all but those that compaction has made."""
        return tuple(sorted((gap for gap in self.gaps if not gap.is_of_compaction), key=lambda gap: gap.start))

    @property
    def is_deleted(self) -> bool:
        """Whether the topic was deleted, so that what is left here only keeps late writers out."""
        return self.deleted_at_ms != 0

    @property
    def end_offset(self) -> int:
        """The offset after the last archived one; the log start offset where nothing above it is archived."""
        return max((i.end_offset for i in self.items if i.end_offset > self.log_start_offset), default=self.log_start_offset)

    @property
    def segment_count(self) -> int:
        """How many entries there are, in pages too; those in `deleting` are none any more."""
        return sum(count_of(i) for i in self.items)

    @property
    def log_bytes(self) -> int:
        """The bytes of all their log objects."""
        return sum(map(log_bytes_of, self.items))

    @property
    def aux_bytes(self) -> int:
        """The bytes of all their aux objects."""
        return sum(i.aux_size if isinstance(i, SegmentEntry) else i.aux_bytes for i in self.items)


def without_entries(manifest: Manifest) -> Manifest:
    """What a manifest says of its partition, for who has the entries from elsewhere: little to send to many machines."""
    return replace(manifest, entries=(), pages=(), deleting=(), gaps=(), local_log_start_offsets={}, losses=())


def item_id(item: Item) -> str:
    """The segment id, or the page's name."""
    return item.segment_id if isinstance(item, SegmentEntry) else item.name


def count_of(item: Item) -> int:
    """How many entries an item stands for."""
    return 1 if isinstance(item, SegmentEntry) else item.count


def log_bytes_of(item: Item) -> int:
    """The bytes of the log objects of the entries that an item stands for."""
    return item.log_size if isinstance(item, SegmentEntry) else item.log_bytes


def never_archived(topic: str, topic_id: str, partition: int, log_start_offset: int) -> Manifest:
    """Version 0 of a partition whose log starts at `log_start_offset`."""
    return Manifest(topic, topic_id, partition, 0, "", "", "", 0, 0, log_start_offset, {}, (), (), ())


def missing_ranges(manifest: Manifest) -> tuple[tuple[int, int], ...]:
    """The ranges between the log start offset and the end offset that no entry covers, in order.

    A page counts as solid but for the gaps that the ledger has inside of it: it was held against the ledger when it was made.
    """
    holes = [(g.start, g.end) for g in manifest.gaps]
    ranges = [(e.base_offset, e.end_offset) for e in manifest.entries]
    for start, end in joined((ref.base_offset, ref.end_offset) for ref in manifest.pages):
        ranges += uncovered((h for h in holes if h[1] > start), start, end)
    return uncovered(sorted(ranges), manifest.log_start_offset, manifest.end_offset)


def covers(manifest: Manifest, start: int, end: int) -> bool:
    """Whether entries hold all offsets of `[start, end)`, as far as they are not below the log start offset."""
    start = max(start, manifest.log_start_offset)
    return start >= end or (end <= manifest.end_offset and not any(g.start < end and g.end > start for g in manifest.gaps))
