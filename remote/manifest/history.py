"""Whether a log and the archive of it are of one history: pure, from the leader epochs of both and where they end.

    offset    0          100        170       200
    archive   epoch 0    gap        epoch 4   end
    log       epoch 0    epoch 2    epoch 4   ···       one history: the log has the epoch that the archive goes on with
    log       epoch 0         end                       unproven: a leader that lost an unclean election at 100 may say the same

An epoch has one leader, who only appends, so two logs that have a record of one epoch agree on all before the earlier one.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

from local_log.errors import Conflict
from local_log.formats.checkpoints import EpochEntry, epoch_of, epochs_before, epochs_from
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.ranges import Range, Ranges, clipped, joined
from remote.manifest.model import Manifest, refuse_deleted
from remote.manifest.segment_entry import SegmentEntry

Epochs = tuple[EpochEntry, ...]

_REMEDY = "see tiering diverged show"


@dataclass(frozen=True, slots=True)
class History:
    """What an archive knows of a log from `start` up to `end`: its leader epochs, and in which ranges it has nothing of it.

    `behind` gives the leader epoch of the first batch behind a gap by where the gap ends, as far as that is known.
    """

    epochs: Epochs
    gaps: Ranges
    start: int
    end: int
    has_id: bool
    """Where a topic has no id, the log may be that of another topic of the same name, and an epoch in common proves nothing."""
    behind: Mapping[int, int]
    whole: Ranges
    """Where it has a record for each offset, or may have one."""

    @classmethod
    def of(cls, manifest: Manifest) -> "History":
        """That of a manifest."""
        gaps = joined(sorted((gap.start, gap.end) for gap in manifest.gaps))
        has_id = manifest.topic_id != ZERO_TOPIC_ID
        behind = {e.base_offset: e.leader_epochs[0].epoch for e in manifest.entries if e.leader_epochs} if gaps else {}
        items = (i for i in manifest.items if not isinstance(i, SegmentEntry) or not i.is_compacted)
        whole = joined(sorted((i.base_offset, i.end_offset) for i in items))
        return cls(manifest.leader_epochs, gaps, manifest.log_start_offset, manifest.end_offset, has_id, behind, whole)

    def below(self, offset: int) -> "History":
        """The part below an offset, without a gap at its end."""
        end = next((start for start, end in self.gaps if start < offset <= end), offset)
        return replace(self, epochs=epochs_before(self.epochs, end), gaps=clipped(self.gaps, 0, end), end=end)

    def is_continued_by(self, gap: Range, lineage: Epochs, log_end: int) -> bool:
        """Whether a log's records in a part of a gap are of this history: both have a record of one epoch after that part.

        The archive of a compacted log may name a later start of an epoch than it had, and the epoch before it seems to reach up
        to there. Of the epochs that began before the gap's end, only the last counts, and those that a batch shows.
        """
        after_part = {e.epoch for e, end in _with_ends(lineage, log_end) if e.start_offset < end and end >= gap[1]}
        gap_end = next(end for start, end in self.gaps if start <= gap[0] < end)
        first = self.behind.get(gap_end, self.epochs[-1].epoch)
        reaching = (e for e, end in _with_ends(self.epochs, self.end) if end > gap_end)
        return any(e.epoch in after_part for e in reaching if e.start_offset >= gap_end or e.epoch >= first)

    def with_epochs_in_gaps(self, lineage: Epochs, log_end: int, end_offset: int, *, is_clean: bool = False) -> "History":
        """The same with the epochs, and the earlier starts of epochs, that a log has below `end_offset` where this has a gap.

        Only of gaps where the log is known to be of this history, or all elections were clean. A log that was archived from its
        start on, in the middle of an epoch, names that offset as the epoch's start, and of the epochs before it nothing.
        """
        if not self.has_id:
            return self
        theirs = epochs_from(lineage, self.start)
        found = {e.epoch: e for e in self.epochs}
        for gap in self.gaps:
            start, end, behind = gap[0], min(gap[1], end_offset), epoch_of(self.epochs, gap[1])
            inside = [e for e in theirs if start <= e.start_offset < end and behind is not None and e.epoch <= behind]
            if inside and (is_clean or self.is_continued_by((start, end), lineage, log_end)):
                found |= {e.epoch: e for e in inside if e.epoch not in found or found[e.epoch].start_offset > e.start_offset}
        epochs = [found[epoch] for epoch in sorted(found)]
        # Where retention has moved the start into a gap, the epoch that was the last one before the gap seems to start there.
        starts_twice = len(epochs) > 1 and epochs[0].start_offset == epochs[1].start_offset == self.start
        after = tuple(epochs[1:] if starts_twice else epochs)
        return replace(self, epochs=after) if all(a.start_offset <= b.start_offset for a, b in pairwise(after)) else self

    def contradicts(self, lineage: Epochs, end_offset: int, beyond: Epochs = ()) -> bool:
        """Whether this, up to where it ends, and a log, whose epochs up to `end_offset` these are, are of different histories.

        `beyond` are epochs that the log has from there on.

        What each knows starts where its log started: of its first epoch it may name a later start than the other does, and of
        those before nothing. A replica that was built from a compacted log knows an epoch from the first batch on that was left
        of it (LeaderEpochFileCache.assign), or lacks one of which none was left. So below an epoch that both know, one may know
        less than the other. Everything else must agree, and a new epoch starts where the archive ends or later.
        """
        known = self.epochs
        if not known or not lineage:
            return False
        ours, theirs = {k.epoch for k in known}, {e.epoch for e in lineage}
        all_theirs = theirs | {e.epoch for e in beyond}
        shared = max(ours & all_theirs, default=None) if self.has_id else None
        if shared is not None:
            differ = _is_ahead(self._known_there(known, self.end), lineage, end_offset)
            differ = differ or _is_ahead(self._known_there(lineage, end_offset), known, self.end)
            differ = differ or self._has_others(lineage, shared, all_theirs)
        else:
            differ = any(not self._starts_as(e, lineage[0]) for e in lineage if e.epoch in ours)
        from_theirs, from_known = (lineage[0].epoch, known[0].epoch) if shared is None else (shared, shared)
        lacking = any(k.epoch > from_theirs and k.start_offset < end_offset and k.epoch not in theirs for k in known)
        strange = any(from_known < e.epoch < known[-1].epoch and e.epoch not in ours for e in lineage)
        early = any(e.start_offset < self.end for e in lineage if e.epoch > known[-1].epoch)
        return differ or lacking or strange or early

    def _known_there(self, epochs: Epochs, end: int) -> Epochs:
        """The epochs of which there was a record where they start.

        The first one may start where retention has moved the log start offset, at which there may be none.
        """
        second = epochs[1].start_offset if len(epochs) > 1 else end
        return epochs if clipped(self.whole, epochs[0].start_offset, second) else epochs[1:]

    def _has_others(self, lineage: Epochs, shared: int, theirs: Container[int]) -> bool:
        """Whether this has a record for each offset, which are of other epochs, where a log has an epoch or lacks one."""
        first, known = self.epochs[0].start_offset, set(self.epochs)
        lacking = (
            (k.start_offset, end)
            for k, end in _with_ends(self.epochs, self.end)
            if lineage[0].epoch < k.epoch < shared and k.epoch not in theirs
        )
        reaching = (
            (max(e.start_offset, first), next((k.start_offset for k in self.epochs if k.epoch >= e.epoch), self.end))
            for e in lineage
            if e not in known
        )
        return any(clipped(self.whole, *part) for part in (*lacking, *reaching))

    def _starts_as(self, epoch: EpochEntry, their_first: EpochEntry) -> bool:
        """Whether an epoch that this knows starts where it says, or is the first one of the log that begins later."""
        at = next(n for n, known in enumerate(self.epochs) if known.epoch == epoch.epoch)
        if epoch.start_offset <= self.epochs[at].start_offset:
            return epoch.start_offset == self.epochs[at].start_offset or at == 0
        is_before_next = at + 1 == len(self.epochs) or epoch.start_offset < self.epochs[at + 1].start_offset
        return epoch == their_first and is_before_next


def _is_ahead(epochs: Iterable[EpochEntry], others: Epochs, end: int) -> bool:
    """Whether the one names an epoch for an offset, below `end`, at which the other knows a later one already."""
    starts = (e for e in epochs if e.start_offset < end)
    return any((known := epoch_of(others, e.start_offset)) is not None and known > e.epoch for e in starts)


def check_history(
    manifest: Manifest, lineage: Epochs, end_offset: int, *, log_end: int | None = None, is_clean: bool = False
) -> None:
    """Raises Conflict where a log with these leader epochs up to `end_offset` contradicts the archive, and TopicDeleted.

    `log_end`: how far `lineage` tells of the log, if further; what it has behind a gap proves what it has in it. `is_clean` as in
    `check_copy`.
    """
    refuse_deleted(manifest)
    merged_lineage(manifest, lineage, end_offset, log_end=log_end, is_clean=is_clean)


def check_copy(manifest: Manifest, offsets: Range, lineage: Epochs, log_end: int, *, is_clean: bool = False) -> None:
    """Raises Conflict where these offsets of a log must not be added to the archive, and TopicDeleted: ask before copying.

    `lineage` are the leader epochs of the log up to `log_end`. `is_clean`: somebody knows that no election was unclean.
    """
    refuse_deleted(manifest)
    merged_lineage(manifest, lineage, offsets[1], log_end=log_end, is_clean=True)  # what nothing proves is told below
    if not is_clean:
        refuse_unproven(manifest, offsets, lineage, log_end)


def refuse_unproven(manifest: Manifest, offsets: Range, lineage: Epochs, log_end: int) -> None:
    """Raises Conflict if a log does not show that its records in a gap are of the history with which the archive goes on."""
    known, below = History.of(manifest), epochs_before(lineage, log_end)
    if not known.epochs or not below:
        return  # nobody can tell
    gaps = ((gap.start, gap.end) for gap in manifest.gaps)  # also of what compaction has taken, as the archive was told
    for gap in joined(clipped(gaps, max(offsets[0], known.start), offsets[1])):
        if not known.is_continued_by(gap, below, log_end):
            raise Conflict(
                f"the archive has a gap [{gap[0]}, {gap[1]}) and leader epochs {_pairs(known.epochs)}; the log has epochs "
                f"{_pairs(below)} and ends at {log_end}. After an unclean election it may have other records in the gap than its "
                "leader has, so they are not copied. Offload again when this replica has caught up with its leader, or offload "
                "another one; if neither is possible, and the topic never had an unclean leader election, offload this one with "
                "--assume-clean-elections"
            )


def merged_lineage(
    manifest: Manifest,
    lineage: Epochs,
    end_offset: int,
    batches: Epochs = (),
    *,
    log_end: int | None = None,
    is_clean: bool = False,
) -> Epochs:
    """The archive's lineage and the epochs after it, where the log's, up to `end_offset`, is of the same history.

    `lineage` are the leader epochs of the log up to `log_end`, which is `end_offset` if it is not given; `is_clean` as in
    `check_copy`. Where one of the two has no lineage, the epochs of `batches` to come, and of those that the archive has, must
    agree at least; if the log has none, as after a loss of power, the batches tell of new ones. Raises Conflict where it is not.
    """
    log_end = end_offset if log_end is None else log_end
    lineage, below = epochs_before(lineage, log_end), epochs_before(lineage, end_offset)
    history = History.of(manifest)
    if not history.epochs:  # what it has from behind the copy on has epochs, too
        end_offset = max(end_offset, min(log_end, history.end))
        below = epochs_before(lineage, end_offset)
    if not below or not history.epochs:
        _refuse_strange(manifest, below, end_offset, batches)
        return _continued(history.epochs, batches) if history.epochs else below
    history = history.with_epochs_in_gaps(lineage, log_end, end_offset, is_clean=is_clean)
    if history.contradicts(below, end_offset, lineage[len(below) :]):
        raise Conflict(
            f"the log's leader epochs are {_pairs(below)} up to offset {end_offset} and the archive's {_pairs(history.epochs)} "
            f"up to {history.end}: this log is of another history, so it is not archived over it; {_REMEDY}"
        )
    return _continued(history.epochs, below)


def _continued(epochs: Epochs, later: Epochs) -> Epochs:
    return epochs + tuple(e for e in later if e.epoch > epochs[-1].epoch)


def _with_ends(epochs: Epochs, end: int) -> Iterable[tuple[EpochEntry, int]]:
    return zip(epochs, (*(e.start_offset for e in epochs[1:]), end), strict=True) if epochs else ()


def _refuse_strange(manifest: Manifest, lineage: Epochs, end_offset: int, batches: Epochs) -> None:
    """Raises Conflict where one history has another epoch than the other where that one has a batch.

    `batches` are the epochs of those to come, each with the first offset that has it. Of the archive's the last epoch of the
    newest segment is enough: logs that share an epoch's offset share all below. A lineage may be late, never early.
    """
    newest = max((e for e in manifest.entries if e.leader_epochs), key=lambda e: e.end_offset, default=None)
    last = newest.leader_epochs[-1:] if newest is not None else ()

    def is_strange(batch: EpochEntry, epochs: Epochs, end: int) -> bool:
        expected = epoch_of(epochs, batch.start_offset)
        if expected is None or expected == batch.epoch:
            return False
        if expected < batch.epoch and batch.start_offset >= end:
            return False  # a new epoch
        may_be_late = manifest.topic_id != ZERO_TOPIC_ID and batch.epoch in {e.epoch for e in epochs}
        return expected > batch.epoch or not may_be_late

    strange = [b for b in last if is_strange(b, lineage, end_offset)]
    strange += [b for b in batches if is_strange(b, manifest.leader_epochs or last, manifest.end_offset)]
    if strange:
        raise Conflict(
            f"there are batches of leader epochs {_pairs(strange)}, where the log's epochs are {_pairs(lineage)} and the "
            f"archive's {_pairs(manifest.leader_epochs or last)}: this log is of another history, so it is not archived over it; "
            f"{_REMEDY}"
        )


def _pairs(entries: Iterable[EpochEntry]) -> str:
    return ", ".join(f"{e.epoch} from {e.start_offset}" for e in entries) or "unknown"
