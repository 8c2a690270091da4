"""Partitions that are gone from their log directories: records that in each manifest, with the losses.

Users move partitions between brokers and delete topics. Nothing is lost if another log directory has the partition, or if all of
it was archived. Until the manifest has recorded that, offsets that were not archived count as lost, unless another log directory
of this agent has the partition now. A partition is shown as long as offsets of it are lost or may be, also after a restart and
if its topic was made again. If this process was asked to delete the topic, the manifest has the loss as acknowledged. Where
nobody has recorded the log while it was there, another broker is given some time to do so.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from local_log.errors import LogError
from local_log.log_dir import LogDir
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest.losses import GONE, acknowledged, source_gone
from remote.manifest.model import Manifest, never_archived
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import first_seen, source_seen
from remote.store.api import ObjectStore
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job, Kind, Waiting
from tiering.agent.state import AgentState, Changes
from tiering.agent.tasks.copy import LOST_MS
from tiering.agent.tasks.task import nothing_to_do
from tiering.agent.view import PartitionView
from tiering.agent.watch import Mark
from tiering.lag.archived import NOTHING, Archived
from tiering.lag.local_log import LogSeen


@dataclass(slots=True)
class LostPartitionsTask:
    """Tells the manifests of partitions that were archived and are gone, and reports what may be lost, and then what is."""

    store: ObjectStore
    clock: Clock
    ids: Ids
    kind: Kind = Kind.lost
    attempts_max: int | None = None
    was_deleted: Callable[[str], bool] = lambda topic_id: False
    _marks: dict[Job, Mark] = field(default_factory=dict)

    def plan(self, state: AgentState, changes: Changes, now_ms: int) -> None:
        """A partition is due when it is gone, and no more when it is there again."""
        for _, mark in changes.noted:
            self._forget(Job(self.kind, mark.folder, mark.topic_id or ""), state)
        for last, mark in (*changes.dropped, *changes.vanished):
            if last.is_left_alone:
                continue
            view = last if last.seen is not None else state.there.remembered(mark, last.archived, now_ms)
            if view is None or view.seen is None:  # no look could read it, but a turn may have
                self._ask_its_manifest(mark, mark.topic_id, state, now_ms)
                continue
            job = Job(self.kind, mark.folder, view.seen.topic_id)
            is_asked_for = self.was_deleted(view.seen.topic_id)
            is_no_loss = is_asked_for or bool(_elsewhere(view, state))
            gone = replace(view, gone_ms=now_ms, is_gone_recorded=is_no_loss)
            state.gone[job], self._marks[job] = gone, mark
            state.queue.bring_forward(job, now_ms)
            if is_no_loss:
                continue
            state.there.keep_gone(mark, view.seen, recorded_ms=now_ms if view.is_recorded else 0)
            if (records := view.unprotected(now_ms).records) > 0:
                state.report(
                    f"{view.partition} is gone from {view.log_dir}, and {records} of its offsets were not archived: if no "
                    "other broker has them, they are lost; see docs/operations.md, Offsets were lost"
                )
        for folder, topic_id in changes.formers:
            self._ask_its_manifest(state.marks.get(folder), topic_id, state, now_ms)

    def turn(self, job: Job, state: AgentState) -> Callable[[], Outcome]:
        """Tells the manifest of one partition that its log is gone."""
        view = state.gone.get(job)
        if view is None or view.seen is None:
            return nothing_to_do(job)
        moved_to = tuple(mark.log_dir for mark in _elsewhere(view, state))
        return partial(self._tell_manifest, job, self._marks[job], view, view.seen, moved_to)

    def done(self, outcome: Outcome, was: Waiting, state: AgentState, now_ms: int) -> None:
        """Takes in what the manifest says, and asks it again some time while something is lost."""
        job = outcome.job
        view = state.gone.get(job)
        if view is None or job in state.queue.waiting:
            return
        if outcome.due_ms is not None:
            state.queue.put(job, Waiting(outcome.due_ms))
            return
        after: PartitionView = replace(view, archived=outcome.archived, is_gone_recorded=True)
        moved = _elsewhere(view, state)
        if moved or not after.lost_offsets:
            for mark in moved:  # what is lost is told there
                state.queue.bring_forward(Job(Kind.copy, mark.folder), now_ms)
            state.there.forget(self._marks[job], job.topic_id)
            self._forget(job, state)
            return
        if after.lost_offsets > (view.lost_offsets if view.is_gone_recorded else 0):
            state.report(after.lost_message())
        if after.seen is not None:
            state.there.keep_gone(self._marks[job], after.seen, recorded_ms=now_ms)
        state.gone[job] = after
        state.queue.put(job, Waiting(now_ms + LOST_MS))

    def _ask_its_manifest(self, mark: Mark | None, topic_id: str | None, state: AgentState, now_ms: int) -> None:
        """Of a topic's partition that nobody remembers its manifest knows all that is known."""
        if mark is None or topic_id is None or (job := Job(self.kind, mark.folder, topic_id)) in state.gone:
            return
        seen = LogSeen((), 0, 0, NOTHING, NOTHING, topic_id, 0)
        state.there.keep_gone(mark, seen, recorded_ms=now_ms)
        state.gone[job] = PartitionView(mark.log_dir.path, mark.partition, seen=seen, gone_ms=now_ms)
        self._marks[job] = mark
        state.queue.bring_forward(job, now_ms)

    def _forget(self, job: Job, state: AgentState) -> None:
        state.gone.pop(job, None)
        self._marks.pop(job, None)
        state.queue.remove(job)

    def _tell_manifest(self, job: Job, mark: Mark, view: PartitionView, seen: LogSeen, moved_to: tuple[LogDir, ...]) -> Outcome:
        """A partition that was never recorded may have no manifest. One that has moved has to be recorded there first."""
        try:
            source, now_ms = mark.log_dir.mounted_id(), self.clock.now_ms()
            others = {log_dir.mounted_id() for log_dir in moved_to}
            if source in others:
                return Outcome(job, is_left_alone=True)  # without a `directory.id` the directories of a broker share one
            path = PartitionPath(mark.partition.topic, seen.topic_id, mark.partition.partition)
            stored = load_newest(self.store, path)
            is_new = not view.is_recorded and view.unprotected(view.gone_ms).records > 0
            if stored is None and (not is_new or self.was_deleted(seen.topic_id)):
                return Outcome(job, is_left_alone=True)
            if stored is None and now_ms < view.gone_ms + LOST_MS:
                return Outcome(job, due_ms=view.gone_ms + LOST_MS)
            newest = _nothing_of(path, seen) if stored is None else stored.manifest
            if newest.is_deleted or not (is_new or source in newest.local_log_start_offsets):
                return Outcome(job, is_left_alone=True)
            there = newest.local_log_start_offsets.keys() - newest.gone.keys()
            if others and not others & there:
                return Outcome(job, due_ms=now_ms + LOST_MS)
            writer = ManifestWriter(self.store, path, self.clock, self.ids, source, newest.writer_epoch)
            change = partial(_gone, seen=seen, source=source, now_ms=now_ms, is_new=is_new)
            if self.was_deleted(seen.topic_id):
                change = partial(_deleted, change, now_ms=now_ms)
            return Outcome(job, archived=Archived.of(writer.commit(_nothing_of(path, seen), change)))
        except LogError as e:
            return Outcome(job, error=e)


