"""A partition that disappears with records that were not archived is told as lost, whenever that happens."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import pytest
import simulated_disk
from agents import LOGS, MINUTE_MS, World, roll_again
from archive_fakes import CountingIds, Door, FailsBefore
from logs_to_archive import path_of

from local_log.errors import NoSuchFile, Unavailable
from local_log.ranges import Range
from remote.keys import PartitionPath
from remote.manifest.losses import lost_ranges, source_gone
from remote.manifest.store import ManifestWriter, load_newest
from tiering.agent.agent import Agent
from tiering.metrics.series import LOST
from tiering.metrics.values import values
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan

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


@pytest.mark.parametrize("is_restarted", [False, True], ids=["while the agent runs", "while it does not"])
def test_what_only_this_broker_had_is_told_also_if_it_never_wrote_the_manifest(is_restarted: bool) -> None:
    """Another broker had archived some of it. The store took nothing of this one before the partition was gone."""
    world, other = World().has(ONE, TXN), World().has(ONE)
    log = world.logs()[ONE]
    short = replace(other.logs()[ONE], checkpointed_high_watermark=log.segments[3].base_offset)
    run = OffloadRun(world.archive, world.clock, CountingIds("b"), "other", lambda _: None)
    assert all(done.error is None for done in offload(plan(short, world.archive), run))
    archived = load_newest(world.archive, path_of(log))
    assert archived is not None
    end = archived.manifest.end_offset
    assert 0 < end < log.log_end_offset
    writer = ManifestWriter(world.archive, path_of(log), world.clock, world.ids, "other", archived.manifest.writer_epoch)
    writer.commit(archived.manifest, lambda m: source_gone(m, "other", end, world.clock.now_ms()))
    until = [world.clock.now + 3 * MINUTE_MS]
    takes_nothing = FailsBefore(
        world.archive, Unavailable("full"), lambda verb, *_: verb in ("upload", "put_if_absent") and world.clock.now < until[0]
    )
    agent, controls = world.agent(takes_nothing)
    world.clock.when(until[0], lambda: world.disk.delete_folder(f"{LOGS}/{ONE}"))
    world.run(agent, controls, 2 if is_restarted else 10)
    if is_restarted:
        world.clock.sleep(120)
        agent, controls = world.agent(takes_nothing)
        world.run(agent, controls, 10)
    assert losses(world, path_of(log)) == [(end, log.log_end_offset)]
    assert metric(agent) == {("g-codec-lz4", "0"): log.log_end_offset - end}


@pytest.mark.parametrize("is_restarted", [False, True], ids=["while the agent runs", "while it does not"])
def test_what_a_partition_had_that_came_back_for_a_moment_is_lost_too(is_restarted: bool) -> None:
    world = World().has(ONE, TXN)
    log = world.logs()[ONE]
    path, end = path_of(log), log.log_end_offset
    few, checkpoint = log.segments[2].base_offset, "replication-offset-checkpoint"
    for name in world.disk.files(f"{LOGS}/{ONE}"):
        if name[0].isdigit() and name >= f"{few:020d}":
            world.disk.delete(f"{LOGS}/{ONE}/{name}")
    offsets = world.disk.read(f"{LOGS}/{checkpoint}").decode()
    world.rewrite(checkpoint, offsets.replace(f"g-codec-lz4 0 {end}", f"g-codec-lz4 0 {few:04d}"))
    dead = [False]
    store = FailsBefore(world.archive, Unavailable("refused"), lambda verb, *_: dead[0] and verb in ("upload", "put_if_absent"))

    def comes_back() -> None:
        dead[0] = True
        world.has(ONE)

    def goes() -> None:
        world.disk.delete_folder(f"{LOGS}/{ONE}")

    start_ms = world.clock.now
    for minute, act in ((3, goes), (6, comes_back), (9, goes), (12, lambda: dead.__setitem__(0, False))):
        world.clock.when(start_ms + minute * MINUTE_MS, act)
    agent, controls = world.agent(store)
    world.run(agent, controls, 8 if is_restarted else 30)
    if is_restarted:
        world.clock.sleep(120)
        agent, controls = world.agent(store)
        world.run(agent, controls, 20)
    lost = losses(world, path)
    assert max(lost_end for _, lost_end in lost) == end
    assert metric(agent) == {("g-codec-lz4", "0"): sum(to - start for start, to in lost)}


class ComesAndGoes(World):
    """A partition comes while the store does not answer, for 20 minutes, and is gone again before it does.

    `other` is another broker, to which it has moved.
    """

    def __post_init__(self) -> None:
        World.__post_init__(self)
        self.has(TXN)
        self.other = World().has(ONE)
        self.log = self.other.logs()[ONE]
        self.start_ms, self.said = self.clock.now, list[str]()
        self.dead = FailsBefore(self.archive, Unavailable("refused"), lambda *_: self.is_dead())
        self.at(5, lambda: self.has(ONE))
        self.at(15, lambda: self.disk.delete_folder(f"{LOGS}/{ONE}"))

    def is_dead(self) -> bool:
        return 2 * MINUTE_MS <= self.clock.now - self.start_ms < 20 * MINUTE_MS

    def at(self, minute: int, act: Callable[[], object]) -> None:
        self.clock.when(self.start_ms + minute * MINUTE_MS, act)

    def lives_until(self, minute: int) -> Agent:
        agent, controls = self.agent(self.dead, tell=self.said.append)
        self.run(agent, controls, minute - (self.clock.now - self.start_ms) / MINUTE_MS)
        return agent

    def other_archives(self) -> None:
        """All of it: the other broker has rolled."""
        roll_again(self.other, ONE)
        run = OffloadRun(self.archive, self.clock, CountingIds("b"), "other", lambda _: None)
        assert all(done.error is None for done in offload(plan(self.other.logs()[ONE], self.archive), run))


@pytest.mark.parametrize("restarts_at", [18, 30, 40], ids=["before", "after", "long after"])
def test_what_was_gone_before_its_first_manifest_is_lost_also_after_a_restart(restarts_at: int) -> None:
    world = ComesAndGoes()
    world.lives_until(restarts_at)
    agent = world.lives_until(60)
    assert losses(world, path_of(world.log)) == [(0, world.log.log_end_offset)]
    assert metric(agent) == {("g-codec-lz4", "0"): world.log.log_end_offset}
    assert [message for message in world.said if "offsets are lost" in message] != []


@pytest.mark.parametrize("minute", [21, 50], ids=["before this broker asks again", "later"])
def test_what_was_gone_before_its_first_manifest_is_not_lost_once_another_broker_has_archived_it(minute: int) -> None:
    world = ComesAndGoes()
    world.at(minute, world.other_archives)
    agent = world.lives_until(60)
    assert losses(world, path_of(world.log)) == []
    assert metric(agent) == {}
    assert agent.view().gone == ()


def test_a_partition_without_records_that_comes_and_goes_leaves_nothing_in_the_archive() -> None:
    world = World().has(TXN)
    agent, controls = world.agent()
    folder, now_ms = f"{LOGS}/empty-0", world.clock.now

    def comes() -> None:
        world.disk.make_folder(folder)
        world.disk.write(f"{folder}/partition.metadata", 0, b"version: 0\ntopic_id: " + b"Z" * 21 + b"A\n")

    world.clock.when(now_ms + MINUTE_MS, comes)
    world.clock.when(now_ms + 3 * MINUTE_MS, lambda: world.disk.delete_folder(folder))
    world.run(agent, controls, 10)
    assert [key for key in world.archive.objects if key.startswith("empty/")] == []
    assert agent.view().gone == ()
