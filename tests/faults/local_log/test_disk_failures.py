"""A disk that begins to fail while several threads are at the logs of its directory, and the directories of other disks go on."""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import hand_made
import pytest
from lived_logs import batch, marker
from managed import SMALL, T0, append
from simulated_disk import SimulatedDisk
from sound_logs import check_sound, summary

from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import Unreadable
from local_log.formats.filenames import CLEAN_SHUTDOWN, TopicPartition

FAILS, SOUND = "/fails", "/sound"
OF_FAILING = [TopicPartition("orders", number) for number in range(5)]
OF_SOUND = [TopicPartition("payments", number) for number in range(3)]
CONFIG = ManagerConfig(log_dirs=(FAILS, SOUND), num_recovery_threads_per_data_dir=3)
LATER_MS = 10_000_000
NEEDS_ROOM = ("write", "truncate", "rename", "make_folder", "sync", "sync_folder")
VERBS = ("names", "size", "read", "files", "delete", "delete_folder", "lock", "modified_ms", "set_modified_ms", *NEEDS_ROOM)

FAILURES = {
    "every call from one on": (VERBS, False),
    "every call that needs room from one on": (NEEDS_ROOM, False),
    "one call": (VERBS, True),
}
"""Which verbs fail, and whether only once."""


class AilingDisk:
    """A disk for many threads, on which what lies in FAILS fails from its call `at` on, counted from 1."""

    def __init__(self, disk: SimulatedDisk, how: str, at: int) -> None:
        self.disk = disk
        self.at = at
        self.calls = 0
        self.is_offline: Callable[[], bool] = lambda: False
        self.late: list[str] = []
        """The threads that have called although the directory is offline, as often as each has."""
        self.unlocked = 0
        self._verbs, self._once = FAILURES[how]
        self._one_at_a_time = threading.RLock()

    @property
    def has_failed(self) -> bool:
        return self.calls >= self.at

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        act = getattr(self.disk, verb)

        def run(path: str, *args: Any) -> Any:
            with self._one_at_a_time:
                if path.startswith(FAILS):
                    self.unlocked += verb == "unlock"
                    if verb in VERBS and self.is_offline():
                        self.late.append(threading.current_thread().name)
                    if verb in self._verbs:
                        self.calls += 1
                        if self.calls == self.at or (self.calls > self.at and not self._once):
                            raise Unreadable(f"{path}: [Errno 5] Input/output error")
                return act(path, *args)

        return run


@contextmanager
def restless() -> Iterator[None]:
    """Threads take turns as often as they can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)


def manager(disk: Any, config: ManagerConfig = CONFIG) -> LogManager:
    return LogManager(disk, config, lambda: T0, lambda: 0.0, lambda: "0" * 32, default=SMALL)


def fill(log: UnifiedLog, records: int) -> None:
    """Some segments, an open transaction and one that was aborted."""
    for _ in range(records):
        log.append_as_follower(batch(log.log_end_offset, size=200).data, 0)
    for producer, ends in ((1, True), (2, False)):
        fields = {"producer_id": producer, "producer_epoch": 0}
        first = batch(log.log_end_offset, base_sequence=0, attributes=hand_made.TRANSACTIONAL, **fields)
        log.append_as_follower(first.data, 0)
        if ends:
            log.append_as_follower(marker(log.log_end_offset, commits=False, **fields).data, 0)
    log.update_high_watermark(log.log_end_offset)


@cache
def _crashed() -> SimulatedDisk:
    disk = SimulatedDisk()
    for folder, partitions in ((FAILS, OF_FAILING), (SOUND, OF_SOUND)):
        running = manager(disk, ManagerConfig(log_dirs=(folder,)))
        running.start()
        for number, partition in enumerate(partitions):
            log = running.get_or_create(partition)
            fill(log, 3 + 4 * number)
            log.flush()
        torn, damaged = running.log(partitions[0]).local.segments.active, running.log(partitions[2]).local.segments.first
        disk.write(torn.log_file, torn.size, b"torn")
        disk.write(damaged.log_file, damaged.size - 1, b"!")
        for file in (torn.log_file, damaged.log_file):
            disk.sync(file)
        disk.unlock(f"{folder}/.lock")
    return disk.after_kill()


def crashed() -> SimulatedDisk:
    """Two directories of logs that were flushed but for which no checkpoint says so, some of them damaged."""
    return _crashed().after_kill()


def state(of: LogManager, partitions: list[TopicPartition]) -> dict[TopicPartition, object]:
    """All that the logs are; each is sound."""
    for partition in partitions:
        check_sound(of.log(partition))
    return {partition: summary(of.log(partition)) for partition in partitions}


def started(disk: Any) -> LogManager:
    """A manager that recovers the logs on a disk; on one that may fail, its threads get in each other's way."""
    made = manager(disk)
    if not isinstance(disk, AilingDisk):
        made.start()
        return made
    disk.is_offline = lambda: made.directories[0].failure is not None
    with restless():
        made.start()
    return made


