"""Copies the segments of one log that are due into the archive: a plan, then one copy and one commit for each segment.

A damaged segment is refused, and a segment that its broker changes during the copy is skipped. Both are reported. The copy goes
on with the other segments, and the manifest has a gap for the missing one until a later copy fills it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from local_log.errors import FILE_ERRORS, Invalid, LogError, Newer, NoKey, NoSuchFile, NotFound, WrongKey
from local_log.file_range import FileState
from local_log.formats.checkpoints import epochs_before, epochs_with_batches
from local_log.formats.filenames import LOG
from local_log.log_reader import LogReader
from local_log.ranges import Range
from local_log.segment_reader import Segment
from remote.clock import Clock, Ids
from remote.manifest.entries import Entries
from remote.manifest.gaps import NO_BATCH
from remote.manifest.held_manifest import HeldManifest
from remote.manifest.history import check_history
from remote.manifest.losses import GONE, new_losses
from remote.manifest.model import LIMITS, Limits, Manifest, covers
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter
from remote.manifest.superseding import Superseding, refuse_too_many
from remote.manifest.transitions import segment_copied, source_seen
from remote.segment.check import LogSegmentData, SegmentCopy
from remote.segment.repair import checked_copy
from remote.segment.upload import NO_TRANSFORMS, copy_segment
from remote.store.api import ObjectStore
from remote.transforms.encoder import Transforms
from tiering.losses.former_topics import record_former_topic_gone
from tiering.losses.report import end_of
from tiering.offload.changed import Changed
from tiering.offload.cleaned import Cleaned, cleaned_up_to
from tiering.offload.cleaned_check import CleanedCheck, check_emptied, check_overlap, reading_with
from tiering.offload.due import OffloadPlan, not_archived_yet
from tiering.offload.emptied import Emptied, refuse_emptied
from tiering.offload.plan import Action, Decision, lost_offsets
from tiering.offload.source import checked_state, counted, segment_data, segment_end
from tiering.offload.supersede import supersede

COPIED: Final = "copied"
REPLACED: Final = "replaced"
REFUSED: Final = "refused"

_OF_A_SEGMENT: Final = (*FILE_ERRORS, NoKey, WrongKey, NotFound)
"""The errors that leave one segment, or one group of them, as it is archived, and concern no other."""

Check = Callable[[list[SegmentCopy], list[LogSegmentData]], None]


@dataclass(frozen=True, slots=True)
class OffloadRun:
    """What the offloads of many logs share: the archive, the source id that manifests record, and how segments are stored.

    `progress` is called with the number of bytes read from log files to be sent. `assumes_clean_elections`: what a log has in a
    gap of the archive is copied, too, if it does not show that it is of the archive's history.
    """

    store: ObjectStore
    clock: Clock
    ids: Ids
    source: str
    progress: Callable[[int], None]
    transforms: Transforms = NO_TRANSFORMS
    limits: Limits = LIMITS
    assumes_clean_elections: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """The result for one segment: its entry, or the error that stopped the copy; neither if there was nothing to do.

    A result without a decision is for the log, which could not be planned; without an error too, the log is gone. `notes` name
    the files of a copied segment that were rebuilt, or say why a log was not offloaded. `manifest` is the version in which the
    segment has taken the place of others.
    """

    decision: Decision | None
    entry: SegmentEntry | None = None
    error: LogError | None = None
    notes: tuple[str, ...] = ()
    manifest: Manifest | None = None

    @property
    def action(self) -> str:
        """What became of the segment: copied, replaced, refused, or what the decision says."""
        if self.entry or self.error:
            is_replaced = self.decision is not None and self.decision.action is Action.replace_archived
            return (REPLACED if is_replaced else COPIED) if self.entry else REFUSED
        return str(self.decision.action if self.decision else Action.skipped)

    @property
    def reason(self) -> str:
        """Why, as a text; empty if there is nothing to say."""
        why = self.decision.reason if self.decision else ""
        said = [str(self.error)] if self.error else [f"nothing to copy: {why}" if why == NO_BATCH else why, *self.notes]
        return "; ".join(text for text in said if text)

    @property
    def is_lost(self) -> bool:
        """Whether its offsets are lost: the log deleted them before they were archived."""
        return self.decision is not None and self.decision.action is Action.lost


def offload(due: OffloadPlan, run: OffloadRun) -> Iterator[Done]:
    """Executes a plan and yields a result for each segment.

    Every error of a segment is in its result. An error of the store ends the log, since the following segments would fail too.
    The manifest records a log that is new or whose start has moved, with the losses, and gaps that compaction emptied. This is
    part of the first copy's commit, or a commit at the end if nothing was copied. Before that the manifests of former topics
    record that their logs are gone.
    """
    for done in _of_formers(due, run):
        yield done
        if done.error is not None and not isinstance(done.error, (*FILE_ERRORS, Newer, NoKey, WrongKey)):
            return  # once this topic's manifest has the log, nobody asks for former topics
    copies = SegmentCopies(due, run)
    planned = {s.base_offset: (s, decision) for s, decision in zip(due.log.segments, due.decisions, strict=True)}
    for segment, decision in planned.values():
        if decision.action is Action.replace_archived:
            continue  # after the others, which nothing has a copy of
        done = copies.copy_one(segment, decision) if decision.action is Action.copy else Done(decision)
        yield from copies.newly_lost()
        yield done
        if copies.has_stopped:
            return
    for group in due.cleaned:
        listed = [planned[s.base_offset] for s in group.segments]
        if all(decision.action is Action.replace_archived for _, decision in listed):
            yield from copies.replace_cleaned(group, listed)
            yield from copies.newly_lost()
        if copies.has_stopped:
            return
    yield from _contradiction(due.log, copies.held.manifest, is_clean=run.assumes_clean_elections)
    yield from copies.record_log()


class SegmentCopies:
    """The copies of one log's segments, one after the other, by a writer that holds the manifest.

    `has_stopped`: the store failed or refused a commit, and the following segments would fail too.
    """

    def __init__(self, due: OffloadPlan, run: OffloadRun) -> None:
        writer = ManifestWriter(run.store, due.path, run.clock, run.ids, run.source, due.manifest.writer_epoch, run.limits)
        self.held = HeldManifest(writer, not_archived_yet(due.path, due.log), due.known)
        self.has_stopped = False
        self._due = due
        self._run = run
        self._gap_reason = "never archived: an earlier segment had left the local log before"
        self._lost: tuple[Range, ...] = ()

    def copy_one(self, listed: Segment, decision: Decision) -> Done:
        """Uploads a segment and commits it. Every error is in the result."""
        segment = replace(listed, next_base_offset=decision.segment.end_offset)
        try:
            known, start, end = self.held.refresh(), decision.segment.start_offset, segment_end(segment)
            if covers(known, start, end):
                return Done(_by_somebody_else(decision))
            self._due.check_copy(known, (start, end), is_clean=self._run.assumes_clean_elections)
            check = partial(check_overlap, self._due.log, known, self._run.store, reading_with(self._run.transforms))
            ((entry, notes),) = self._uploaded([segment], check, start)
        except Emptied:
            return self._as_emptied(decision)
        except Changed as e:
            self._gap_reason = f"skipped: {e}"
            return Done(replace(decision, action=Action.skipped, reason=str(e)))
        except _OF_A_SEGMENT as e:
            self._gap_reason = f"refused: {e}"
            return Done(decision, error=e)
        except LogError as e:
            self.has_stopped = True
            return Done(decision, error=e)
        return self._committed(decision, entry, notes)

    def _as_emptied(self, decision: Decision) -> Done:
        """Plans a segment anew that was emptied since: the archive goes on past it, as past those that were empty before."""
        empty = Decision(replace(decision.segment, is_empty=True, size=0), Action.keep, NO_BATCH)
        self._due = replace(self._due, decisions=tuple(empty if d is decision else d for d in self._due.decisions))
        return Done(empty)

    def replace_cleaned(self, group: Cleaned, listed: list[tuple[Segment, Decision]]) -> Iterator[Done]:
        """Uploads the segments of a group, and commits them in place of what is archived of it. Every error is in a result."""
        decisions = [decision for _, decision in listed]
        try:
            known = self.held.refresh()
            try:
                refuse_too_many(known, len(group.entries), self._run.limits.deleting_max)
            except Invalid as e:  # what is archived stays for now, and nothing is wrong
                yield from (Done(replace(decision, action=Action.archived, reason=str(e))) for decision in decisions)
                return
            done = self._replaced(group, listed)
        except Changed as e:
            yield from (Done(replace(decision, action=Action.skipped, reason=str(e))) for decision in decisions)
        except LogError as e:
            self.has_stopped = not isinstance(e, _OF_A_SEGMENT)
            yield Done(decisions[0], error=e)
            why = "archived as it was before it was compacted"
            yield from (Done(replace(decision, action=Action.archived, reason=why)) for decision in decisions[1:])
        else:
            yield from done

    def _replaced(self, group: Cleaned, listed: list[tuple[Segment, Decision]]) -> list[Done]:
        due, run = self._due, self._run
        known = self.held.manifest
        check_history(known, due.log.leader_epochs, group.end, log_end=end_of(due.log), is_clean=run.assumes_clean_elections)
        ends = {s.base_offset: s.end_offset for s in group.copies}
        check = CleanedCheck(due.log, group, known, cleaned_up_to(due.log), run.store, reading_with(run.transforms))
        check_emptied(s for s, _ in listed if s.base_offset not in ends)
        uploaded = self._uploaded(
            [replace(s, next_base_offset=ends[s.base_offset]) for s, _ in listed if s.base_offset in ends], check
        )
        check_emptied(s for s, _ in listed if s.base_offset not in ends)
        if not supersede(self.held, group, partial(self._in_place, group, [entry for entry, _ in uploaded])):
            return [Done(_by_somebody_else(decision)) for _, decision in listed]
        entries = {entry.base_offset: (entry, notes) for entry, notes in uploaded}
        emptied = f"{NO_BATCH}, and the archive says so now"
        return [
            Done(decision, *entries[segment.base_offset][:1], notes=entries[segment.base_offset][1], manifest=self.held.manifest)
            if segment.base_offset in entries
            else Done(replace(decision, action=Action.archived, reason=emptied))
            for segment, decision in listed
        ]

    def _in_place(self, group: Cleaned, entries: list[SegmentEntry], step: Superseding, before: Manifest) -> Manifest:
        lineage = epochs_before(self._due.log.leader_epochs, group.end)
        now_ms, deleting_max = self._run.clock.now_ms(), self._run.limits.deleting_max
        return step.applied(self._seen(before), entries, lineage, now_ms, deleting_max=deleting_max)

    def newly_lost(self) -> Iterator[Done]:
        """The losses that the last commit recorded, each yielded once."""
        lost, self._lost = self._lost, ()
        return (Done(lost_offsets(offsets)) for offsets in lost)

    def record_log(self) -> Iterator[Done]:
        """Commits the state of the log if no copy has recorded it. Yields new losses and errors."""
        if self._seen(self.held.manifest) == self.held.manifest:
            return
        try:
            self.held.commit(self._seen)
        except LogError as e:
            yield Done(None, error=e)
        else:
            yield from self.newly_lost()

    def _uploaded(
        self, segments: list[Segment], check: Check | None = None, start: int = 0
    ) -> list[tuple[SegmentEntry, tuple[str, ...]]]:
        """Uploads the segments' objects, each from offset `start` on, once all of them are checked.

        Raises Changed if their broker changed one meanwhile.
        """
        due, run = self._due, self._run
        before = [checked_state(due.log, segment) for segment in segments]
        for segment, state in zip(segments, before, strict=True):
            if not state.size:
                refuse_emptied(due.log, segment)
        try:
            datas = [segment_data(due.log, segment, start) for segment in segments]
            copies = [checked_copy(data) for data in datas]
            if check is not None:
                check(copies, datas)
            sent = [counted(copy, run.progress) for copy in copies]
            entries = [copy_segment(run.store, due.path, copy, run.clock, run.ids, run.transforms) for copy in sent]
        except NoSuchFile as e:
            raise Changed(f"{e}; its broker has deleted or renamed it in the meantime") from e
        except FILE_ERRORS:
            _refuse_changed(due.log, segments, before)  # a change by the broker is not damage
            raise
        _refuse_changed(due.log, segments, before)
        return [(entry, copy.data.notes) for entry, copy in zip(entries, copies, strict=True)]

    def _committed(self, decision: Decision, entry: SegmentEntry, notes: tuple[str, ...]) -> Done:
        try:
            known = self.held.commit(partial(self._with_entry, entry, self._gap_reason))
            holds = Entries.of(self._run.store, known).holds(entry)
        except LogError as e:
            self.has_stopped, self._lost = True, ()
            return Done(decision, error=e)
        return Done(decision, entry=entry, notes=notes) if holds else Done(_by_somebody_else(decision))

    def _with_entry(self, entry: SegmentEntry, gap_reason: str, before: Manifest) -> Manifest:
        due, known = self._due, self._seen(before)
        epochs, end = epochs_with_batches(due.log.leader_epochs, entry.leader_epochs), end_of(due.log)
        now_ms, is_clean = self._run.clock.now_ms(), self._run.assumes_clean_elections
        copied = segment_copied(known, entry, epochs, gap_reason, now_ms, log_end=end, is_clean=is_clean)
        return known if copied is known else source_seen(due.emptied(copied, is_clean=is_clean), self._run.source, due.start, end)

    def _seen(self, before: Manifest) -> Manifest:
        after = self._due.log_recorded(
            before, self._run.source, self._run.clock.now_ms(), is_clean=self._run.assumes_clean_elections
        )
        self._lost = new_losses(before, after)
        return after


def _refuse_changed(log: LogReader, segments: list[Segment], before: list[FileState]) -> None:
    for segment, state in zip(segments, before, strict=True):
        if checked_state(log, segment) != state:
            raise Changed(f"{segment.path(LOG)}: its broker has rewritten it in the meantime; offload again")


def _contradiction(log: LogReader, known: Manifest, *, is_clean: bool) -> Iterator[Done]:
    """The error of a log that ends below the archive's end but has another history. By its offsets it would seem to be archived.

    Checked only if the active segment starts below the archive's end, which is rare, since the check reads a file.
    """
    if not log.segments or log.segments[-1].base_offset >= known.end_offset:
        return
    end = log.segments[-1].base_offset
    try:
        check_history(known, log.leader_epochs, end, log_end=end_of(log), is_clean=is_clean)
    except LogError as e:
        yield Done(None, error=e)


def _of_formers(due: OffloadPlan, run: OffloadRun) -> Iterator[Done]:
    for topic_id in due.formers:
        former = replace(due.path, topic_id=topic_id)
        try:
            for offsets in record_former_topic_gone(run.store, former, run.clock, run.ids, run.source):
                yield Done(lost_offsets(offsets, f"of the former topic with id {topic_id}: {GONE}"))
        except LogError as e:
            yield Done(None, error=e)


def _by_somebody_else(decision: Decision) -> Decision:
    return Decision(decision.segment, Action.archived, "archived by another process in the meantime")
