"""A topic may be deleted and created again at any moment of a look and of a turn: neither is taken for the other."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from agents import BACKOFF, MINUTE_MS, WorldClock, roll_again
from archive_fakes import FailsBefore
from topics_made_again import ONE, TopicMadeAgain

from local_log.errors import NoSuchFile, Unavailable, Unreadable
from tiering.agent import disk_look
from tiering.agent.outcome import Outcome
from tiering.agent.settings import Settings
from tiering.agent.watch import look, opened
from tiering.agent.workers import InTurn


@pytest.mark.parametrize("act", [TopicMadeAgain.make_again, TopicMadeAgain.delete])
def test_what_was_lost_with_a_topic_that_was_made_again_or_deleted_during_the_first_look_is_told(
    act: Callable[[TopicMadeAgain], None],
) -> None:
    """Also what only the state folder knows of: the log has grown since the manifest has recorded it."""
    world = TopicMadeAgain()
    lost = world.grow_unrecorded()
    world.after_the_next_id(lambda: act(world))
    world.assert_told(world.lives(10), lost)
    world.assert_told(world.lives(10), lost)


class SlowTurns(InTurn):
    """A store that answers late: what turns have done until some time is known only then."""

    def __init__(self, clock: WorldClock, until_ms: int) -> None:
        super().__init__(clock)
        self.clock, self.until_ms = clock, until_ms

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


def test_what_was_lost_with_a_partition_that_no_look_could_read_is_told_as_its_manifest_has_recorded_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = TopicMadeAgain()

    def unreadable(*_: Any) -> Any:
        raise Unreadable("of a disk that is slow")

    monkeypatch.setattr(disk_look, "scan_log", unreadable)
    agent = world.lives(10, world.delete)
    world.assert_told(agent, world.lost)
    assert len(world.messages()) == 1


def test_what_was_recorded_of_a_former_topic_that_no_look_could_read_is_not_taken_for_the_one_that_has_its_folder_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = TopicMadeAgain()
    roll_again(world, ONE)
    end, begun, scan = world.logs()[ONE].log_end_offset, world.clock.now, disk_look.scan_log

    def scanned(*of: Any) -> Any:
        if world.clock.now < begun + MINUTE_MS:
            raise Unreadable("of a disk that is slow")
        return scan(*of)

    monkeypatch.setattr(disk_look, "scan_log", scanned)
    silent = FailsBefore(world.archive, Unavailable("refused"), lambda *_: world.clock.now > begun + MINUTE_MS // 2)
    agent, controls = world.agent(silent, tell=world.said.append, settings=Settings(1, BACKOFF, 2 * MINUTE_MS))
    world.clock.when(begun + MINUTE_MS, world.fill_again)
    world.clock.when(begun + 10 * MINUTE_MS, world.delete)
    world.run(agent, controls, 20)
    world.assert_told(agent, end)


def test_a_look_that_could_not_read_a_topic_id_lets_no_turn_archive_another_topic() -> None:
    world = TopicMadeAgain()
    mark = replace(look(world.log_dir(), lambda topic: topic == world.path.topic, world.clock.now)[0], topic_id=None)
    with pytest.raises(NoSuchFile, match="look at the folder again"):
        opened(mark)
