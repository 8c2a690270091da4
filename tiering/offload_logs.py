"""Many logs into one archive, a few at a time. What goes wrong with one stops no other, unless the store is not there at all."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from local_log.errors import LogError, NotFound
from local_log.log import LocalLog
from local_log.log_dir import Unopened
from remote.clock import Clock, Ids
from remote.errors import RemoteError, Unavailable
from remote.object_store import ObjectStore
from remote.parallel import streams_in_order
from remote.transforms.encoder import Transforms
from remote.uploader import NO_TRANSFORMS
from tiering.offload import Done, lost_before, offload, plan

UNANSWERED_MAX = 3
"""After so many logs in a row for which the store did not answer, with all patience, the others are not tried."""

Result = tuple[LocalLog | Unopened, Done]


@dataclass(slots=True)
class OffloadLogs:
    """Offloads logs of `source` into `store`; on a dry run only plans. `progress` is told bytes, by several threads at once."""

    store: ObjectStore
    clock: Clock
    ids: Ids
    source: str
    progress: Callable[[int], None]
    transforms: Transforms = NO_TRANSFORMS
    is_dry_run: bool = False
    _unanswered: int = field(default=0, init=False)

    def run(self, logs: Iterable[LocalLog | Unopened], threads: int) -> Iterator[Result]:
        """What becomes of each segment, in order; `threads` logs at a time."""
        return streams_in_order((partial(self._of, log) for log in logs), threads)

    def _of(self, log: LocalLog | Unopened) -> Iterator[Result]:
        if self._unanswered >= UNANSWERED_MAX:
            problem = (
                f"{log.partition} is not tried: the store did not answer for {self._unanswered} others; run the command again"
            )
            yield log, Done(None, error=Unavailable(problem))
            return
        answered = True
        for done in self.offload(log):
            answered = answered and not isinstance(done.error, Unavailable)
            yield log, done
        self._unanswered = 0 if answered else self._unanswered + 1

    def offload(self, log: LocalLog | Unopened) -> Iterator[Done]:
        """What becomes of each segment of one log. Every error is in a result; a log that is deleted meanwhile is none."""
        if isinstance(log, Unopened):
            yield Done(None, error=log.error)
            return
        try:
            due = plan(log, self.store)
        except NotFound as e:
            yield Done(None, notes=(f"{e}; its broker has deleted or moved it meanwhile",))
            return
        except (LogError, RemoteError) as e:
            yield Done(None, error=e)
            return
        if self.is_dry_run:
            yield from lost_before(due, self.source, self.clock.now_ms())
            yield from (Done(decision) for decision in due.decisions)
        else:
            yield from offload(due, self.store, self.clock, self.ids, self.source, self.progress, self.transforms)
