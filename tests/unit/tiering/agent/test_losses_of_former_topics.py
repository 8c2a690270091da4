"""What was lost with a partition is told until somebody acknowledges it, also if its topic is made again."""

from dataclasses import dataclass, replace

import pytest
from agents import LOGS, MINUTE_MS, STATE, World, WorldClock, roll_again
from archive_fakes import FailsBefore
from local_tiers import ORDERS, produce
from logs_to_archive import path_of
from own_worlds import OwnWorld

from local_log.errors import NoSuchFile, Unavailable
from local_log.formats.filenames import PARTITION_METADATA
from local_log.formats.primitives import INT64_MAX
from remote.keys import PartitionPath
from remote.manifest.losses import acknowledged, lost_ranges, unacknowledged
from remote.manifest.store import ManifestWriter, load_newest
from tiering.agent.agent import Agent
from tiering.agent.memory import MemoryFile
from tiering.agent.outcome import Outcome
from tiering.agent.seen_there import SeenThere
from tiering.agent.watch import Mark, look, opened
from tiering.agent.workers import InTurn
from tiering.metrics.series import LOST
from tiering.metrics.values import values

ONE, TXN = "g-codec-lz4-0", "g-txn-0"
LABELS = ("g-codec-lz4", "0")


class TopicMadeAgain(World):
    """A broker with a topic that is deleted and created again. `told` is what an agent shows at some time, and has said."""

    def __post_init__(self) -> None:
        World.__post_init__(self)
        self.has(ONE, TXN)
        log = self.logs()[ONE]
        self.path, self.lost = path_of(log), log.log_end_offset - log.segments[-1].base_offset
        self.said: list[str] = []
        self.told: list[int] = []

    def delete(self) -> None:
        self.disk.delete_folder(f"{LOGS}/{ONE}")

    def make_again(self) -> None:
        folder = f"{LOGS}/{ONE}"
        if self.disk.exists(folder):
            self.delete()
        self.disk.make_folder(folder)
        for suffix in (".log", ".index", ".timeindex"):
            self.disk.write(f"{folder}/{0:020d}{suffix}", 0, b"")
        self.disk.write(f"{folder}/{PARTITION_METADATA}", 0, b"version: 0\ntopic_id: " + b"Z" * 21 + b"A\n")

    def fill_again(self) -> None:
        """The topic is made again, and gets as many records as it had."""
        if self.disk.exists(f"{LOGS}/{ONE}"):
            self.delete()
        self.has(ONE)
        self.rewrite(f"{ONE}/{PARTITION_METADATA}", "version: 0\ntopic_id: " + "Y" * 21 + "A\n")

    def lives(self, minutes: int, *acts: object) -> Agent:
        """An agent lives for so long; each of `acts` happens two minutes after the one before."""
        agent, controls = self.agent(tell=self.said.append)
        for number, act in enumerate(acts, 1):
            self.clock.when(self.clock.now + 2 * number * MINUTE_MS + 11_000, act)  # type: ignore[arg-type]
        self.run(agent, controls, minutes)
        return agent

    def assert_told(self, agent: Agent, lost: int) -> None:
        view = agent.view()
        assert {labels: n for labels, n in values(view, {})[LOST].items() if n} == ({LABELS: lost} if lost else {})
        assert view.row()["lost_offsets"] == lost
        assert (view.row()["lost_since_ms"] is not None) == bool(lost)
        rows = [row for row in (*view.row()["partitions"], *view.row()["gone"]) if row["lost_offsets"]]
        assert [row["lost_offsets"] for row in rows] == ([lost] if lost else [])

    def acknowledge(self) -> None:
        stored = load_newest(self.archive, self.path)
        assert stored is not None
        assert sum(loss.end - loss.start for loss in unacknowledged(stored.manifest)) == self.lost
        writer = ManifestWriter(self.archive, self.path, self.clock, self.ids, "jo", stored.manifest.writer_epoch)
        writer.commit(stored.manifest, lambda m: acknowledged(m, [(0, INT64_MAX)], "jo", self.clock.now_ms()))

    def messages(self) -> list[str]:
        return [message for message in self.said if f"{ONE}: {self.lost} offsets are lost" in message]


def test_what_was_lost_with_a_topic_that_was_made_again_between_two_looks_is_told() -> None:
    world = TopicMadeAgain()
    agent = world.lives(10, world.make_again)
    world.assert_told(agent, world.lost)
    assert len(world.messages()) == 1


