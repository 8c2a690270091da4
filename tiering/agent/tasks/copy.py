"""The copy of a partition's segments, one a turn: a plan is kept between turns, for as many partitions as memory may hold."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from threading import Lock
from typing import Final

from local_log.errors import FILE_ERRORS, LogError, NoSuchFile, TopicDeleted
from local_log.log_reader import LogReader
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest.store import load_newest
from remote.segment.upload import NO_TRANSFORMS
from remote.store.api import ObjectStore
from remote.transforms.encoder import Transforms
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import NEVER_MS, Job, Kind, Waiting
from tiering.agent.state import AgentState, Changes
from tiering.agent.tasks.task import nothing_to_do
from tiering.agent.watch import Mark, has_changed, opened
from tiering.lag.archived import Archived
from tiering.lag.copy_lag import waiting_segments
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import OffloadPlan, plan
from tiering.offload.plan import Action

OPEN_MAX: Final = 32
"""How many plans are kept, since a manifest may take some MB. Planning again costs two requests."""


RECHECK_MS: Final = 3_600_000
"""After this time a partition is planned again although its folder has not changed, since the archive may have."""
_WORK: Final = (Action.copy, Action.replace_archived)
LOST_MS: Final = 60_000
"""The same for a partition with a loss that is not acknowledged."""


@dataclass(slots=True)
class CopyTask:
    """Copies segments of the topics that `wants` selects into `store`, in place of older ones of logs that `replaces` selects.

    A partition is in at most one turn at a time; the turns of several partitions run in parallel threads.
    """

    store: ObjectStore
    clock: Clock
    ids: Ids
    transforms: Transforms = NO_TRANSFORMS
    wants: Callable[[str], bool] = lambda topic: True
    kind: Kind = Kind.copy
    attempts_max: int | None = None
    replaces: Callable[[LogReader], bool] = lambda log: False
    _begun: set[str] = field(default_factory=set)
    """The folders whose next turn goes on where the last one stopped."""
    _open: OrderedDict[str, Iterator[Done]] = field(default_factory=OrderedDict)
    _turn: Lock = field(default_factory=Lock)

    def plan(self, state: AgentState, changes: Changes, now_ms: int) -> None:
        """A partition is due when its folder has changed."""
        for _, mark in changes.dropped:
            state.queue.remove(Job(self.kind, mark.folder))
            self._begun.discard(mark.folder)
            self._forget(mark.folder)
        for before, mark in changes.noted:
            waits = mark.folder in state.views and state.views[mark.folder].lag.waiting > 0
            if self.wants(mark.partition.topic) and has_changed(before, mark, waits=waits):
                self._begun.discard(mark.folder)
                state.queue.bring_forward(Job(self.kind, mark.folder), now_ms)

    def turn(self, job: Job, state: AgentState) -> Callable[[], Outcome]:
        """Plans for a partition, or copies the next segment of one that was planned for."""
        mark = state.marks.get(job.subject)
        if mark is None or not self.wants(mark.partition.topic):
            return nothing_to_do(job)
        is_begun = job.subject in self._begun
        self._begun.discard(job.subject)  # a turn that fails begins anew
        return partial(self._step if is_begun else self._look, job, mark)

    def done(self, outcome: Outcome, was: Waiting, state: AgentState, now_ms: int) -> None:
        """Goes on at once where there is more to copy, behind all that wait already; else looks again some time."""
        job, view = outcome.job, state.views.get(outcome.job.subject)
        if view is None or job in state.queue.waiting:
            return  # it is gone, or its folder has changed since the turn began
        if outcome.has_more:
            self._begun.add(job.subject)
            failures = was.failures if outcome.is_only_begun else 0
            oldest_ms = NEVER_MS if view.lag.oldest_ms is None else view.lag.oldest_ms
            state.queue.put(job, Waiting(now_ms, failures, was.turns + 1, oldest_ms))
        else:
            state.queue.put(job, Waiting(now_ms + (LOST_MS if view.lost_offsets else RECHECK_MS)))

    def _look(self, job: Job, mark: Mark) -> Outcome:
        """Plans for a partition that has changed: what waits, and whether there is something to copy."""
        self._forget(mark.folder)
        try:
            source = mark.log_dir.mounted_id()
            due = self._plan(mark, source)
            recorded = due.log_recorded(due.manifest, source, self.clock.now_ms())
            waits, archived = waiting_segments(due), Archived.of(recorded) if recorded.version else None
            if recorded == due.manifest and not any(decision.action in _WORK for decision in due.decisions):
                return Outcome(job, waits=waits, archived=archived, is_recorded=archived is not None)
            self._keep(mark.folder, self._offload(due, source))
        except NoSuchFile:
            return Outcome(job)  # its broker has deleted or moved it, which the next look tells
        except TopicDeleted as e:
            return Outcome(job, is_left_alone=True, refused=e)  # it may lie there for long, and is no failure of anybody
        except LogError as e:
            return Outcome(job, error=e)
        return Outcome(job, waits=waits, archived=archived, has_more=True, formers=due.formers)

    def _step(self, job: Job, mark: Mark) -> Outcome:
        """Copies the next segment, or finds that there is none."""
        with self._turn:
            run = self._open.pop(mark.folder, None)
        if run is None:
            try:
                source = mark.log_dir.mounted_id()
                run = self._offload(self._plan(mark, source), source)
            except NoSuchFile:
                return Outcome(job)
            except LogError as e:
                return Outcome(job, error=e)
        for done in run:
            if done.error is not None and not isinstance(done.error, FILE_ERRORS):
                return Outcome(job, error=done.error, requests=1)
            if done.entry is None and done.error is None:
                continue
            self._keep(mark.folder, run)
            archived = Archived.of(done.manifest) if done.manifest is not None else None
            return Outcome(
                job,
                copied=done.entry,
                archived=archived,
                is_recorded=done.entry is not None,  # in the commit of the copy
                refused=done.error,
                has_more=True,
                requests=1,
            )
        return Outcome(job, archived=self._newest(mark), is_recorded=True)

    def _newest(self, mark: Mark) -> Archived | None:
        """What the manifest says when a run is over: it may have recorded a log of which nothing was copied."""
        if mark.topic_id is None:
            return None
        try:
            stored = load_newest(self.store, PartitionPath(mark.partition.topic, mark.topic_id, mark.partition.partition))
        except LogError:
            return None  # the next look tells
        return None if stored is None else Archived.of(stored.manifest)

    def _plan(self, mark: Mark, source: str) -> OffloadPlan:
        log = opened(mark)
        if len(log.segments) > 1:
            mark.log_dir.settle(log.partition)
        deleted_to = mark.log_dir.deleted_to(log.partition)
        return plan(log, self.store, source=source, replaces=self.replaces(log), deleted_to=deleted_to)

    def _forget(self, folder: str) -> None:
        """Drops what was begun of a partition; what it has copied already stays."""
        with self._turn:
            self._open.pop(folder, None)

    def _offload(self, due: OffloadPlan, source: str) -> Iterator[Done]:
        return offload(due, OffloadRun(self.store, self.clock, self.ids, source, _no_bar, self.transforms))

    def _keep(self, folder: str, run: Iterator[Done]) -> None:
        with self._turn:
            self._open[folder] = run
            if len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)


def _no_bar(_bytes: int) -> None:
    """Who shows how far a copy is asks the metrics."""
