"""A partition that disappears with records that were not archived is told as lost, whenever that happens."""

from collections.abc import Callable
from typing import TypeVar

import pytest
import simulated_disk
from agents import LOGS, World
from archive_fakes import Door
from logs_to_archive import path_of

from local_log.errors import NoSuchFile
from local_log.ranges import Range
from remote.keys import PartitionPath
from remote.manifest.losses import lost_ranges
from remote.manifest.store import load_newest
from tiering.agent.agent import Agent
from tiering.metrics.series import LOST
from tiering.metrics.values import values

T = TypeVar("T")
ONE, TXN, TINY = "g-codec-lz4-0", "g-txn-0", "g-tiny-0"


class Meanwhile(Door):
    """Something happens while the first request is under way."""

    def __init__(self, inner: object, act: Callable[[], object]) -> None:
        super().__init__(inner)  # type: ignore[arg-type]
        self._acts = [act]

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        while self._acts:
            self._acts.pop()()
        return call()


def metric(agent: Agent) -> dict[tuple[str, ...], float]:
    return {labels: n for labels, n in values(agent.view(), {})[LOST].items() if n}


def losses(world: World, path: PartitionPath) -> list[Range]:
    stored = load_newest(world.archive, path)
    return [] if stored is None else [(loss.start, loss.end) for loss in lost_ranges(stored.manifest)]


def test_a_partition_that_is_deleted_before_its_turn_is_told_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulated_disk, "NotFound", NoSuchFile, raising=False)  # as the disk of an operating system does
    world = World().has(ONE, TXN)
    log = world.logs()[TXN]
    path, end = path_of(log), log.log_end_offset
    world.run(*world.agent(), 2)
    said: list[str] = []
    store = Meanwhile(world.archive, lambda: world.disk.delete_folder(f"{LOGS}/{TXN}"))
    agent, controls = world.agent(store, tell=said.append)
    world.run(agent, controls, 3)
    stored = load_newest(world.archive, path)
    assert stored is not None
    assert losses(world, path) == [(stored.manifest.end_offset, end)]
    assert metric(agent) == {("g-txn", "0"): end - stored.manifest.end_offset}
    assert [message for message in said if "offsets are lost" in message] != []


def test_a_partition_of_which_nothing_is_due_yet_is_remembered_once_it_is_recorded() -> None:
    world = World().has(TINY, TXN)
    log = world.logs()[TINY]
    path, end = path_of(log), log.log_end_offset
    world.run(*world.agent(), 2)
    world.disk.delete_folder(f"{LOGS}/{TINY}")
    agent, controls = world.agent()
    world.run(agent, controls, 3)
    assert losses(world, path) == [(0, end)]
    assert metric(agent) == {("g-tiny", "0"): end}