def _elsewhere(view: PartitionView, state: AgentState) -> list[Mark]:
    """Where other log directories of this agent have the log that is gone from one."""
    others = (log_dir.path for log_dir in state.log_dirs if log_dir.path != view.log_dir)
    marks = (state.marks.get(f"{path}/{view.partition}") for path in others)
    return [mark for mark in marks if mark is not None and mark.topic_id == view.topic_id]


def _nothing_of(path: PartitionPath, seen: LogSeen) -> Manifest:
    return never_archived(path.topic, path.topic_id, path.partition, seen.start_offset)


def _gone(before: Manifest, seen: LogSeen, source: str, now_ms: int, *, is_new: bool) -> Manifest:
    """The manifest after the log has gone, with what the log was where nobody has recorded that.

    It may have been gone before, and have come back for a short time.
    """
    has_come_back = source in before.gone and seen.end_offset > before.local_log_end_offsets.get(source, 0)
    if is_new and not before.is_deleted and (has_come_back or source not in before.local_log_start_offsets):
        record = source_seen if before.version else first_seen
        before = record(before, source, seen.start_offset, seen.end_offset)
    return source_gone(before, source, seen.end_offset, now_ms)


def _deleted(gone: Callable[[Manifest], Manifest], before: Manifest, now_ms: int) -> Manifest:
    after = gone(before)
    lost = ((loss.start, loss.end) for loss in after.losses if loss.reason == GONE)  # by whichever task recorded it
    return acknowledged(after, lost, "the deletion of the topic", now_ms)
