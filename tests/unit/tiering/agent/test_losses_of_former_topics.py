"""What was lost with a partition is told until somebody acknowledges it, also if its topic is made again."""

from dataclasses import replace

from agents import MINUTE_MS, STATE, roll_again
from archive_fakes import FailsBefore
from local_tiers import ORDERS, produce
from own_worlds import OwnWorld
from topics_made_again import ONE, TopicMadeAgain

from local_log.errors import Unavailable
from remote.keys import PartitionPath
from remote.manifest.losses import lost_ranges
from remote.manifest.store import load_newest
from tiering.agent.memory import MemoryFile
from tiering.agent.seen_there import SeenThere
from tiering.agent.watch import Mark, look


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


def test_a_former_topic_that_its_manifest_was_not_asked_for_is_asked_for_after_a_restart() -> None:
    world = TopicMadeAgain()
    world.lives(5)
    world.disk.delete_folder(STATE)
    world.fill_again()
    path, again = world.path, replace(world.path, topic_id=world.logs()[ONE].topic_id)
    asked: list[str] = []

    def fails(_verb: str, key: str, *_: object) -> bool:
        """It answers the copy task, before it archives the next topic, and not the task that asks for losses."""
        if key.startswith(path.manifests):
            asked.append(key)
        return key.startswith(path.manifests) and (len(asked) == 1 or load_newest(world.archive, again) is not None)

    world.run(*world.agent(FailsBefore(world.archive, Unavailable("refused"), fails)), 10)
    assert load_newest(world.archive, again) is not None
    world.assert_told(world.lives(10), world.lost)


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
