"""A LocalTier with a thread that runs its background tasks, and what is known of both for people and metrics."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Event, Lock, Thread
from typing import Any, Final

from local_log.engine.append.validator import warm_up
from local_log.engine.manager.cleaner_status import CleanerStatus
from local_log.engine.manager.log_manager import Started
from local_log.engine.manager.startup import Progress
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition
from tiering.local_tier.local_tier import LocalTier

OPENING: Final = "opening"
TICK_S: Final = 1.0
PROBLEMS_MAX: Final = 20
"""How many of the last problems are kept."""


@dataclass(frozen=True, slots=True)
class LogOffsetsRow:
    """The offsets of one log; `size` in bytes and `segments` are what is on the disk, `unflushed` the offsets not synced yet."""

    partition: TopicPartition
    log_start_offset: int
    local_log_start_offset: int
    high_watermark: int
    log_end_offset: int
    size: int = 0
    segments: int = 0
    unflushed: int = 0

    @classmethod
    def of(cls, partition: TopicPartition, log: UnifiedLog) -> "LogOffsetsRow":
        """As the log is now."""
        now, local = log.offsets, log.local
        offsets = (now.log_start, now.local_log_start, now.high_watermark.offset, now.end.offset)
        return cls(partition, *offsets, local.segments.size, len(local.segments), local.unflushed_messages)


@dataclass(frozen=True, slots=True)
class TierStatus:
    """The state of the local tier: opening, running, failed or stopped.

    `logs_left` counts the logs that are not opened yet, `was_clean` whether the directories were cleanly shut down before.
    `missing` are partitions without a log, `uncleanable` those that the log cleaner leaves alone, `problems` the messages of what
    went wrong, the last at the end. `cleaner` has the metrics of the log cleaner, None if it is disabled.
    """

    state: str = OPENING
    logs: int = 0
    logs_left: int = 0
    was_clean: bool = False
    ticked_ms: int = 0
    offline: tuple[str, ...] = ()
    missing: tuple[TopicPartition, ...] = ()
    uncleanable: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    problem_count: int = 0
    offsets: tuple[LogOffsetsRow, ...] = ()
    cleaner: CleanerStatus | None = None

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "state": self.state,
            "logs": self.logs,
            "logs_left": self.logs_left,
            "was_clean": self.was_clean,
            "ticked_ms": self.ticked_ms or None,
            "offline": list(self.offline),
            "missing": list(map(str, self.missing)),
            "uncleanable": list(self.uncleanable),
            "problems": list(self.problems),
            "partitions": [_row(of) for of in self.offsets],
        }


def _row(of: LogOffsetsRow) -> dict[str, Any]:
    return {
        "topic": of.partition.topic,
        "partition": of.partition.partition,
        "log_start_offset": of.log_start_offset,
        "local_log_start_offset": of.local_log_start_offset,
        "high_watermark": of.high_watermark,
        "log_end_offset": of.log_end_offset,
    }


class StartStopped(Exception):
    """The start was to end before all logs were open. Nothing was written for it, so the next start recovers the rest."""


class TierService:
    """Starts, ticks and stops a LocalTier. `report` is called with messages about problems, each once while it lasts."""

    def __init__(self, tier: LocalTier, now_ms: Callable[[], int], report: Callable[[str], None]) -> None:
        self.tier = tier
        self.failure: Exception | None = None
        """Why the local tier had to end by itself."""
        self._now_ms, self._report = now_ms, report
        self._lock, self._stopping = Lock(), Event()
        self._status = TierStatus()
        self._lasting: frozenset[str] = frozenset()
        self._is_stopping: Callable[[], bool] = lambda: False
        self._thread: Thread | None = None

    def start(self, is_stopping: Callable[[], bool] = lambda: False) -> Started:
        """Opens the logs, which may take long after a crash. Raises as `LocalTier.start`, and StartStopped.

        `is_stopping` is asked whenever a segment is recovered or a log is open.
        """
        self._is_stopping = is_stopping
        started = self.tier.start(self._on_progress)
        state = replace(self._status, state="running", logs_left=0, was_clean=self.tier.was_clean)
        with self._lock:
            self._status = state
        found = [*(u.error for u in started.unopened), *started.damaged]
        remedy = "no log directory has it; mount its disk and start again, or delete the topic"
        missing = [f"{partition}: {remedy}" for partition in self.tier.missing()]
        strays = [f"{path}: a stray log, which is left alone" for path in started.strays]
        self._note([*self.tier.notes, *map(str, (*self.tier.offline, *found)), *missing, *strays])
        return started

    def run_in_background(self, on_failure: Callable[[], None]) -> None:
        """Ticks about once a second until `stop`. `on_failure` is called if the tier cannot go on, see `failure`."""

        def run() -> None:
            try:
                warm_up()
            except Exception as e:  # without what is compiled nothing can be appended
                self.failure = e
                on_failure()
                return
            while not self._stopping.wait(TICK_S):
                if not self.tick():
                    on_failure()
                    return

        self._thread = Thread(target=run, name="local tier", daemon=True)
        self._thread.start()

    def tick(self) -> bool:
        """Runs what is due, and keeps and reports its problems; False if the tier cannot go on, see `failure`.

        A LogError there is not reported besides: whoever runs the tier ends with it, and prints it.
        """
        try:
            problems = self.tier.tick()
        except Exception as e:  # else the thread would end, and the state would still be running
            self.failure = e
            with self._lock:
                self._status = replace(self._status, state="failed")
                if isinstance(e, LogError):
                    self._keep([str(e)])
            if not isinstance(e, LogError):
                self._note([f"the background tasks of the logs ended: {e!r}"])
            return False
        self._note(list(map(str, problems)))
        with self._lock:
            self._status = replace(self._status, ticked_ms=self._now_ms())
        return True

    def stop(self) -> tuple[LogError, ...]:
        """Ends the thread, closes the logs and returns the errors, which are reported, too."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        problems = self.tier.stop()
        self._note(list(map(str, problems)))
        with self._lock:
            self._status = replace(self._status, state="stopped")
        return problems

    def status(self) -> TierStatus:
        """What is known now."""
        with self._lock:
            status = self._status
        if status.state != "running":
            return status
        rows = tuple(LogOffsetsRow.of(partition, log) for partition, log in self.tier.logs().items())
        return replace(
            status,
            logs=len(rows),
            offline=tuple(map(str, self.tier.offline)),
            missing=self.tier.missing(),
            uncleanable=tuple(f"{partition}: {why}" for partition, why in self.tier.uncleanable().items()),
            offsets=rows,
            cleaner=self.tier.cleaner_status(),
        )

    def _on_progress(self, progress: Progress) -> None:
        with self._lock:
            self._status = replace(self._status, logs=progress.logs, logs_left=progress.logs_left)
        if progress.logs_left and self._is_stopping():
            raise StartStopped

    def _note(self, problems: list[str]) -> None:
        with self._lock:
            self._keep(problems)
            new = [problem for problem in problems if problem not in self._lasting]
            self._lasting = frozenset(problems)
        for problem in new:
            try:
                self._report(problem)
            except Exception as e:  # the tasks go on, and the status has the problem
                with self._lock:
                    self._keep([f"a problem could not be reported: {e!r}"])

    def _keep(self, problems: list[str]) -> None:
        kept = (*self._status.problems, *problems)[-PROBLEMS_MAX:]
        self._status = replace(self._status, problems=kept, problem_count=self._status.problem_count + len(problems))