def test_a_loss_is_told_also_after_its_topic_was_made_again() -> None:
    world = TopicMadeAgain()
    agent = world.lives(90, world.delete, world.make_again)
    world.assert_told(agent, world.lost)
    assert len(world.messages()) == 1


def test_a_loss_is_told_after_a_restart_until_it_is_acknowledged() -> None:
    world = TopicMadeAgain()
    world.lives(10, world.delete)
    world.assert_told(world.lives(90), world.lost)
    agent = world.lives(10, world.acknowledge)
    world.assert_told(agent, 0)
    world.archive.calls.clear()
    world.assert_told(world.lives(10), 0)
    assert [key for _, key, *_ in world.archive.calls if key.startswith("g-codec-lz4")] == []


def test_a_loss_of_a_topic_that_was_made_again_is_told_after_a_restart_until_it_is_acknowledged() -> None:
    world = TopicMadeAgain()
    world.lives(90, world.delete, world.make_again)
    world.said.clear()
    world.assert_told(world.lives(90), world.lost)
    assert world.said == world.messages()
    agent = world.lives(10, world.acknowledge)
    world.assert_told(agent, 0)
    world.archive.calls.clear()
    world.assert_told(world.lives(10), 0)
    assert [key for _, key, *_ in world.archive.calls if key.startswith(f"{world.path.topic}/{world.path.topic_id}")] == []


def test_what_was_lost_with_a_topic_that_was_made_again_while_no_agent_ran_is_told() -> None:
    world = TopicMadeAgain()
    world.lives(5)
    world.make_again()
    world.assert_told(world.lives(10), world.lost)
    world.assert_told(world.lives(10), world.lost)


