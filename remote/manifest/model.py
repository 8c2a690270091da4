"""The manifest as values. Offsets are Kafka's; times are ms; sizes are bytes; ranges are `[start, end)`.

The newest entries stand in the manifest itself, the older ones in pages that it refers to: a page of level 0 holds entries, one
of level n refs of level n - 1. What reads entries asks `Entries`, which knows where they are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from local_log.errors import TopicDeleted
from local_log.formats.checkpoints import EpochEntry
from local_log.ranges import joined, uncovered
from remote.keys import PartitionPath
from remote.manifest.gaps import NO_FIELDS, Divergence, Gap
from remote.manifest.segment_entry import SegmentEntry


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
NEVER_NAMED_DAYS = 30
"""How long a sweep keeps the objects of a partition without any manifest, which it cannot claim."""


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
    unknown: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)


Item = SegmentEntry | PageRef
"""What stands in a manifest's or a page's list."""


@dataclass(frozen=True, slots=True)
class Deleting:
    """An entry, or all entries below a page, that retention has given up at `since_ms` and whose objects are still there."""

    item: Item
    since_ms: int
    unknown: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)

    @property
    def id(self) -> str:
        """The segment id, or the page's name."""
        return item_id(self.item)


@dataclass(frozen=True, slots=True)
class Loss:
    """Offsets `[start, end)` that every local log deleted before they were archived, with the reason and the time of discovery.

    `acknowledged_by` and `acknowledged_at_ms` are "" and 0 if the loss is not acknowledged. `losses.lost_ranges` gives the part
    that is still missing.
    """

    start: int
    end: int
    reason: str
    noticed_at_ms: int
    acknowledged_at_ms: int = 0
    acknowledged_by: str = ""
    unknown: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)


@dataclass(frozen=True, slots=True)
class WriteMark:
    """A write over all `partitions` of a topic, numbered from 0 on, and the attempt of it that was committed."""

    write_id: str
    attempt_id: str
    partitions: int
    unknown: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)


@dataclass(frozen=True, slots=True)
class PendingWrite:
    """What a write adds to this partition once its record says that it is committed (see `writes`). No reader sees it before.

    `topic` and `topic_id` locate the record. `lineage` are the partition's leader epochs with these entries.
    """

    topic: str
    topic_id: str
    mark: WriteMark
    entries: tuple[SegmentEntry, ...]
    lineage: tuple[EpochEntry, ...]
    unknown: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)


@dataclass(frozen=True, slots=True)
class Manifest:
    """One version. Version 0 is a partition without any archived segment or record; it is never stored.

    `parent_sha256` is the hash of the stored bytes of version - 1, "" for version 1. `put_id` is new for every commit, so that a
    writer whose answer was lost knows its own. `local_log_start_offsets` is by source (a log directory's id): the first offset
    that it had when it was last seen. `entries` and `pages` are in the order of their base offsets. Entries that came late, below
    what the pages hold, stay among `entries` until there are too many of those. `gaps` are all gaps of the partition, inside of
    pages too.
    `deleted_at_ms` is when the topic with this id was deleted, 0 where it was not: nothing is archived under it any more.
    `written` is the last committed write of rows that no broker had, None for a partition that only a broker's logs are in;
    `pending` is one that is not known here to be committed or given up.
    `local_log_end_offsets` are where the sources' logs ended at their last commits, `gone` since when sources have the partition
    no more. `losses` are all losses of the partition, also of offsets after `end_offset`. `only_seen`: nothing was ever copied.
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
    local_log_end_offsets: Mapping[str, int] = field(default_factory=lambda: NO_FIELDS)
    gone: Mapping[str, int] = field(default_factory=lambda: NO_FIELDS)
    losses: tuple[Loss, ...] = ()
    only_seen: bool = False
    data_committed_at_ms: int = field(default=0, kw_only=True)
    diverged: tuple[Divergence, ...] = field(default=(), kw_only=True)
    kept_from: str = field(default="", kw_only=True)
    unknown: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)
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


def lacks_nothing(manifest: Manifest, start: int, end: int) -> bool:
    """As `covers`, but compaction may have emptied some of the offsets."""
    return end <= manifest.end_offset and not any(g.start < end and g.end > start for g in manifest.holes)


def covers(manifest: Manifest, start: int, end: int) -> bool:
    """Whether entries hold all offsets of `[start, end)`, as far as they are not below the log start offset."""
    start = max(start, manifest.log_start_offset)
    return start >= end or (end <= manifest.end_offset and not any(g.start < end and g.end > start for g in manifest.gaps))


def refuse_deleted(manifest: Manifest) -> None:
    """Raises TopicDeleted for a topic that was deleted."""
    if manifest.is_deleted:
        raise TopicDeleted(
            f"{manifest.path}: the topic with id {manifest.topic_id} was deleted from the archive, and nothing of it is archived "
            "any more; a topic that is made anew has another id. Leave it out, or delete it on its brokers, too"
        )
