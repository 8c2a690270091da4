"""The loop: looks at the log directories, starts what is due, and takes in what has come of it. It alone keeps state.

Decisions are `schedule`'s and `watch`'s; what a turn does is in the rooms of its kind. Nothing here waits but for the next turn.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import Final

from local_log.errors import FILE_ERRORS, Conflict, Fenced, LogError
from local_log.log_dir import LogDir
from remote.clock import Clock, Jitter
from remote.store.instrumented import Trouble
from tiering.agent.controls import Aborted, Controls
from tiering.agent.disk_look import on_disk
from tiering.agent.memory import Memory, MemoryFile
from tiering.agent.missing import Missing
from tiering.agent.outcome import Failure, Outcome
from tiering.agent.rounds import ATTEMPTS_MAX, Round
from tiering.agent.schedule import (
    NEVER_MS,
    OPEN,
    Gate,
    Job,
    Kind,
    Waiting,
    choose,
    earlier,
    moved,
    wake_ms,
)
from tiering.agent.seen_there import SeenThere
from tiering.agent.settings import Does, Settings
from tiering.agent.store_watch import StoreWatch
from tiering.agent.view import AgentView, Counts, PartitionView, Scrub, Told
from tiering.agent.watch import Mark, has_changed, look
from tiering.agent.workers import Workers
from tiering.lag.unprotected import TopicRetention

RECHECK_MS: Final = 3_600_000
"""After this a partition is planned for again though its folder has not changed: the archive may have."""
LOST_MS: Final = 60_000
"""The same of one with a loss that nobody has acknowledged yet."""
WAIT_MS_MAX: Final = 10_000
"""So long the loop waits at most, to show that it lives."""
ABORT_MS: Final = 5_000
"""So long it is waited for what was told to give up."""
STRAYS: Final = ""


class Agent:
    """One agent. `run` is its life; `view` may be asked by other threads."""

    def __init__(
        self,
        log_dirs: Sequence[LogDir],
        wanted: Callable[[str], bool],
        archive_url: str,
        does: Does,
        settings: Settings,
        workers: Workers,
        controls: Controls,
        clock: Clock,
        chance: Jitter,
        memory: MemoryFile,
        tell: Callable[[str], None] = lambda message: None,
        trouble: Callable[[], Trouble | None] = lambda: None,
        retention: Callable[[str], TopicRetention | None] = lambda topic: None,
        ready: Callable[[], object] = lambda: None,
    ) -> None:
        """`ready` is called before each turn; while it raises LogError nothing is done."""
        self._log_dirs, self._wanted, self._archive_url = tuple(log_dirs), wanted, archive_url
        self._does, self._settings = does, settings
        self._workers, self._controls, self._clock, self._chance = workers, controls, clock, chance
        self._memory_file, self._say = memory, tell
        self._store, self._retention, self._ready = StoreWatch(trouble, tell), retention, ready
        self._memory = memory.load()
        self._there = SeenThere(log_dirs, memory, archive_url, clock, lambda e: self._hurt(e, clock.now_ms()))
        self._started_ms = self._now_ms = clock.now_ms()
        self._next_look_ms = 0
        self._has_looked = False
        self._marks: dict[str, Mark] = {}
        self._views: dict[str, PartitionView] = {}
        self._counts: dict[str, Counts] = {}
        self._missing = Missing(tell, self._there.forget)
        self._waiting: dict[Job, Waiting] = {}
        self._running: dict[Job, Waiting] = {}
        self._begun: set[str] = set()
        """The folders whose copies go on where they stopped."""
        self._gate: Gate = OPEN
        self._error: Told | None = None
        self._sweep = Round(Kind.sweep, settings.sweep_ms, self._memory.swept_ms)
        self._scrub = Round(Kind.scrub, settings.scrub_ms, self._memory.scrub.started_ms if self._memory.scrub else 0)
        self._scrubbed = Scrub(0)
        self._reading = Lock()
        self._given_up = 0
        self.hung = 0
        """How many turns went on at the end, whatever they were told."""
        controls.on_change = workers.wake

    def run(self) -> int:
        """Works until it is told to stop; gives how many turns were given up then. Raises what is no error of ours."""
        while not self._controls.is_stopping:
            self.step()
        return self._finish()

    def step(self) -> None:
        """Looks, starts what is due, and waits for the next thing to happen."""
        now_ms = self._tick()
        self._store.look(self._gate, now_ms)
        if now_ms >= self._next_look_ms:
            self._look(now_ms)
        self._begin_rounds(now_ms)
        if not self._controls.is_paused:
            for job in choose(self._waiting, self._running, self._settings.threads, now_ms, self._gate):
                with self._reading:
                    self._running[job] = self._waiting.pop(job)
                self._workers.start(self._turn(job))
        self._take_in(self._wait_ms(now_ms))

    def remember(self, address: str) -> None:
        """Keeps where this agent can be asked."""
        self._save(replace(self._memory, address=address))

    def view(self) -> AgentView:
        """What it knows now, by its own clock."""
        with self._reading:
            return AgentView(
                started_ms=self._started_ms,
                now_ms=self._clock.now_ms(),
                looped_ms=self._now_ms,
                log_dirs=tuple(d.path for d in self._log_dirs),
                archive=self._archive_url,
                is_paused=self._controls.is_paused,
                is_stopping=self._controls.is_stopping,
                has_looked=self._has_looked,
                store=self._store.failure(self._gate, self._clock.now_ms()),
                running=len(self._running),
                waiting=sum(w.due_ms <= self._now_ms for w in self._waiting.values()),
                swept_ms=self._memory.swept_ms,
                scrub=self._memory.scrub,
                error=self._error,
                partitions=tuple(self._views.values()),
                gone=self._missing.views,
                counts=dict(self._counts),
            )

    def _tick(self) -> int:
        """The time. Where the clock was set back, everything that waits is set back with it."""
        now_ms = self._clock.now_ms()
        if now_ms < self._now_ms:
            back_ms = now_ms - self._now_ms
            self._waiting = moved(self._waiting, back_ms)
            self._gate = replace(self._gate, until_ms=self._gate.until_ms + back_ms)
            self._next_look_ms += back_ms
        self._now_ms = now_ms
        return now_ms

    def _wait_ms(self, now_ms: int) -> int:
        next_ms = min(self._next_look_ms, now_ms + WAIT_MS_MAX)
        if not self._controls.is_paused:
            next_ms = min(next_ms, wake_ms(self._waiting, self._running, self._settings.threads, self._gate))
        return max(0, next_ms - now_ms)

    def _look(self, now_ms: int) -> None:
        self._next_look_ms = now_ms + self._settings.look_ms
        marks: dict[str, Mark] = {}
        error: LogError | None = None
        for log_dir in self._log_dirs:
            try:
                had_some = any(mark.log_dir == log_dir for mark in self._marks.values())
                marks |= {mark.folder: mark for mark in look(log_dir, self._wanted, now_ms, had_some=had_some)}
            except LogError as e:  # what is known of its partitions is kept until it is there again
                error = e
                marks |= {folder: mark for folder, mark in self._marks.items() if mark.log_dir == log_dir}
        views = {folder: self._on_disk(folder, mark) for folder, mark in marks.items()}
        with self._reading:
            if error is None:
                self._error = None
            else:
                self._hurt(error, now_ms)
            for folder in self._marks.keys() - marks.keys():
                self._drop(folder, now_ms)
            for folder, mark in marks.items():
                self._views[folder] = views[folder]
                self._missing.back(folder)
                self._note(folder, mark, now_ms)
            self._marks = marks
            self._has_looked = True
        self._remember_logs(now_ms)
        known = {str(view.partition): view.archived for view in views.values() if view.archived is not None}
        if error is None and known != self._memory.archived:
            self._save(replace(self._memory, archived=known))

    def _remember_logs(self, now_ms: int) -> None:
        """Notices what has disappeared while nobody looked, and keeps what is there."""
        if (copies := self._does.copies) is not None:
            with self._reading:
                for view, mark in self._there.gone(lambda t: self._wanted(t) and copies.wants(t), self._memory.archived, now_ms):
                    if self._missing.note(view, mark, now_ms):
                        self._waiting[Job(Kind.copy, mark.folder)] = Waiting(now_ms)
            self._there.keep(self._views, self._marks, now_ms)

    def _on_disk(self, folder: str, mark: Mark) -> PartitionView:
        """What is known of a partition, with what lies on disk now, where it is to be archived at all."""
        view = self._views.get(folder) or PartitionView(
            mark.log_dir.path, mark.partition, archived=self._memory.archived.get(str(mark.partition))
        )
        if self._does.copies is None or not self._does.copies.wants(mark.partition.topic):
            return view
        return on_disk(view, mark, self._marks.get(folder), self._retention(mark.partition.topic))

    def _note(self, folder: str, mark: Mark, now_ms: int) -> None:
        view = self._views[folder]
        before = self._marks.get(folder)
        copies, retaining, topic = self._does.copies, self._does.retaining, mark.partition.topic
        if copies is not None and copies.wants(topic) and has_changed(before, mark, waits=view.lag.waiting > 0):
            self._begun.discard(folder)
            self._bring_forward(Job(Kind.copy, folder), now_ms)
        if before is None and retaining is not None and retaining.wants(topic):
            self._bring_forward(Job(Kind.retain, folder), now_ms)

    def _drop(self, folder: str, now_ms: int) -> None:
        view = self._views.pop(folder)
        self._begun.discard(folder)
        self._waiting = {job: w for job, w in self._waiting.items() if job.subject != folder or job.kind is Kind.sweep}
        if self._does.copies is not None:
            self._does.copies.forget(folder)
            if self._missing.note(view, self._marks[folder], now_ms):
                self._waiting[Job(Kind.copy, folder)] = Waiting(now_ms)

    def _bring_forward(self, job: Job, due_ms: int) -> None:
        self._waiting[job] = earlier(self._waiting.get(job), due_ms)

    def _begin_rounds(self, now_ms: int) -> None:
        if not self._has_looked:
            return
        if self._does.sweeping is not None and not self._sweep.is_under_way and now_ms >= self._sweep.due_ms():
            self._go_on(self._sweep.begin([*sorted(self._marks), STRAYS], now_ms), now_ms)
        if self._does.scrubbing is not None and not self._scrub.is_under_way and now_ms >= self._scrub.due_ms():
            self._scrubbed = Scrub(now_ms)
            first = self._scrub.begin(sorted({mark.partition.topic for mark in self._marks.values()}), now_ms)
            self._go_on(first, now_ms)

    def _go_on(self, piece: Job | None, now_ms: int) -> None:
        if piece is not None:
            self._waiting[piece] = Waiting(now_ms)

    def _turn(self, job: Job) -> Callable[[], Outcome]:
        work = self._work(job)

        def turn() -> Outcome:
            try:
                self._ready()
                return work()
            except Aborted:
                return Outcome(job, is_aborted=True)
            except LogError as e:
                return Outcome(job, error=e)

        return turn

    def _work(self, job: Job) -> Callable[[], Outcome]:
        does = self._does
        if job.kind is Kind.scrub and does.scrubbing is not None:
            return partial(does.scrubbing.step, job)
        if job.kind is Kind.sweep and does.sweeping is not None and job.subject == STRAYS:
            return partial(does.sweeping.strays, job)
        mark = self._marks.get(job.subject)
        missing = self._missing.work(job, does.copies) if does.copies is not None and job.kind is Kind.copy else None
        if missing is not None:
            return missing
        if mark is None:
            return partial(Outcome, job)
        if job.kind is Kind.sweep and does.sweeping is not None:
            return partial(does.sweeping.step, job, mark)
        if job.kind is Kind.retain and does.retaining is not None:
            return partial(does.retaining.step, job, mark)
        if does.copies is None:
            raise AssertionError(f"nobody does {job}")
        return partial(does.copies.step if job.subject in self._begun else does.copies.look, job, mark)

    def _take_in(self, wait_ms: int) -> None:
        for outcome in self._workers.finished(wait_ms / 1000):
            with self._reading:
                self._apply_outcome(outcome, self._clock.now_ms())

    def _apply_outcome(self, outcome: Outcome, now_ms: int) -> None:
        job = outcome.job
        was = self._running.pop(job)
        if outcome.is_aborted:
            self._given_up += 1
            return
        self._tell(outcome, now_ms)
        if outcome.error is not None:
            self._failed(outcome.error, job, was, now_ms)
            return
        if not outcome.is_only_begun:
            self._gate = OPEN
        if job.kind in (Kind.sweep, Kind.scrub):
            self._next_of_round(outcome, now_ms)
        elif job.subject in self._views:
            self._due_again(outcome, was, now_ms)
        elif job not in self._waiting and self._missing.apply_outcome(outcome):
            self._waiting[job] = Waiting(now_ms + LOST_MS)

    def _tell(self, outcome: Outcome, now_ms: int) -> None:
        view = self._views.get(outcome.job.subject)
        topic = view.partition.topic if view else ""
        self._counts[topic] = self._counts.get(topic, Counts()).after(outcome)
        if view is not None:
            after = view.after(outcome, now_ms)
            self._views[outcome.job.subject] = after
            for was, now in ((view.error, after.error), (view.refused, after.refused)):
                if now is not None and (was is None or was.message != now.message):
                    self._say(now.message)
            if after.lost_offsets > view.lost_offsets:
                self._say(after.lost_message())
        elif outcome.error is not None:
            self._hurt(outcome.error, now_ms)

    def _failed(self, error: Failure, job: Job, was: Waiting, now_ms: int) -> None:
        self._begun.discard(job.subject)
        failures = was.failures + 1
        if not isinstance(error, (*FILE_ERRORS, Conflict, Fenced)):
            self._gate = self._gate.after_failure(job.subject, now_ms, self._settings.backoff, self._chance(), str(error))
        if job.kind in (Kind.sweep, Kind.scrub) and failures >= ATTEMPTS_MAX and not self._gate.is_shut:
            self._next_of_round(Outcome(job, error=error), now_ms)
        else:
            wait_ms = self._settings.backoff.wait_ms(failures, self._chance())
            self._waiting[job] = replace(was, due_ms=now_ms + wait_ms, failures=failures)

    def _due_again(self, outcome: Outcome, was: Waiting, now_ms: int) -> None:
        job, folder = outcome.job, outcome.job.subject
        if job.kind is Kind.retain:
            if outcome.due_ms is not None:
                self._bring_forward(job, outcome.due_ms)
            return
        is_new = job in self._waiting  # its folder has changed since its turn began
        if outcome.has_more and not is_new:
            self._begun.add(folder)
            oldest_ms = self._views[folder].lag.oldest_ms
            failures = was.failures if outcome.is_only_begun else 0
            self._waiting[job] = Waiting(now_ms, failures, was.turns + 1, NEVER_MS if oldest_ms is None else oldest_ms)
        elif not is_new:
            self._begun.discard(folder)
            self._waiting[job] = Waiting(now_ms + (LOST_MS if self._views[folder].lost_offsets else RECHECK_MS))
        if outcome.copied is not None:
            retain = Job(Kind.retain, folder)
            retaining = self._does.retaining
            if retaining is not None and retain in self._waiting:
                self._bring_forward(retain, now_ms + retaining.interval_ms)

    def _next_of_round(self, outcome: Outcome, now_ms: int) -> None:
        """A piece of a round is over, one way or the other."""
        is_scrub = outcome.job.kind is Kind.scrub
        round_ = self._scrub if is_scrub else self._sweep
        if is_scrub:
            was = self._scrubbed
            failed = was.failed + (outcome.error is not None)
            self._scrubbed = replace(was, topics=was.topics + 1, failed=failed, findings=(*was.findings, *outcome.findings))
        self._go_on(round_.next(), now_ms)
        if round_.is_under_way:
            return
        if is_scrub:
            self._scrubbed = replace(self._scrubbed, ended_ms=now_ms)
            self._save(replace(self._memory, scrub=self._scrubbed))
        else:
            self._save(replace(self._memory, swept_ms=round_.last_ms))

    def _save(self, memory: Memory) -> None:
        """Where it cannot be kept, that is told, and the work goes on: what is lost is when to do it again."""
        self._memory = memory
        try:
            self._memory_file.save(memory)
        except LogError as e:
            self._hurt(e, self._clock.now_ms())

    def _hurt(self, error: Failure, now_ms: int) -> None:
        """What is of no partition goes wrong; it is said once."""
        told = Told.of(error, now_ms)
        if self._error is None or self._error.message != told.message:
            self._say(told.message)
        self._error = told

    def _finish(self) -> int:
        """Waits for what is under way, tells it to give up when that takes too long; gives how many turns were given up."""
        for wait_ms, act in ((self._settings.shutdown_ms, self._controls.abort), (ABORT_MS, lambda: None)):
            until_ms = self._clock.now_ms() + wait_ms
            while self._running and (left_ms := until_ms - self._clock.now_ms()) > 0:
                for outcome in self._workers.finished(left_ms / 1000):
                    with self._reading:
                        self._apply_outcome(outcome, self._clock.now_ms())
            act()
        self.hung = len(self._running)
        return self._given_up + self.hung
