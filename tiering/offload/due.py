"""What is due of one log: its segments beside its newest manifest, and what an offload would do with each of them."""

from collections.abc import Iterable
from dataclasses import dataclass

from local_log.errors import FILE_ERRORS, Conflict, NotFound, TopicDeleted
from local_log.log_reader import LogReader
from local_log.ranges import Range, uncovered
from remote import archive
from remote.keys import PartitionPath
from remote.manifest.gaps import NO_BATCH
from remote.manifest.history import check_copy
from remote.manifest.losses import new_losses
from remote.manifest.model import Manifest, covers, never_archived, refuse_deleted
from remote.manifest.store import Stored, load_newest
from remote.manifest.transitions import emptied
from remote.store.api import ObjectStore
from tiering.losses.former_topics import former_ids
from tiering.losses.report import end_of, log_recorded
from tiering.offload.below_log_start import Committed, committed_from, why_start_is_unknown
from tiering.offload.cleaned import Cleaned, cleaned_segments
from tiering.offload.local_segment import LocalSegment, local_segments, stable_offset
from tiering.offload.other_records import refuse_other_records
from tiering.offload.plan import Decision, lost_offsets, plan_offload


@dataclass(frozen=True, slots=True)
class OffloadPlan:
    """What an offload of one log would do, and from what it starts. `formers` are ids of topics that had its name before.

    `cleaned` are the segments that were cleaned since they were archived, and are to be copied again. Users are known to have
    deleted the records below `deleted_to`. What the log has below `committed_from` is not copied.
    """

    log: LogReader
    path: PartitionPath
    known: Stored
    decisions: tuple[Decision, ...]
    formers: tuple[str, ...] = ()
    cleaned: tuple[Cleaned, ...] = ()
    deleted_to: int = 0
    committed_from: int = 0

    @property
    def manifest(self) -> Manifest:
        """The newest version, a version 0 where nothing is archived yet."""
        return self.known.manifest

    @property
    def start(self) -> int:
        """The first offset of what the log has: in an inactive segment also below the log start offset, since it is copied."""
        for segment in (d.segment for d in self.decisions):
            if segment.end_offset is None:
                return max(self.log.log_start_offset, segment.base_offset)
            if segment.size or not segment.is_empty:
                return segment.base_offset
        return self.log.log_start_offset

    @property
    def empty(self) -> tuple[Range, ...]:
        """The segments in which compaction has left no batch."""
        segments = ((d.segment, d.segment.end_offset) for d in self.decisions if d.reason == NO_BATCH)
        return tuple((segment.start_offset, end) for segment, end in segments if end)

    def losses(self, source: str, now_ms: int) -> tuple[Decision, ...]:
        """Those that an offload would record."""
        return tuple(map(lost_offsets, new_losses(self.manifest, self.log_recorded(self.manifest, source, now_ms))))

    def log_recorded(self, manifest: Manifest, source: str, now_ms: int, *, is_clean: bool = False) -> Manifest:
        """The manifest with the state of the log recorded; `is_clean` as in `check_copy`."""
        after, first = self.emptied(manifest, is_clean=is_clean), self.committed_from
        return log_recorded(after, self.log, self.start, source, now_ms, self.deleted_to, committed_from=first)

    def emptied(self, manifest: Manifest, *, is_clean: bool = False) -> Manifest:
        """The manifest in which gaps are of compaction where it has left no batch in the log, if the log may fill them."""
        gaps = ((gap.start, gap.end) for gap in manifest.gaps if not gap.is_of_compaction) if self.empty else ()
        whole = (gap for gap in gaps if not uncovered(self.empty, *gap))
        return emptied(manifest, [gap for gap in whole if self._may_fill(manifest, gap, is_clean=is_clean)])

    def check_copy(self, manifest: Manifest, offsets: Range, *, is_clean: bool = False) -> None:
        """As `remote.manifest.history.check_copy`. Raises Conflict, TopicDeleted, Corrupt, NotFound."""
        # Of a log that has lost its checkpoint a batch tells; where nothing is to be proven, a damaged one does no harm.
        lineage = self.log.leader_epochs or (self.log.last_epoch if manifest.gaps else ())
        check_copy(manifest, offsets, lineage, end_of(self.log), is_clean=is_clean)

    def _may_fill(self, manifest: Manifest, gap: Range, *, is_clean: bool) -> bool:
        try:
            self.check_copy(manifest, gap, is_clean=is_clean)
        except (*FILE_ERRORS, Conflict, NotFound, TopicDeleted):
            return False
        return True


def plan(log: LogReader, store: ObjectStore, *, source: str = "", replaces: bool = False, deleted_to: int = 0) -> OffloadPlan:
    """The plan for one log of a source. Reads only, and nothing of a log that has only its active segment.

    `replaces`: what was cleaned since it was archived is archived again, in place of what the archive has. `deleted_to`: the
    records below were deleted by users, and are not lost if the archive lacks them.

    Raises Corrupt, NotFound, Unreadable, Unavailable, Invalid for a topic that was deleted from the archive, Conflict for a log
    with other records than the archive.
    """
    path = PartitionPath(log.partition.topic, log.topic_id, log.partition.partition)
    known = load_newest(store, path) or Stored(not_archived_yet(path, log), "")
    refuse_deleted(known.manifest)
    segments = local_segments(log)
    committed = _committed(log, segments, known.manifest)
    refuse_other_records(log, segments, known.manifest)
    stable = stable_offset(log) if len(segments) > 1 else log.log_start_offset
    unknown = why_start_is_unknown(log) if _has_due(segments, known.manifest) else ""
    stable = -1 if unknown else stable  # no segment ends at or below that, so that all wait
    replaceable = (s for s in segments if s.base_offset >= committed.start)
    cleaned = cleaned_segments(log, replaceable, stable, known.manifest, store) if replaces and known.manifest.version else ()
    decisions = plan_offload(
        segments, stable, known.manifest, unproven=unknown or log.unproven, cleaned=cleaned, committed=committed
    )
    formers: tuple[str, ...] = ()
    is_new_source = bool(source) and source not in known.manifest.local_log_start_offsets
    if log.segments and (is_new_source or not known.manifest.version):
        is_known, formers = former_ids(store, path)
        if is_known and not known.manifest.version:
            archive.refuse_deleted_topic(store, path.topic, path.topic_id)
    return OffloadPlan(log, path, known, decisions, formers, cleaned, deleted_to, committed.start)


def _committed(log: LogReader, segments: Iterable[LocalSegment], manifest: Manifest) -> Committed:
    """As `committed_from`; all of it where nothing is to be copied from below the log start offset or the first leader epoch.

    Files are read for it.
    """
    first = max([log.log_start_offset, *(epoch.start_offset for epoch in log.leader_epochs[:1])])
    return committed_from(log) if _has_due((s for s in segments if s.base_offset < first), manifest) else Committed()


def _has_due(segments: Iterable[LocalSegment], manifest: Manifest) -> bool:
    return any(s.end_offset is not None and not covers(manifest, s.base_offset, s.end_offset) for s in segments)


def not_archived_yet(path: PartitionPath, log: LogReader) -> Manifest:
    """The manifest of version 0 of a log."""
    return never_archived(path.topic, path.topic_id, path.partition, log.log_start_offset)
