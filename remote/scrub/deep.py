"""Deep scrub: reads archived segments completely and checks every batch and index against the manifest's entry."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from local_log.errors import Corrupt, Invalid, Missing, placed
from local_log.formats.checkpoints import read_epochs
from local_log.formats.checksum import crc32c
from local_log.formats.chunks import CHUNK_BYTES
from local_log.formats.indexes.offset import read_offset_index
from local_log.formats.indexes.time import read_time_index
from local_log.formats.indexes.transaction import read_txn_index
from local_log.formats.producer_snapshot import read_producer_snapshot
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import (
    ABORTED_LATER,
    IDENTITY,
    LEADER_EPOCH_CHECKPOINT,
    LEAST_TIME_INDEX,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    SegmentEntry,
    StoredObject,
)
from remote.read.context import Decoder
from remote.scrub.finding import Finding, Kind, not_checked
from remote.scrub.named_still import is_named_still, not_named_any_more
from remote.scrub.segment_transactions import SegmentTransactions, TransactionsBuilder
from remote.scrub.steps import ScrubbedSegment, SegmentToRead
from remote.segment.check import LogSegmentData, SegmentCopy, SegmentFile, check_beside, check_log
from remote.segment.download import verified
from remote.segment_bytes import SegmentBytes, get_named
from remote.store.api import ObjectReader, ReadableStore

_READERS: Mapping[str, Callable[[bytes], object]] = {
    OFFSET_INDEX: lambda body: read_offset_index(body, 0),
    TIME_INDEX: lambda body: read_time_index(body, 0),
    TRANSACTION_INDEX: read_txn_index,
    ABORTED_LATER: read_txn_index,
    LEAST_TIME_INDEX: lambda body: read_time_index(body, 0),
    PRODUCER_SNAPSHOT: read_producer_snapshot,
    LEADER_EPOCH_CHECKPOINT: read_epochs,
}


@dataclass(slots=True)
class PartitionDeepScrub:
    """Checks segments of one partition in order, each read in chunks.

    `store` reads the stored objects, `source` the decoded segments.
    """

    store: ObjectReader
    source: SegmentBytes
    manifest: Manifest

    def check(self, entry: SegmentEntry) -> ScrubbedSegment:
        """The findings about a segment whose objects exist, at most one for each object, and its transactions.

        An abort whose records are all in earlier segments may be missing in the transaction index, which is that of a broker
        whose log started later: what readers of those segments are told is compared by TransactionCheck. Raises Unavailable, and
        Invalid if the segment cannot be read (NoKey, WrongKey, Newer, or the store denies access).
        """
        log_key, aux_key = (self.manifest.path.segment(name) for name in (entry.log_name, entry.aux_name))
        if entry.encoding != IDENTITY:  # otherwise the stored bytes are the segment's bytes, which are checked below
            stored = ((log_key, entry.stored_log), (aux_key, entry.stored_aux))
            damaged = tuple(f for key, one in stored if (f := self._check_stored(key, one)) is not None)
            if damaged:
                return ScrubbedSegment(damaged)
        try:
            parts = self._parts(entry, aux_key)
            aux_finding = None
        except _DamagedObject as e:
            parts, aux_finding = {}, e.finding
        segment = self._segment(entry, log_key, aux_key, parts)
        followed = TransactionsBuilder(entry.base_offset, entry.end_offset)
        try:
            checked = check_log(segment, followed.add)
        except Corrupt as e:
            log_finding = Finding(Kind.bad_batch, log_key, e.problem, e.position)
            return ScrubbedSegment((log_finding,) if aux_finding is None else (aux_finding, log_finding))
        finding = _check_entry(entry, checked, log_key)
        if finding is None and aux_finding is None:
            try:
                check_beside(checked)
            except Corrupt as e:
                finding = Finding(Kind.bad_index, aux_key, e.problem, e.position)
        found = tuple(f for f in (aux_finding, finding) if f is not None)
        return ScrubbedSegment(found, None if aux_finding else self._transactions(entry, parts, followed, is_sound=not found))

    def _transactions(
        self, entry: SegmentEntry, parts: Mapping[str, bytes], followed: TransactionsBuilder, *, is_sound: bool
    ) -> SegmentTransactions:
        """The segment's transactions beside what readers are told, who do not look where `txn_index_empty` is set.

        Where another finding about the segment may explain it, nothing is said of transactions that lie in it as a whole.
        """
        own, later = (read_txn_index(parts.get(part, b"")) for part in (TRANSACTION_INDEX, ABORTED_LATER))
        aborted = () if entry.txn_index_empty else (*own, *later)
        built = followed.build(aborted, self.manifest.log_start_offset)
        return built if is_sound else replace(built, misread=())

    def _check_stored(self, key: str, stored: StoredObject) -> Finding | None:
        found = 0
        for start in range(0, stored.size, CHUNK_BYTES):
            found = crc32c(get_named(self.store, key, start, min(stored.size, start + CHUNK_BYTES)), found)
        return _wrong_crc(key, found, stored.crc32c) if found != stored.crc32c else None

    def _parts(self, entry: SegmentEntry, key: str) -> dict[str, bytes]:
        """The parts of the aux object, all verified. Raises _DamagedObject."""
        try:
            body = self.source.aux(self.manifest.path, entry, 0, entry.aux_size)
        except Corrupt as e:
            raise _DamagedObject(Finding(Kind.bad_index, key, e.problem, e.position)) from e
        parts = {part: body[where.start : where.end] for part, where in entry.aux_ranges.items()}
        try:
            for part, where in entry.aux_ranges.items():
                verified(parts[part], part, where, key)
        except Corrupt as e:
            raise _DamagedObject(Finding(Kind.wrong_crc, key, e.problem, e.position)) from e
        found = crc32c(body)
        if found != entry.aux_crc32c:
            raise _DamagedObject(_wrong_crc(key, found, entry.aux_crc32c))
        for part, where in entry.aux_ranges.items():
            try:
                with placed(key, where.start):
                    _READERS.get(part, len)(parts[part])
            except Corrupt as e:
                raise _DamagedObject(Finding(Kind.bad_index, key, f"the {part}: {e.problem}", e.position)) from e
        return parts

    def _segment(self, entry: SegmentEntry, log_key: str, aux_key: str, parts: Mapping[str, bytes]) -> LogSegmentData:
        """The archived segment in the form that a copy checks, so that a scrub makes the same checks."""

        def file(part: str) -> SegmentFile:
            return SegmentFile(aux_key, parts.get(part, b""))

        return LogSegmentData(
            path=log_key,
            base_offset=entry.base_offset,
            end_offset=entry.end_offset,
            size=entry.log_size,
            read=partial(self.source.log, self.manifest.path, entry),
            offset_index=file(OFFSET_INDEX),
            time_index=file(TIME_INDEX),
            txn_index=file(TRANSACTION_INDEX),
            producer_snapshot=None,
            lineage=self.manifest.leader_epochs,
        )


@dataclass(slots=True)
class DeepScrub:
    """Checks the segments that a scrub yields, partition by partition."""

    store: ReadableStore
    decoded: Decoder
    _of_partition: PartitionDeepScrub | None = None

    def read(self, unread: SegmentToRead) -> ScrubbedSegment:
        """What is found in a segment, or the reason why it cannot be read. Raises Unavailable, RequestsExhausted."""
        if self._of_partition is None or self._of_partition.manifest is not unread.manifest:
            self._of_partition = PartitionDeepScrub(self.store, self.decoded(self.store), unread.manifest)
        path, entry = unread.manifest.path, unread.entry
        try:
            found = self._of_partition.check(entry)
        except Missing as e:
            found = ScrubbedSegment((Finding(Kind.missing_object, e.file, e.problem),))
        except Invalid as e:
            key = path.segment(entry.log_name)
            return ScrubbedSegment((Finding(Kind.unreadable, key, str(e).removeprefix(f"{key}: ")),))
        if found.findings and not is_named_still(self.store, path, entry.log_name):
            return ScrubbedSegment((not_checked(path, not_named_any_more(entry.log_name)),))
        return found


class _DamagedObject(Exception):
    """A finding that ends the check of an object."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding)
        self.finding = finding


def _check_entry(entry: SegmentEntry, checked: SegmentCopy, key: str) -> Finding | None:
    """Compares the entry with what was read of the log."""
    if checked.crc32c != entry.log_crc32c:
        return _wrong_crc(key, checked.crc32c, entry.log_crc32c)
    facts: list[tuple[str, object, object]] = [
        ("last offset", entry.last_offset, int(checked.last_offsets[-1])),
        ("latest timestamp", entry.max_timestamp_ms, int(checked.max_timestamps.max())),
        ("number of records", entry.record_count, checked.record_count),
        ("leader epochs", entry.leader_epochs, tuple(checked.leader_epochs)),
    ]
    if entry.min_timestamp_ms is not None:
        facts.append(("earliest timestamp", entry.min_timestamp_ms, int(checked.min_timestamps.min())))
    differ = [f"the {name} {said}, and it is {found}" for name, said, found in facts if said != found]
    return Finding(Kind.bad_entry, key, f"the manifest states {'; '.join(differ)}") if differ else None


def _wrong_crc(key: str, found: int, stated: int) -> Finding:
    return Finding(Kind.wrong_crc, key, f"it has CRC-32C {found:08x} where the manifest states {stated:08x}")