def test_what_was_lost_with_a_topic_that_was_made_again_during_the_first_look_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also what only the state folder knows of: the log has grown since the manifest has recorded it."""
    world, checkpoint = TopicMadeAgain(), "replication-offset-checkpoint"
    log = world.logs()[ONE]
    end, few, offsets = log.log_end_offset, log.segments[2].base_offset, world.disk.read(f"{LOGS}/{checkpoint}").decode()
    world.rewrite(checkpoint, offsets.replace(f"g-codec-lz4 0 {end}", f"g-codec-lz4 0 {few:04d}"))
    for name in world.disk.files(f"{LOGS}/{ONE}"):
        if name[0].isdigit() and name >= f"{few:020d}":
            world.disk.delete(f"{LOGS}/{ONE}/{name}")
    world.lives(5)
    world.has(ONE)
    takes_nothing = FailsBefore(world.archive, Unavailable("full"), lambda verb, *_: verb in ("upload", "put_if_absent"))
    world.run(*world.agent(takes_nothing), 3)
    stored = load_newest(world.archive, world.path)
    assert stored is not None
    assert max(stored.manifest.local_log_end_offsets.values()) < end
    read, left = world.disk.read, [True]

    def then_made_again(file: str, start: int = 0, end: int | None = None) -> bytes:
        found = read(file, start, end)
        if file == f"{LOGS}/{ONE}/{PARTITION_METADATA}" and left:
            left.clear()
            world.make_again()
        return found

    monkeypatch.setattr(world.disk, "read", then_made_again)
    world.assert_told(world.lives(10), end - stored.manifest.end_offset)
    world.assert_told(world.lives(10), end - stored.manifest.end_offset)


def test_a_log_that_came_back_is_noticed_again_when_its_folder_is_another_topic_s() -> None:
    world = TopicMadeAgain()
    world.lives(5)
    log_dir, now_ms = world.log_dir(), world.clock.now
    there = SeenThere((log_dir,), MemoryFile(world.disk, STATE, "agent.json"), "memory://store", world.clock, world.said.append)
    (before,) = look(log_dir, lambda topic: topic == world.path.topic, now_ms)
    after = replace(before, topic_id="Z" * 21 + "A")

    def noticed(mark: Mark) -> int:
        return len([*there.gone(lambda topic: topic == world.path.topic, {mark.folder: mark}, {}, now_ms)])

    assert [noticed(mark) for mark in (before, after, after, before, after)] == [0, 1, 0, 0, 1]


def test_what_a_former_topic_lost_is_told_by_an_agent_that_remembers_nothing() -> None:
    world = TopicMadeAgain()
    world.lives(5)
    world.disk.delete_folder(STATE)
    world.make_again()
    agent = world.lives(10)
    world.assert_told(agent, world.lost)
    assert world.said == world.messages()
    world.assert_told(world.lives(10), world.lost)


@dataclass
class SlowTurns(InTurn):
    """A store that answers late: what turns have done until some time is known only then."""

    clock: WorldClock
    until_ms: int

    def __post_init__(self) -> None:
        InTurn.__init__(self, self.clock)

    def finished(self, wait_s: float) -> list[Outcome]:
        if self.clock.now >= self.until_ms:
            return super().finished(wait_s)
        self.clock.sleep(wait_s)
        return []


def test_what_a_turn_has_done_for_a_former_topic_is_not_taken_for_the_one_that_has_its_folder_now() -> None:
    world = TopicMadeAgain()
    roll_again(world, ONE)
    world.lives(5)
    end, begun = world.logs()[ONE].log_end_offset, world.clock.now
    silent = FailsBefore(world.archive, Unavailable("refused"), lambda *_: world.clock.now > begun + 2 * MINUTE_MS)
    workers = SlowTurns(world.clock, begun + 4 * MINUTE_MS)
    agent, controls = world.agent(silent, tell=world.said.append, workers=workers)
    world.clock.when(begun + 3 * MINUTE_MS, world.fill_again)
    world.clock.when(begun + 10 * MINUTE_MS, world.delete)
    world.run(agent, controls, 20)
    world.assert_told(agent, end)


def test_a_look_that_could_not_read_a_topic_id_lets_no_turn_archive_another_topic() -> None:
    world = TopicMadeAgain()
    mark = replace(look(world.log_dir(), lambda topic: topic == world.path.topic, world.clock.now)[0], topic_id=None)
    with pytest.raises(NoSuchFile, match="look at the folder again"):
        opened(mark)


def test_what_another_broker_lost_of_a_former_topic_is_left_to_it() -> None:
    world, other = TopicMadeAgain(), "b" * 22
    world.lives(5)
    world.disk.delete_folder(STATE)
    world.rewrite("meta.properties", f"version=1\nnode.id=2\ndirectory.id={other}\n")
    world.make_again()
    agent = world.lives(10)
    world.assert_told(agent, 0)
    assert world.said == []


def test_what_two_topics_of_one_name_lost_is_told_together() -> None:
    world = TopicMadeAgain()
    agent = world.lives(20, world.delete, world.fill_again, world.delete)
    world.assert_told(agent, 2 * world.lost)
    assert len(world.messages()) == 2
    world.assert_told(world.lives(20, world.make_again), 2 * world.lost)
    world.assert_told(world.lives(20), 2 * world.lost)
    world.acknowledge()
    world.assert_told(world.lives(20), world.lost)


def test_what_was_archived_of_a_former_topic_is_not_taken_for_the_one_that_has_its_name_now() -> None:
    world = TopicMadeAgain()
    end = world.logs()[ONE].log_end_offset
    roll_again(world, ONE)
    world.lives(5)
    world.fill_again()
    until = world.clock.now + 3 * MINUTE_MS
    silent = FailsBefore(world.archive, Unavailable("refused"), lambda *_: world.clock.now < until)
    world.clock.when(until, world.delete)
    agent, controls = world.agent(silent, tell=world.said.append)
    world.run(agent, controls, 10)
    world.assert_told(agent, end)


def test_a_topic_of_our_own_that_is_deleted_and_created_again_between_two_looks_has_lost_nothing() -> None:
    world = OwnWorld()
    world.start().create_topic("orders")
    world.tier.alter_configs("orders", {"local.retention.ms": "-1"})
    produce(world.tier, ORDERS, 100, now_ms=world.clock.now)
    former = PartitionPath("orders", world.tier.topic("orders").topic_id or "", 0)

    def again() -> None:
        world.tier.delete_topic("orders")
        world.tier.create_topic("orders")

    world.clock.when(world.clock.now + 3 * MINUTE_MS + 11_000, again)
    agent = world.run(10)
    stored = load_newest(world.archive, former)
    assert stored is not None
    assert [loss.acknowledged_by for loss in lost_ranges(stored.manifest)] == ["the deletion of the topic"]
    assert agent.view().row()["lost_offsets"] == 0
    assert world.said == []
