"""The loop: looks at the log directories, has the tasks plan, starts what is due, and takes in what has come of it.

Which job is next `schedule` decides, what a turn does its task. Nothing here waits but for the next turn.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from local_log.errors import LogError
from tiering.agent.controls import Aborted
from tiering.agent.disk_look import on_disk
from tiering.agent.memory import MemoryFile, key_of
from tiering.agent.outcome import Outcome
from tiering.agent.schedule import Job, Kind
from tiering.agent.settings import Settings, Source, Surroundings
from tiering.agent.state import AgentState, Changes
from tiering.agent.store_watch import StoreWatch
from tiering.agent.tasks.task import Task
from tiering.agent.view import AgentView, PartitionView, with_formers
from tiering.agent.watch import Mark, look

WAIT_MS_MAX: Final = 10_000
"""The loop waits at most this long, so that its liveness is visible."""
ABORT_MS: Final = 5_000
"""The loop waits this long for aborted turns to end."""


class Agent:
    """One agent. `run` blocks until it is stopped; other threads may call `view`."""

    def __init__(
        self, source: Source, tasks: Sequence[Task], settings: Settings, around: Surroundings, memory: MemoryFile
    ) -> None:
        self._source, self._settings, self._around = source, settings, around
        self._tasks = {task.kind: task for task in tasks}
        self._workers, self._controls, self._clock = around.workers, around.controls, around.clock
        self._store = StoreWatch(around.trouble, around.report)
        self._state = AgentState(source, settings, around, memory)
        self._started_ms = self._now_ms = self._clock.now_ms()
        self._next_look_ms = 0
        self._has_looked = False
        self._aborted = 0
        self.hung = 0
        """How many turns were still running at the end, although they were aborted."""
        self._controls.on_change = self._workers.wake

    def run(self) -> int:
        """Works until it is stopped; returns how many turns were aborted then. Raises exceptions that are no LogError."""
        while not self._controls.is_stopping:
            self.step()
        return self._finish()

    def step(self) -> None:
        """Scans the log directories if due, starts due jobs, and waits for the next event."""
        now_ms, queue = self._tick(), self._state.queue
        self._store.look(queue.gate, now_ms)
        changes = self._look(now_ms) if now_ms >= self._next_look_ms else Changes()
        with self._state.lock:
            changes = self._state.with_outcomes(changes)
            for task in self._tasks.values():
                task.plan(self._state, changes, now_ms)
        if not self._controls.is_paused:
            for job in queue.next(now_ms):
                with self._state.lock:
                    self._state.start(job)
                    turn = self._tasks[job.kind].turn(job, self._state)
                self._workers.start(self._guarded(job, turn))
        self._take_in(self._wait_ms(now_ms))
        copied = self._state.round.ended(queue, self._clock.now_ms())
        if copied is not None:
            self._around.tell("copied all that was due", copied)

    def remember(self, address: str) -> None:
        """Keeps where this agent can be asked."""
        self._state.remember(address=address)

    def view(self) -> AgentView:
        """What it knows now, by its own clock."""
        state, now_ms, tier = self._state, self._clock.now_ms(), self._around.tier()
        with state.lock:
            partitions, gone = with_formers(state.views.values(), state.gone.values())
            return AgentView(
                started_ms=self._started_ms,
                now_ms=now_ms,
                looped_ms=self._now_ms,
                log_dirs=tuple(d.path for d in self._source.log_dirs),
                archive=self._source.archive_url,
                is_paused=self._controls.is_paused,
                is_stopping=self._controls.is_stopping,
                has_looked=self._has_looked,
                store=self._store.failure(state.queue.gate, now_ms),
                running=len(state.queue.running),
                waiting=state.queue.due(self._now_ms),
                swept_ms=state.memory.swept_ms,
                scrub=state.memory.scrub,
                scrubs=Kind.scrub in self._tasks,
                error=state.error,
                partitions=partitions,
                gone=gone,
                counts=dict(state.counts),
                local_tier=tier,
            )

    def _tick(self) -> int:
        """The time. Where the clock was set back, everything that waits is set back with it, and nothing was noted later."""
        now_ms, state = self._clock.now_ms(), self._state
        if now_ms < self._now_ms:
            state.queue.move(now_ms - self._now_ms)
            self._next_look_ms += now_ms - self._now_ms
            self._started_ms = min(self._started_ms, now_ms)
            with state.lock:
                state.views.update({folder: view.noted_by(now_ms) for folder, view in state.views.items()})
                state.gone.update({job: view.noted_by(now_ms) for job, view in state.gone.items()})
        self._now_ms = now_ms
        return now_ms

    def _wait_ms(self, now_ms: int) -> int:
        next_ms = min(self._next_look_ms, now_ms + WAIT_MS_MAX)
        if not self._controls.is_paused:
            next_ms = min(next_ms, self._state.queue.wake_ms())
        return max(0, next_ms - now_ms)

    def _look(self, now_ms: int) -> Changes:
        """Scans the log directories; returns the changes since the last scan, with partitions that are gone."""
        self._next_look_ms = now_ms + self._settings.look_ms
        state = self._state
        failures = state.failures
        marks, error = self._look_at_folders(now_ms)
        views = {folder: self._look_at_disk(mark) for folder, mark in marks.items()}
        with state.lock:
            if error is not None:
                state.hurt(error)
            changes = state.take_in_look(marks, views)
            self._has_looked = True
            if self._source.copied is not None:
                vanished = state.there.gone(self._is_archived, marks, state.memory.archived, now_ms, changes.dropped)
                changes = replace(changes, vanished=tuple(vanished))
        self._keep(now_ms, is_whole=error is None)
        if state.failures == failures:
            state.is_well()
        return changes

    def _keep(self, now_ms: int, *, is_whole: bool = False, is_last: bool = False) -> None:
        """Saves what is known of the archive, then of the logs: of a log alone the next agent would take all for not archived.

        `is_whole`: all log directories could be read, so that what is not there is forgotten.
        """
        state = self._state
        views = state.views.values()
        known = {key_of(v.partition, v.topic_id): v.archived for v in views if v.archived is not None and v.topic_id}
        archived = known if is_whole else {**state.memory.archived, **known}
        if archived != state.memory.archived or not state.is_saved:
            state.remember(archived=archived)
        state.there.keep(state.views, state.marks, now_ms, is_last=is_last)

    def _look_at_folders(self, now_ms: int) -> tuple[dict[str, Mark], LogError | None]:
        """The marks of all partitions, by folder. What is known of a directory that cannot be read is kept until it can."""
        marks: dict[str, Mark] = {}
        error: LogError | None = None
        for log_dir in self._source.log_dirs:
            before = {folder: mark for folder, mark in self._state.marks.items() if mark.log_dir == log_dir}
            try:
                found = look(log_dir, self._source.wanted, now_ms, before)
                marks |= {mark.folder: mark for mark in found}
            except LogError as e:
                error = e
                marks |= before
        return marks, error

    def _look_at_disk(self, mark: Mark) -> PartitionView:
        """What is known of a partition, with what lies on disk now, where it is to be archived at all."""
        state = self._state
        view, before = state.view_of(mark), state.marks.get(mark.folder)
        if view is None:
            archived = state.memory.archived.get(key_of(mark.partition, mark.topic_id))
            view, before = PartitionView(mark.log_dir.path, mark.partition, archived=archived), None
        if not self._source.archives(mark.partition.topic):
            return view
        return on_disk(view, mark, before, self._source.retention(mark.partition.topic))

    def _is_archived(self, topic: str) -> bool:
        return self._source.wanted(topic) and self._source.archives(topic)

    def _guarded(self, job: Job, work: Callable[[], Outcome]) -> Callable[[], Outcome]:
        def turn() -> Outcome:
            try:
                self._around.ready()
                return work()
            except Aborted:
                return Outcome(job, is_aborted=True)
            except LogError as e:
                return Outcome(job, error=e)

        return turn

    def _take_in(self, wait_ms: int) -> None:
        for outcome in self._workers.finished(wait_ms / 1000):
            with self._state.lock:
                self._apply(outcome, self._clock.now_ms())

    def _apply(self, outcome: Outcome, now_ms: int) -> None:
        job, state, queue = outcome.job, self._state, self._state.queue
        was, task = queue.end(job), self._tasks[job.kind]
        if outcome.is_aborted:
            self._aborted += 1
            return
        state.take_in(outcome)
        if outcome.error is None:
            if not outcome.is_only_begun:
                queue.succeeded()
            task.done(outcome, was, state, now_ms)
            return
        queue.failed(job, outcome.error, now_ms)
        is_last = task.attempts_max is not None and was.failures + 1 >= task.attempts_max
        if is_last and not queue.gate.is_shut:
            task.done(outcome, was, state, now_ms)
        else:
            queue.try_again(job, was, now_ms)

    def _finish(self) -> int:
        """Waits for what is under way, and aborts what takes too long; gives how many turns were aborted."""
        running = self._state.queue.running
        for wait_ms, act in ((self._settings.shutdown_ms, self._controls.abort), (ABORT_MS, lambda: None)):
            until_ms = self._clock.now_ms() + wait_ms
            while running and (left_ms := until_ms - self._clock.now_ms()) > 0:
                self._take_in(left_ms)
            act()
        self.hung = len(running)
        self._keep(self._clock.now_ms(), is_last=True)  # turns have read more since the last look
        return self._aborted + self.hung
