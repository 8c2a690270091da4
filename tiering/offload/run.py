"""Many logs into one archive, a few at a time. What goes wrong with one stops no other, unless the store is not there at all."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

from local_log.errors import FILE_ERRORS, LogError, NoSuchFile, TopicDeleted, Unavailable
from local_log.formats.filenames import TopicPartition
from local_log.log_dir import Unopened
from local_log.log_reader import LogReader
from remote.clock import Clock, Ids
from remote.manifest.losses import GONE
from remote.parallel import streams_in_order
from remote.segment.upload import NO_TRANSFORMS
from remote.store.api import ObjectStore
from remote.transforms.encoder import Transforms
from tiering.losses.gone_logs import GoneLog, record_gone
from tiering.losses.seen_logs import SeenLog, SeenLogs
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import OffloadPlan, plan
from tiering.offload.local_segment import LocalSegment
from tiering.offload.plan import Action, Decision, lost_offsets

UNANSWERED_MAX = 3
"""After this many logs in a row for which the store did not respond, despite retries, the run stops."""

Result = tuple[LogReader | Unopened | GoneLog, Done]


@dataclass(slots=True)
class OffloadLogs:
    """Offloads logs of `source` into `store`. A dry run only plans; with `copies_nothing` manifests record new logs and losses,
    but no segment is copied. `progress` is called with numbers of bytes, by several threads at once. `replaces` says of a log
    whether what was cleaned since it was archived takes the place of what is archived, `deleted_to` below which offset users
    have deleted its records; `assumes_clean_elections` is as in OffloadRun.

    `known` are the remembered logs. `changes` are the updates to them; None is for a log to be forgotten. `results` are those
    of `run` as they came, also what nobody took since the run was interrupted.
    """

    store: ObjectStore
    clock: Clock
    ids: Ids
    source: str
    progress: Callable[[int], None]
    transforms: Transforms = NO_TRANSFORMS
    is_dry_run: bool = False
    copies_nothing: bool = False
    known: SeenLogs = field(default_factory=dict)
    replaces: Callable[[LogReader], bool] = lambda log: False
    deleted_to: Callable[[TopicPartition], int] = lambda partition: 0
    assumes_clean_elections: bool = False
    changes: dict[TopicPartition, SeenLog | None] = field(default_factory=dict, init=False)
    results: list[Result] = field(default_factory=list, init=False)
    _unanswered: int = field(default=0, init=False)

    def run(self, logs: Iterable[LogReader | Unopened | GoneLog], threads: int) -> Iterator[Result]:
        """What becomes of each segment, in order; `threads` logs at a time."""
        return streams_in_order((partial(self._kept, log) for log in logs), threads)

    def _kept(self, log: LogReader | Unopened | GoneLog) -> Iterator[Result]:
        for result in self._of(log):
            self.results.append(result)
            yield result

    def _of(self, log: LogReader | Unopened | GoneLog) -> Iterator[Result]:
        if self._unanswered >= UNANSWERED_MAX:
            problem = (
                f"{log.partition} was skipped: the store did not respond for {self._unanswered} others; run the command again"
            )
            yield log, Done(None, error=Unavailable(problem))
            return
        answered = True
        for done in self.offload(log):
            answered = answered and not isinstance(done.error, Unavailable)
            yield log, done
        self._unanswered = 0 if answered else self._unanswered + 1

    def offload(self, log: LogReader | Unopened | GoneLog) -> Iterator[Done]:
        """What becomes of each segment of one log. Every error is in a result; a log that is deleted meanwhile is none."""
        if isinstance(log, Unopened):
            yield Done(None, error=log.error)
            return
        if isinstance(log, GoneLog):
            yield from self._gone(log)
            return
        now_ms = self.clock.now_ms()
        known = self.known.get(log.partition)
        problem: LogError | None = None
        try:
            if known is not None and known.is_recorded(log, now_ms):
                self._remember(log, known.recorded_ms)
                yield Done(Decision(LocalSegment(log.segments[0].base_offset, None), Action.keep, "active"))
                return
            for done in self._planned(log):
                problem = problem if done.error is None or isinstance(done.error, FILE_ERRORS) else done.error
                yield done
        except NoSuchFile as e:
            yield Done(None, notes=(f"{e}; its broker has deleted or moved it in the meantime",))
            return
        except LogError as e:
            problem = e
            yield Done(None, error=e)
        if isinstance(problem, TopicDeleted):
            self.changes[log.partition] = None
        else:
            self._remember(log, 0 if problem else now_ms)

    def _planned(self, log: LogReader) -> Iterator[Done]:
        deleted_to = self.deleted_to(log.partition)
        due = plan(log, self.store, source=self.source, replaces=self.replaces(log), deleted_to=deleted_to)
        if self.is_dry_run:
            yield from map(Done, due.losses(self.source, self.clock.now_ms()))
            yield from (Done(decision) for decision in due.decisions)
        elif self.copies_nothing:
            quiet = replace(due, decisions=tuple(replace(decision, action=Action.keep) for decision in due.decisions))
            yield from (done for done in self._done(quiet) if done.decision is None or done.is_lost)
            yield from (Done(decision) for decision in due.decisions)
        else:
            yield from self._done(due)

    def _done(self, due: OffloadPlan) -> Iterator[Done]:
        run = OffloadRun(self.store, self.clock, self.ids, self.source, self.progress, self.transforms)
        return offload(due, replace(run, assumes_clean_elections=self.assumes_clean_elections))

    def _gone(self, log: GoneLog) -> Iterator[Done]:
        """Results for a log that no longer exists. It stays remembered until its manifest records that."""
        try:
            recorded = record_gone(log, self.store, self.clock, self.ids, self.source, is_dry_run=self.is_dry_run)
        except LogError as e:
            yield Done(None, error=e)
            return
        if recorded is None:
            yield Done(None, notes=("moved to another log directory, of which the archive is to be told first: offload that",))
            return
        self.changes[log.partition] = None
        why = f"of the former topic with id {log.seen.topic_id}: {GONE}" if log.is_former else GONE
        yield from (Done(lost_offsets(offsets, why)) for offsets in recorded.lost)
        if recorded.note:
            yield Done(None, notes=(recorded.note,))

    def _remember(self, log: LogReader, recorded_ms: int) -> None:
        """Remembers a log; its manifest recorded it at `recorded_ms`, 0 for not now. Its former topic is handled first."""
        if not log.segments:
            return
        known = self.known.get(log.partition)
        with suppress(LogError):
            seen = SeenLog.of(log, recorded_ms)
            if known is not None and known.topic_id != seen.topic_id and log.partition not in self.changes:
                return
            if recorded_ms == 0 and known is not None and known.topic_id == seen.topic_id:
                seen = replace(known, end_offset=seen.end_offset, single_base=None)
            self.changes[log.partition] = seen