def check_that_it_is_given_up(running: LogManager, disk: AilingDisk) -> None:
    """Once, by all of its threads at once, and for good; the other directory is in use."""
    assert [failure.directory for failure in running.offline] == [FAILS]
    assert disk.unlocked == 1
    assert max(map(disk.late.count, disk.late), default=0) <= 1  # a call that it had begun
    assert running.partitions() == tuple(OF_SOUND)
    for partition in OF_FAILING:
        with pytest.raises(Unreadable, match="offline"):
            running.log(partition)
    for partition in OF_SOUND:
        append(running.log(partition), 3)
    late = len(disk.late)
    with restless():
        assert running.tick(T0 + LATER_MS) == ()
        assert running.stop(7) == ()
    assert len(disk.late) == late
    assert disk.disk.exists(f"{SOUND}/{CLEAN_SHUTDOWN}")
    assert not disk.disk.exists(f"{FAILS}/{CLEAN_SHUTDOWN}")


@pytest.mark.parametrize("how", FAILURES)
def test_a_disk_that_fails_while_threads_recover_its_logs_is_given_up_once_and_costs_nothing(how: str) -> None:
    expected = state(started(crashed()), [*OF_FAILING, *OF_SOUND])
    threads = threading.active_count()
    at = 1
    while True:
        disk = AilingDisk(crashed(), how, at)
        running = started(disk)
        if not disk.has_failed:
            break
        check_that_it_is_given_up(running, disk)
        assert threading.active_count() == threads
        for left in (disk.disk.after_kill(), disk.disk.after_power_failure()):
            again = started(left)
            assert again.offline == ()
            assert state(again, OF_FAILING) == {p: expected[p] for p in OF_FAILING}
            assert [again.log(p).log_end_offset - ends(expected[p]) for p in OF_SOUND] == [3, 3, 3]
        at += 1 + at // 4
    assert at > 100


def ends(of: object) -> int:
    """The log's end in a summary."""
    assert isinstance(of, tuple)
    end = of[1]
    assert isinstance(end, int)
    return end


def running_on(disk: AilingDisk) -> tuple[LogManager, dict[TopicPartition, object]]:
    """A manager with logs that were appended to, not flushed, since they were recovered; and what they are."""
    disk.at = 1 << 30
    running = started(disk)
    for number, partition in enumerate((*OF_FAILING, *OF_SOUND)):
        log = running.log(partition)
        for _ in range(number + 1):
            log.append_as_follower(batch(log.log_end_offset, epoch=1, size=300).data, 1)
        log.update_high_watermark(log.log_end_offset)
    before = state(running, [*OF_FAILING, *OF_SOUND])
    disk.calls = 0
    return running, before


@pytest.mark.parametrize("how", FAILURES)
@pytest.mark.parametrize("act", ["stop", "tick"])
def test_a_disk_that_fails_while_logs_are_closed_or_checkpointed_is_told_of_once_and_nothing_is_lost(act: str, how: str) -> None:
    threads = threading.active_count()
    flushed = {p: ends(s) for p, s in state(started(crashed()), OF_FAILING).items()}
    at = 1
    while True:
        disk = AilingDisk(crashed(), how, 0)
        running, before = running_on(disk)
        disk.at = at
        with restless():
            problems = running.stop(7) if act == "stop" else running.tick(T0 + LATER_MS)
        if not disk.has_failed:
            break
        assert problems == running.offline
        assert [failure.directory for failure in running.offline] == [FAILS]
        assert disk.unlocked == 1
        assert max(map(disk.late.count, disk.late), default=0) <= 1
        assert threading.active_count() == threads
        if act == "tick":
            assert running.partitions() == tuple(OF_SOUND)
            assert running.stop(7) == ()
        assert disk.disk.exists(f"{SOUND}/{CLEAN_SHUTDOWN}")
        assert state(started(disk.disk.after_kill()), list(before)) == before
        left = started(disk.disk.after_power_failure())
        assert state(left, OF_SOUND) == {p: before[p] for p in OF_SOUND}
        assert all(flushed[p] <= ends(found) <= ends(before[p]) for p, found in state(left, OF_FAILING).items())
        at += 1 + at // 4
    assert at > 12


@pytest.mark.parametrize("verb", ["read", "size", "write", "truncate"])
def test_a_recovery_that_the_disk_breaks_off_cuts_nothing_that_is_sound(verb: str) -> None:
    """Kafka takes a read that failed for a segment that is damaged, and empties it."""
    disk = crashed()
    folder = f"{FAILS}/{OF_FAILING[4]}"
    expected = summary(opened(disk.after_kill(), folder))
    for at in range(1, 200):
        left = Stumbling(disk.after_kill(), verb, at)
        if not left.stumbles_at(lambda left=left: opened(left, folder)):  # type: ignore[misc]
            break
        assert summary(opened(left.disk.after_kill(), folder)) == expected, at
    assert at > 3


class Stumbling:
    """A disk on which one verb fails once, and all goes on well after that."""

    def __init__(self, disk: SimulatedDisk, verb: str, at: int) -> None:
        self.disk = disk
        self._verb = verb
        self._left = at

    def stumbles_at(self, act: Callable[[], object]) -> bool:
        """Whether that needs the verb so often; then it is told of the failure."""
        try:
            act()
        except Unreadable:
            return True
        assert self._left > 0
        return False

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        act: Callable[..., Any] = getattr(self.disk, verb)
        if verb != self._verb:
            return act

        def run(path: str, *args: Any) -> Any:
            self._left -= 1
            if not self._left:
                raise Unreadable(f"{path}: [Errno 5] Input/output error")
            return act(path, *args)

        return run


def opened(disk: Any, folder: str) -> UnifiedLog:
    return open_log(disk, folder, SMALL, lambda: T0, lambda: 0.0)
