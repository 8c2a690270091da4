"""What must hold of an archive at each change and at the end, told by a judge who sees all of it and makes no requests."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

from crc32c import crc32c

from local_log.engine.memory_records import batch_at
from local_log.errors import LogError
from local_log.formats.control import ControlType, read_end_txn_marker
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.ranges import Ranges, clipped, without
from remote.keys import PartitionPath, parse_manifest_key, partition_of, write_of
from remote.manifest import codec, invariants
from remote.manifest.entries import Entries
from remote.manifest.losses import lost_ranges
from remote.manifest.model import Manifest
from remote.manifest.pins import Pin
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.stamped_json import sha256
from remote.manifest.write_record import as_decided, record_of
from simulated.predicates import Offsets, deleted_too_early, gone_back, invented, uncovered
from simulated.profiles import Waits
from simulated.schedule import MINUTE_MS, Schedule, Violation
from simulated.stores import JudgedStore, Unwatched

CLOCKS_DIFFER_MS = 15 * MINUTE_MS
"""How far the clocks of the store and of a machine that expires may be apart."""


@dataclass(eq=False)
class Reading:
    """A reader with what it may still read: objects that nobody may delete `until` then."""

    who: str
    keys: frozenset[str]
    until: int


@dataclass(frozen=True)
class Left:
    """The objects that a reader of a version needs, which was the newest until a time."""

    version: int
    until: int
    keys: frozenset[str]


@dataclass(frozen=True)
class Named:
    """A manifest, and the keys of all objects that it names to readers. `entries` are those that it was committed with."""

    manifest: Manifest
    keys: frozenset[str]
    entries: dict[str, SegmentEntry]
    """By the names of their logs; none of a version with a pending write, which may have brought some of them."""


class Log(Protocol):
    """A log as those know it who write it: what is committed of it, by base offset, and when."""

    committed: dict[int, bytes]
    times: dict[int, int]
    ended: dict[int, int]
    """The producer of each transaction that has ended, by the offset of its marker."""
    aborted: dict[int, int]
    """Those of them that were aborted."""
    start_max: int
    """Up to where somebody has asked that records be deleted."""
    gave_up_at: dict[str, int]
    """Where replicas ended that were given up."""

    @property
    def high_watermark(self) -> int: ...

    @property
    def last_stable_offset(self) -> int: ...


@dataclass(eq=False)
class Watched:
    """A log and what has become of it in the archive; `acknowledged` are offsets that an offload has said are archived."""

    log: Log
    acknowledged: set[int] = field(default_factory=set)
    dropped_below: dict[str, int] = field(default_factory=dict)
    """Where each broker's log starts: what it deleted before may be missing in the archive."""
    first_start: int = 0
    """Where the log of the first broker that was offloaded started: the archive starts there."""
    may_be_deleted: bool = False
    named: set[str] = field(default_factory=set)
    """The logs of segments that any version of the archive has named."""


