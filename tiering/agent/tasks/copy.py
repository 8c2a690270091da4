"""A partition's copies, a segment a turn: what was begun is kept between turns, for so many partitions as memory may hold."""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from local_log.errors import FILE_ERRORS, LogError, NoSuchFile, TopicDeleted
from local_log.log_reader import LogReader, open_log
from remote.clock import Clock, Ids
from remote.segment.upload import NO_TRANSFORMS
from remote.store.api import ObjectStore
from remote.transforms.encoder import Transforms
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job
from tiering.agent.tasks.gone import tell_gone
from tiering.agent.watch import Mark
from tiering.lag.archived import Archived
from tiering.lag.copy_lag import waiting_segments
from tiering.lag.local_log import LogSeen
from tiering.offload.copy import Done, OffloadPlan, offload, plan
from tiering.offload.plan import Action

OPEN_MAX: Final = 32
"""A manifest may take some MB; of more partitions than this the plan is made anew, which costs two requests."""


@dataclass(slots=True)
class Copies:
    """Copies of segments of the topics that `wants` lets, into `store`.

    Each partition is at most in one turn at a time; different ones are in several threads.
    """

    store: ObjectStore
    clock: Clock
    ids: Ids
    transforms: Transforms = NO_TRANSFORMS
    wants: Callable[[str], bool] = lambda topic: True
    _open: OrderedDict[str, Iterator[Done]] = field(default_factory=OrderedDict)
    _turn: Lock = field(default_factory=Lock)

    def look(self, job: Job, mark: Mark) -> Outcome:
        """Plans for a partition that has changed: what waits, and whether there is something to copy."""
        self.forget(mark.folder)
        try:
            due = plan(_log(mark), self.store)
            told = due.told(due.manifest, mark.log_dir.id(), self.clock.now_ms())
            waits, archived = waiting_segments(due), Archived.of(told) if told.version else None
            if told == due.manifest and not any(decision.action is Action.copy for decision in due.decisions):
                return Outcome(job, waits=waits, archived=archived)
            self._keep(mark.folder, self._offload(due, mark))
        except NoSuchFile:
            return Outcome(job, is_left_alone=True)  # its broker has deleted or moved it
        except TopicDeleted as e:
            return Outcome(job, is_left_alone=True, refused=e)  # it may lie there for long, and is no failure of anybody
        except LogError as e:
            return Outcome(job, error=e)
        return Outcome(job, waits=waits, archived=archived, has_more=True)

    def step(self, job: Job, mark: Mark) -> Outcome:
        """Copies the next segment, or finds that there is none."""
        with self._turn:
            run = self._open.pop(mark.folder, None)
        if run is None:
            try:
                run = self._offload(plan(_log(mark), self.store), mark)
            except NoSuchFile:
                return Outcome(job, is_left_alone=True)
            except LogError as e:
                return Outcome(job, error=e)
        for done in run:
            if done.error is not None and not isinstance(done.error, FILE_ERRORS):
                return Outcome(job, error=done.error, requests=1)
            if done.entry is None and done.error is None:
                continue
            self._keep(mark.folder, run)
            return Outcome(job, copied=done.entry, refused=done.error, has_more=True, requests=1)
        return Outcome(job)

    def gone(self, job: Job, mark: Mark, seen: LogSeen) -> Outcome:
        """Tells the manifest of a partition that its log directory does not have any more."""
        return tell_gone(job, mark, seen, self.store, self.clock, self.ids)

    def forget(self, folder: str) -> None:
        """Drops what was begun of a partition; what it has copied already stays."""
        with self._turn:
            self._open.pop(folder, None)

    def _offload(self, due: OffloadPlan, mark: Mark) -> Iterator[Done]:
        return offload(due, self.store, self.clock, self.ids, mark.log_dir.id(), _no_bar, self.transforms)

    def _keep(self, folder: str, run: Iterator[Done]) -> None:
        with self._turn:
            self._open[folder] = run
            if len(self._open) > OPEN_MAX:
                self._open.popitem(last=False)


def _no_bar(_bytes: int) -> None:
    """Who shows how far a copy is asks the metrics."""


def _log(mark: Mark) -> LogReader:
    return open_log(mark.log_dir.disk, mark.folder, mark.partition, mark.start, mark.high_watermark)
