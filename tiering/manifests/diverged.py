"""Resolves divergence: the archive and the leader's log of a partition have different records at the same offsets.

After an unclean leader election the leader's log lacks archived offsets and has other records in their place. No records may be
lost, and the archive of a partition is a single log, so the archived records that the brokers lack move to a topic of their
own:

1  the segments from the fork on are copied to a topic of the same name with another id; readers ask for it with `--topic-id`
2  the partition is truncated to the fork or below, and the segments above are deleted later, like expired ones
3  the next offload continues from there with the records of the log

The procedure can be interrupted and run again: the topic id is the same each time, and copied segments are not copied again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from local_log.errors import Conflict, Invalid, LogError
from local_log.log_dir import Unopened
from local_log.log_reader import LogReader
from local_log.ranges import Range
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest.divergence import fork_offset, is_another_history, is_older, kept_topic_id, others_below_start
from remote.manifest.entries import Entries, Pages
from remote.manifest.history import check_history
from remote.manifest.model import Manifest, covers
from remote.manifest.own_objects import put_own
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.signatures import signing_key_of
from remote.manifest.store import ManifestWriter, load_newest, of_newest
from remote.manifest.transitions import kept, kept_from
from remote.manifest.truncation import Truncation, truncation
from remote.segment.copy import SegmentCopies
from remote.segment_bytes import SegmentBytes
from remote.store.api import ObjectStore
from remote.transforms.encoder import Encryption

WRITER = "diverged"
TRUNCATIONS_MAX = 50


@dataclass(frozen=True, slots=True)
class Divergence:
    """A partition whose log contradicts the archive: the fork, and the archived segments above it.

    `fork_offset` is None if the log or the archive has no leader epochs, so the fork is unknown; then `segments` is 0.
    `log_bytes` counts these segments. `is_older`: the archive has a later leader epoch, so the broker will truncate the log.
    `below_start` are offsets of the log that are not archived, since the archive starts above them (see `others_below_start`).
    """

    manifest: Manifest
    log_start_offset: int
    log_end_offset: int
    fork_offset: int | None
    start: int
    segments: int
    log_bytes: int
    is_older: bool
    below_start: Range | None

    @property
    def kept_id(self) -> str:
        """The id of the topic to which the segments move, "" if no segment moves."""
        return kept_topic_id(self.manifest, self.fork_offset) if self.fork_offset is not None and self.segments else ""


def find_divergences(logs: Iterable[LogReader | Unopened], store: ObjectStore) -> Iterator[Divergence | LogError]:
    """The divergent logs, in order, and the error of each log that cannot be checked."""
    for log in logs:
        try:
            found = None if isinstance(log, Unopened) else divergence_of(log, store)
        except LogError as e:
            yield e
            continue
        if isinstance(log, Unopened):
            yield log.error
        elif found is not None:
            yield found


def divergence_of(log: LogReader, store: ObjectStore) -> Divergence | None:
    """The divergence of one log, None without one. Writes nothing. Raises Corrupt, NotFound, Unreadable, Unavailable."""
    if not log.segments:
        return None
    stored = load_newest(store, PartitionPath(log.partition.topic, log.topic_id, log.partition.partition))
    if stored is None or stored.manifest.is_deleted:
        return None
    lineage, end = log.leader_epochs, log.log_end_offset
    if not is_another_history(stored.manifest, lineage, end):
        return None
    return of_newest(store, stored.manifest, lambda newest: _diverged(newest, log, store))


def _diverged(manifest: Manifest, log: LogReader, store: ObjectStore) -> Divergence:
    lineage, end = log.leader_epochs, log.log_end_offset
    fork = fork_offset(manifest, lineage, end)
    above = [] if fork is None else [*_above(manifest, fork, store)]
    is_behind = fork is not None and is_older(manifest, lineage)
    return Divergence(
        manifest,
        log.log_start_offset,
        end,
        fork,
        min((e.base_offset for e in above), default=manifest.end_offset if fork is None else fork),
        len(above),
        sum(e.log_size for e in above),
        is_behind,
        None if fork is None or is_behind else others_below_start(manifest, fork, lineage, log.log_start_offset),
    )


def _above(manifest: Manifest, fork: int, store: ObjectStore) -> Iterator[SegmentEntry]:
    """The segments with offsets at or above the fork."""
    return Entries.of(store, manifest).overlapping(fork, max(manifest.end_offset, fork))


def check_resolvable(found: Divergence) -> None:
    """Raises Invalid if the divergence must not be resolved with this log."""
    path = found.manifest.path
    if found.fork_offset is None:
        raise Invalid(
            f"{path}: the log or the archive has no leader epochs, so the fork cannot be found; archive the log into "
            "another archive, or delete the topic from this one with tiering delete-topic once it is stored elsewhere"
        )
    if found.is_older:
        raise Invalid(
            f"{path}: the archive knows leader epoch {found.manifest.leader_epochs[-1].epoch}, later than this log's, so "
            "the log is behind, and its broker truncates it when it follows the leader; run this on the leader's host"
        )


@dataclass(frozen=True, slots=True)
class Resolver:
    """Resolves divergences in an archive; `decoded` and `encryption` are for encrypted segments."""

    store: ObjectStore
    clock: Clock
    ids: Ids
    decoded: SegmentBytes
    encryption: Encryption | None = None

    def resolve(self, log: LogReader, found: Divergence) -> Manifest:
        """Copies the archived segments above the fork to the other topic, then truncates the partition; returns its new
        manifest.

        Raises Invalid (see `check_resolvable`), NoKey, Corrupt, Conflict if another writer still archives that history or has
        expired what `below_start` does not tell, and the errors of a commit. The partition is truncated only after all segments
        are copied.
        """
        for _ in range(TRUNCATIONS_MAX):
            check_resolvable(found)
            if found.segments:
                of_newest(self.store, found.manifest, partial(self._keep, found))
            after = self._truncated(log, found)
            if after is not None:
                return after
            again = divergence_of(log, self.store)
            if again is None:
                raise Conflict(
                    f"{found.manifest.path}: another process has resolved it in the meantime; see tiering diverged show"
                )
            if again.below_start != found.below_start:
                raise Conflict(f"{found.manifest.path}: its log start offset was raised meanwhile; run the same command again")
            found = again
        raise Conflict(f"{found.manifest.path}: others have committed {TRUNCATIONS_MAX} times in the meantime; stop them first")

    def _keep(self, found: Divergence, manifest: Manifest) -> None:
        """Step 1, segment by segment; skips segments that are copied already."""
        fork = found.fork_offset
        assert fork is not None
        target = replace(manifest.path, topic_id=found.kept_id)
        first = kept_from(manifest, found.kept_id, found.start)
        stored = load_newest(self.store, target)
        known = stored.manifest if stored else first
        writer = ManifestWriter(self.store, target, self.clock, self.ids, WRITER, known.writer_epoch)
        copies = SegmentCopies(self.store, manifest.path, target, self.ids, self.decoded, self.encryption)
        for entry in _above(manifest, fork, self.store):
            if known.version and covers(known, entry.base_offset, entry.end_offset):
                continue
            known = writer.commit(first, partial(kept, entry=copies.copy(entry), of=manifest, now_ms=self.clock.now_ms()))

    def _truncated(self, log: LogReader, found: Divergence) -> Manifest | None:
        """Step 2: the manifest after the truncation, None if another writer has committed since the divergence was found."""
        manifest, fork = found.manifest, found.fork_offset
        assert fork is not None
        read, hashed = Pages(self.store, manifest.path).read, bool(signing_key_of(self.store))
        step: Truncation = truncation(manifest, fork, read, self.ids.new_id, hashed=hashed)
        self._check_useful(step, found, log)
        for page in step.made:
            put_own(self.store, self.clock, manifest.path.page(page.ref.name), page.body)
        is_done = False

        def change(before: Manifest) -> Manifest:
            nonlocal is_done
            after = step.applied(before, found.kept_id, self.clock.now_ms())
            is_done = after is not before
            return after

        writer = ManifestWriter(self.store, manifest.path, self.clock, self.ids, WRITER, manifest.writer_epoch)
        after = writer.commit(manifest, change)
        return after if is_done else None

    def _check_useful(self, step: Truncation, found: Divergence, log: LogReader) -> None:
        """Raises Conflict if the log would still contradict the archive after the truncation."""
        after = step.applied(found.manifest, found.kept_id, self.clock.now_ms())
        check_history(after, log.leader_epochs, log.log_end_offset)