@dataclass(eq=False)
class Judge:
    """Watches a store, in which things wait as `waits` says; `watched` are the logs that are archived there."""

    schedule: Schedule
    store: JudgedStore
    waits: Waits
    watched: dict[PartitionPath, Watched] = field(default_factory=dict)
    readings: list[Reading] = field(default_factory=list)
    versions: dict[PartitionPath, dict[int, Manifest]] = field(default_factory=dict)
    """All that were ever committed."""
    _left: dict[PartitionPath, list[Left]] = field(default_factory=dict)
    """The versions that somebody may still read who has opened them when they were the newest."""
    _ever: dict[str, int] = field(default_factory=dict)
    """The hashes of all objects but manifests, those that were deleted, too."""
    _named: dict[str, tuple[bytes, Named]] = field(default_factory=dict)
    _sums: dict[str, tuple[bytes, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.unwatched = Unwatched(self.store)
        self.store.puts, self.store.deletes = self.puts, self.deletes

    def violated(self, what: str) -> Violation:
        return self.schedule.violated(what)

    def newest(self, path: PartitionPath) -> Named | None:
        """The newest version of a partition, with the effect of a write that was decided."""
        prefix = path.manifests
        key = self.store.first_from(prefix)  # pages come after all versions
        return self.named(path, key) if key is not None and key.startswith(prefix) and parse_manifest_key(key) else None

    def named(self, path: PartitionPath, key: str) -> Named:
        body = self.store.objects[key]
        known = self._named.get(key)
        if known is not None and known[0] is body:
            return known[1]
        manifest = codec.decode(body, key)
        of_manifest = Entries.of(self.unwatched, as_decided(self.unwatched, manifest))
        entries = {e.log_name: e for e in of_manifest}
        keys = {f"{path.segments}{name}" for e in entries.values() for name in (e.log_name, e.aux_name)}
        keys |= {f"{path.pages}{name}" for name in of_manifest.page_names()}
        keys |= {record_of(manifest.pending)} if manifest.pending is not None else set()
        found = Named(of_manifest.manifest, frozenset(keys), entries if manifest.pending is None else {})
        if manifest.pending is None:
            self._named[key] = body, found
        return found

    def obeyed_until(self, path: PartitionPath, pin: Pin) -> int:
        """Up to when at least a pin lasts that somebody has put: it counts from when the store has made it."""
        return self.store.modified.get(path.pin(pin.id), self.schedule.now) + pin.expires_at_ms - pin.created_at_ms

    # At each change

    def deletes(self, key: str) -> None:
        """No object goes that the newest version names, or that a reader may still read, there is one or not."""
        for reading in self.readings:
            if self.schedule.now < reading.until and key in reading.keys:
                raise self.violated(f"{key} was deleted under {reading.who}")
        path = partition_of(key)
        of_topic = [known for known in self._left if key.startswith(f"{known.topic}/{known.topic_id}/")]
        for of in of_topic if path is None else [path]:
            self._deletes_of(of, key)

    def _deletes_of(self, path: PartitionPath, key: str) -> None:
        """The same of one partition; a record of a write belongs to all of its topic."""
        newest = self.newest(path)
        if newest is None:
            return
        if key in newest.keys:
            raise self.violated(f"{key} was deleted, and the newest manifest names it")
        if key == path.manifest(newest.manifest.version):
            raise self.violated(f"the newest manifest {key} was deleted")
        self._left[path] = [left for left in self._left[path] if self.schedule.now < self._may_be_read_until(left)]
        for left in self._left[path]:
            if key in left.keys:
                ago = (self.schedule.now - left.until) // MINUTE_MS
                raise self.violated(f"{key} was deleted, and version {left.version}, the newest until {ago} min ago, names it")

    def _may_be_read_until(self, left: Left) -> int:
        return left.until + self.waits.delay_ms - MINUTE_MS

    def _leaves(self, path: PartitionPath, old: Named) -> None:
        """The version is no longer the newest."""
        m = old.manifest
        if not m.is_deleted:
            below = [e for e in old.entries.values() if e.end_offset <= m.log_start_offset]
            not_read = {path.segment(name) for e in below for name in (e.log_name, e.aux_name)}
            keys = old.keys - not_read | {path.manifest(m.version)}
            self._left[path].append(Left(m.version, self.schedule.now, keys))

    def puts(self, key: str, body: bytes) -> None:
        """Versions follow the newest one, keep the invariants, name only what is there; no other key has two bodies."""
        path, version = partition_of(key), parse_manifest_key(key)
        if version is None and self._ever.setdefault(key, hash(body)) != hash(body) and not _gives_up(key, body):
            raise self.violated(f"{key} had other bytes before it was deleted")
        if path is None or version is None:
            return
        self._left.setdefault(path, [])
        old = self.newest(path)
        old_version = old.manifest.version if old is not None else 0
        if version <= old_version:
            return  # under the key of a version that was swept: no reader comes to it
        if version != old_version + 1:
            raise self.violated(f"version {version} of {path} follows {old_version}")
        manifest = codec.decode(body, key)
        if old is not None:
            before = self.store.objects[path.manifest(old_version)]
            if manifest.parent_sha256 != sha256(before):
                raise self.violated(f"{key} does not follow the newest version")
            self._checked(key, lambda: invariants.check(codec.decode(before, key), manifest))
            self._holds(key, gone_back(old.manifest, manifest) if path in self.watched else None)
        self._names_what_is_there(path, manifest, old)
        self._holds(key, invented(manifest))
        if path in self.watched and not manifest.is_deleted:
            self._is_due(manifest, self.watched[path])
        self.versions.setdefault(path, {})[version] = manifest
        if old is not None:
            self._leaves(path, old)

    def _checked(self, key: str, check: Any) -> None:
        try:
            check()
        except LogError as e:
            raise self.violated(f"{key}: {e}") from e

    def _holds(self, what: str, wrong: str | None) -> None:
        if wrong is not None:
            raise self.violated(f"{what}: {wrong}")

    def check_local_log(self, path: PartitionPath, log: Offsets) -> None:
        """Local retention has deleted of this log only what the archive has."""
        newest = self.newest(path)
        start, end = (newest.manifest.log_start_offset, newest.manifest.end_offset) if newest is not None else (0, 0)
        self._holds(f"{path}", deleted_too_early(log, end))
        if log.log_start_offset > max(start, self.watched[path].log.start_max):
            raise self.violated(
                f"{path} starts at {log.log_start_offset}, its archive at {start}, and nobody has deleted that much"
            )

    def _names_what_is_there(self, path: PartitionPath, manifest: Manifest, old: Named | None) -> None:
        """What the version before named, too, was there then, and nobody could delete it since."""
        entries = Entries.of(self.unwatched, manifest)
        known = old.entries if old is not None else {}
        try:
            found, pages = [*entries], [*entries.page_names()]
        except LogError as e:
            raise self.violated(f"version {manifest.version} of {path}: {e}") from e
        for name in pages:
            if path.page(name) not in self.store.objects:
                raise self.violated(f"version {manifest.version} of {path} names page {name}, which is not there")
        self._holds(f"version {manifest.version} of {path}", None if manifest.is_deleted else uncovered(manifest, found))
        for entry in found:
            if path in self.watched:
                self.watched[path].named.add(entry.log_name)
            if entry.end_offset <= manifest.log_start_offset or known.get(entry.log_name) == entry:
                continue
            for stored in (entry.stored_log, entry.stored_aux):
                body = self.store.objects.get(path.segment(stored.name))
                if body is None or self._checked_bytes(path.segment(stored.name), body) != (stored.size, stored.crc32c):
                    raise self.violated(
                        f"version {manifest.version} of {path} names {stored.name}, which is not there as it says"
                    )

    def _checked_bytes(self, key: str, body: bytes) -> tuple[int, int]:
        """An object's size and checksum, which is computed once: objects do not change."""
        known = self._sums.get(key)
        if known is None or known[0] is not body:
            known = self._sums[key] = body, crc32c(body)
        return len(body), known[1]

    def _is_due(self, manifest: Manifest, of: Watched) -> None:
        """Nothing expires that is young, and nothing is archived that is not stable."""
        horizon = self.schedule.now + CLOCKS_DIFFER_MS - self.waits.retention_ms
        young = min((base for base, time in of.log.times.items() if time >= horizon), default=of.log.high_watermark)
        if manifest.version == 1:
            of.first_start = manifest.log_start_offset
            if of.first_start > max([0, of.log.start_max, *of.dropped_below.values()]):
                raise self.violated(f"the first manifest begins at {of.first_start}, and no log has deleted that much")
        if manifest.log_start_offset > max(young, of.first_start, of.log.start_max):
            raise self.violated(f"the log starts at {manifest.log_start_offset}; {young} is younger than the retention time")
        stable = max(of.log.last_stable_offset, manifest.log_start_offset)
        if manifest.end_offset > stable:
            raise self.violated(f"the archive ends at {manifest.end_offset}, above the last stable offset {stable}")

    def says_archived(self, path: PartitionPath, entry: SegmentEntry) -> None:
        """An offload has said that this segment is archived: it is, unless it has expired since."""
        watched, newest, start, end = self.watched[path], self.newest(path), entry.base_offset, entry.end_offset
        watched.acknowledged |= {*range(start, end)}
        manifest = newest.manifest if newest is not None else None
        is_there = manifest is not None and (manifest.is_deleted or manifest.end_offset >= end)
        if not is_there or entry.log_name not in watched.named:
            raise self.violated(f"an offload says that [{start}, {end}) is archived as {entry.log_name}, and it is not")

    def says_expired(self, path: PartitionPath, log_start_offset: int) -> None:
        """An expiry has said that the archive starts there."""
        newest = self.newest(path)
        if newest is None or newest.manifest.log_start_offset < log_start_offset:
            raise self.violated(f"an expiry says that the archive starts at {log_start_offset}, and it does not")

    def check_gaps(self, manifest: Manifest) -> None:
        """In the end only what some log has deleted may be missing, or lost: a segment that was skipped is copied later."""
        watched = self.watched[manifest.path]
        given_up = max([watched.log.start_max, *watched.dropped_below.values(), *watched.log.gave_up_at.values()])
        for gap in (*manifest.gaps, *lost_ranges(manifest)):
            if gap.end > given_up:
                raise self.violated(f"gap [{gap.start}, {gap.end}) of what no log has deleted: {gap.reason}")

    def check_losses(self, manifest: Manifest, held: Mapping[str, Ranges]) -> None:
        """In the end what is in no log any more is archived, or told to be lost, unless its users have deleted it.

        `held` is what can be copied of the logs of these sources; of others the manifest tells.
        """
        of, starts = self.watched[manifest.path], manifest.local_log_start_offsets
        others = [(start, manifest.local_log_end_offsets[name]) for name, start in starts.items() if name not in held]
        known = max(of.first_start, of.log.start_max, manifest.log_start_offset)
        holes = [(gap.start, gap.end) for gap in manifest.gaps if not gap.is_of_compaction]
        missing = clipped([*holes, (manifest.end_offset, of.log.high_watermark)], known, of.log.high_watermark)
        lost = [(loss.start, loss.end) for loss in lost_ranges(manifest)]
        silent = without(missing, [*lost, *others, *chain(*held.values())])
        for base, body in of.log.committed.items():
            if clipped(silent, base, batch_at(body, 0).last_offset + 1):
                raise self.violated(f"the batch at {base} is in no tier, and no loss tells of it")

    # What readers get

    def read(self, path: PartitionPath, batches: dict[int, bytes], who: str) -> None:
        """A reader was given these batches: they are the committed ones."""
        committed = self.watched[path].log.committed
        for base, body in batches.items():
            if body != committed.get(base):
                raise self.violated(f"{who} reads other bytes at offset {base} than were committed")

    def check_whole(self, manifest: Manifest, batches: dict[int, bytes], start: int, end: int, who: str) -> None:
        """A reader of `[start, end)` of this version was given all that it has."""
        if start >= end:
            return
        gaps = [(gap.start, gap.end) for gap in manifest.gaps]
        for base, body in self.watched[manifest.path].log.committed.items():
            first = max(base, start)  # of a batch that begins before, only what is asked for
            if base in batches or base >= end or any(s <= first < e for s, e in gaps) or batch_at(body, 0).last_offset < start:
                continue
            raise self.violated(f"{who} of [{start}, {end}) was not given the batch at {base}")

    def check_aborted(self, path: PartitionPath, batches: dict[int, bytes], told: Iterable[AbortedTxn], who: str) -> None:
        """A reader knows of these batches which were aborted."""
        log = self.watched[path].log
        known = {txn.last_offset: txn for txn in sorted(told, reverse=True)}
        for offset, txn in known.items():
            if log.aborted.get(offset) != txn.producer_id:
                raise self.violated(f"{who} is told that producer {txn.producer_id} aborted at {offset}, which it did not")
        ends: dict[int, list[int]] = {}
        for offset, producer in sorted(log.ended.items()):
            ends.setdefault(producer, []).append(offset)
        for base, body in batches.items():
            batch = batch_at(body, 0)
            if batch.is_transactional and not batch.is_control:
                end = next((offset for offset in ends.get(batch.producer_id, ()) if offset > base), None)
                if end in log.aborted and (end not in known or known[end].first_offset > base):
                    raise self.violated(f"{who} is not told that the batch at {base} was aborted at {end}")

    def check_markers(self, manifest: Manifest, batches: dict[int, bytes], markers: dict[int, bytes], who: str) -> None:
        """These, after the archive's end, end transactions of these batches as the markers do that were not archived.

        And of those that lie below the log start offset, in a segment that the archive has. One of which the archive has no
        record may end in any way.
        """
        log, end = self.watched[manifest.path].log, min(markers, default=0)
        first = min((entry.base_offset for entry in Entries.of(self.unwatched, manifest)), default=end)
        last: dict[int, int] = {}
        for base, body in sorted((log.committed | batches).items()):
            if base >= end:
                break
            if base < first or any(gap.start <= base < gap.end for gap in manifest.gaps):
                continue
            batch = batch_at(body, 0)
            if batch.is_transactional and not batch.is_control:
                last[batch.producer_id] = base
        for body in markers.values():
            batch = batch_at(body, 0)
            began = last.get(batch.producer_id)
            if began is None:
                continue
            own = min((o for o, of in log.ended.items() if of == batch.producer_id and o > began), default=None)
            is_abort = read_end_txn_marker(body[BATCH_HEADER_BYTES:]).control_type is ControlType.ABORT
            if own is None or is_abort != (own in log.aborted):
                raise self.violated(
                    f"{who} says of producer {batch.producer_id} abort: {is_abort}; its transaction ended at {own}"
                )

    def orphans(self, paths: Iterable[PartitionPath]) -> set[str]:
        """Objects that no newest version needs. Those of a partition without a manifest stay for a month."""
        kept = {"archive.json"}
        for path in paths:
            newest = self.newest(path)
            if newest is None:
                kept |= {*self.store.keys_below(path.prefix)}
            else:
                kept |= {path.manifest(newest.manifest.version)} | newest.keys
        return {key for key in self.store.objects if key not in kept and "/writes/" not in key}


def _gives_up(key: str, body: bytes) -> bool:
    """Whether it is the record of a write that is given up, which was committed once if it had other bytes.

    A driver puts it that has slept since it read a manifest with the pending write, and commits nothing then: all manifests have
    gone on, or the record would not have been deleted.
    """
    return write_of(key) is not None and b'"given up"' in body
