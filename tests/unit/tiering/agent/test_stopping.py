"""A stop in the midst of a copy: it ends or is aborted, in bounded time, and nothing is lost either way."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

import pytest
from agents import BACKOFF, World, decoded
from archive_fakes import Door
from logs_to_archive import finer_logs, path_of
from made_manifests import assert_sound_archive
from one_offload import TXN, due_ranges, named

from local_log.os_disk import OsWritableDisk
from remote.clock import SystemClock
from remote.manifest.store import load_newest
from remote.store.api import ObjectStore
from remote.store.throttled import Throttled
from tiering.agent import agent as agent_room
from tiering.agent.abortable import Abortable
from tiering.agent.agent import Agent
from tiering.agent.controls import AbortableClock, Aborted, Controls
from tiering.agent.memory import MemoryFile
from tiering.agent.settings import Settings, Source, Surroundings
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.tasks.lost_partitions import LostPartitionsTask
from tiering.agent.tasks.scrub import ScrubTask
from tiering.agent.tasks.task import Task
from tiering.agent.wiring import build
from tiering.agent.workers import Threads
from tiering.config.load import load_config
from tiering.losses import seen_logs

T = TypeVar("T")
LONG_S = 60
"""For what comes at once, or the test has failed."""


class Held(Door):
    """Holds every upload until `go`; tells by `begun` when one has come."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.begun, self.go = Event(), Event()

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if verb == "upload":
            self.begun.set()
            assert self.go.wait(LONG_S)
        return call()


class Started:
    """An agent with threads and the machine's clock, in a thread of its own."""

    def __init__(self, world: World, store: Callable[[Controls], ObjectStore], shutdown_ms: int) -> None:
        controls = self.controls = Controls()
        clock = AbortableClock(SystemClock(), controls)
        self.store = Abortable(store(controls), controls)
        tasks: list[Task] = [
            CopyTask(self.store, clock, world.ids),
            LostPartitionsTask(self.store, clock, world.ids),
            ScrubTask(self.store, clock, decoded(), 0.0, 7 * 86_400_000),
        ]
        self.agent = Agent(
            Source((world.log_dir(),), "memory://store", lambda topic: True, lambda topic: True), tasks,
            Settings(2, BACKOFF, shutdown_ms=shutdown_ms), Surroundings(Threads(2), controls, clock, lambda: 0.5),
            MemoryFile(world.disk, "/state", "agent.json"),
        )  # fmt: skip
        self.left: list[int] = []
        self._thread = Thread(target=lambda: self.left.append(self.agent.run()))
        self._thread.start()

    def ended(self) -> int:
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()
        return self.left[0]


def go_on(world: World) -> None:
    agent, controls = world.agent()
    world.run(agent, controls, 2)
    for name, log in world.logs().items():
        assert named(assert_sound_archive(world.archive, path_of(log))) == due_ranges(log), name


def test_a_stop_lets_a_copy_come_to_the_end_of_its_segment() -> None:
    world = World().has(TXN)
    held = Held(world.archive)
    started = Started(world, lambda controls: held, shutdown_ms=LONG_S * 1000)
    assert held.begun.wait(LONG_S)
    started.controls.stop()
    held.go.set()
    assert started.ended() == 0
    assert len(assert_sound_archive(world.archive, path_of(world.logs()[TXN])).entries) == 1, "that one, and no other"
    go_on(world)


@pytest.mark.parametrize("stops", [1, 2], ids=["after its timeout", "at once when told twice"])
def test_a_copy_that_keeps_to_a_byte_limit_is_given_up_and_made_anew_by_the_next_agent(stops: int) -> None:
    world = World().has(TXN)
    begun = Event()

    class Telling(Door):
        def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
            if verb == "upload":
                begun.set()
            return call()

    def slow(controls: Controls) -> ObjectStore:
        return Telling(Throttled(world.archive, 1, AbortableClock(SystemClock(), controls)))

    started = Started(world, slow, shutdown_ms=1 if stops == 1 else LONG_S * 1000)
    assert begun.wait(LONG_S)
    for _ in range(stops):
        started.controls.stop()
    assert started.ended() == 1
    assert load_newest(world.archive, path_of(world.logs()[TXN])) is None
    assert started.agent.hung == 0
    go_on(world)


def test_a_turn_that_hears_nothing_is_left_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_room, "ABORT_MS", 1)
    world = World().has(TXN)
    held = Held(world.archive)
    started = Started(world, lambda controls: held, shutdown_ms=1)
    assert held.begun.wait(LONG_S)
    started.controls.stop()
    assert started.ended() == 1
    assert started.agent.hung == 1
    held.go.set()


def test_a_stopped_agent_saves_what_it_has_seen_also_where_an_offload_has_the_file_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = OsWritableDisk.lock
    monkeypatch.setattr(OsWritableDisk, "lock", lambda self, file: "/logs-" not in file and lock(self, file))
    monkeypatch.setattr(seen_logs, "_ATTEMPTS_MAX", 2)
    finer_logs(tmp_path / "logs", 12)
    given = {
        "log.dirs": str(tmp_path / "logs"), "archive.url": str(tmp_path / "archive"), "agent.state.dir": str(tmp_path / "state"),
        "remote.log.manager.task.interval.ms": "3600000", "agent.tasks": "copy",
    }  # fmt: skip
    built = build(load_config(None, {}, OsWritableDisk(), [f"{name}={text}" for name, text in given.items()]), {}, print)
    running = Thread(target=built.agent.run)
    running.start()
    until = time.monotonic() + LONG_S
    while not any(one.is_recorded for one in built.agent.view().partitions):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert [*(tmp_path / "state").glob("logs-*.json")] == [], "it has looked only once, before it read a manifest"
    built.controls.stop()
    running.join(LONG_S)
    assert len([*(tmp_path / "state").glob("logs-*.json")]) == 1


def test_a_pause_and_a_stop_wake_the_loop() -> None:
    world = World()
    started = Started(world, lambda controls: world.archive, shutdown_ms=1)
    started.controls.pause()
    started.controls.resume()
    started.controls.stop()
    assert started.ended() == 0


def test_what_is_no_error_of_ours_ends_the_agent() -> None:
    world = World().has(TXN)

    class Buggy(Door):
        def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
            raise ZeroDivisionError

    agent, controls = world.agent(Buggy(world.archive))
    with pytest.raises(ZeroDivisionError):
        world.run(agent, controls, 1)


VERBS = [
    lambda s: s.get("k"), lambda s: s.get_range("k", 0, 1), lambda s: s.head("k"), lambda s: [*s.list("")],
    lambda s: [*s.list_folders("")], lambda s: s.put_if_absent("n", b""), lambda s: s.upload("u", [b"x"], size=1, crc32c=0),
    lambda s: s.delete("k"), lambda s: [*s.abandoned_uploads("", 0)], lambda s: s.abort_upload(None),
]  # fmt: skip


@pytest.mark.parametrize("call", VERBS)
def test_no_verb_of_a_store_is_answered_once_all_is_given_up(call: Callable[[ObjectStore], object]) -> None:
    world, controls = World(), Controls()
    world.archive.objects["k"] = b"x"
    store = Abortable(world.archive, controls)
    controls.abort()
    with pytest.raises(Aborted):
        call(store)
    assert "n" not in world.archive.objects
    assert "k" in world.archive.objects
