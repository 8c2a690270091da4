"""What is lost is told whatever fails meanwhile: the state folder, the store, a mount, a look."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from agents import LOGS, MINUTE_MS, STATE
from archive_fakes import FailsBefore
from topics_made_again import ONE, TopicMadeAgain

from local_log.errors import NoSuchFile, Unavailable, Unreadable
from local_log.formats.filenames import META_PROPERTIES
from remote.manifest.store import load_newest
from tiering.agent import disk_look
from tiering.agent.schedule import Kind
from tiering.retention.policy import Given


class Failing(TopicMadeAgain):
    """The same broker, with a disk that fails at times."""

    def unmount(self) -> Callable[[], None]:
        """The log directory becomes an empty mount point; gives what mounts its disk again."""
        disk, verbs = self.disk, ("names", "read", "state", "size", "is_folder", "modified_ms")
        before = {verb: getattr(disk, verb) for verb in verbs}

        def of(verb: str) -> Callable[..., Any]:
            def asked(path: str, *more: Any) -> Any:
                if path == LOGS and verb == "names":
                    return []
                if path.startswith(f"{LOGS}/"):
                    if verb == "is_folder":
                        return False
                    raise NoSuchFile(f"{path}: no such file")
                return before[verb](path, *more)

            return asked

        for verb in verbs:
            setattr(disk, verb, of(verb))

        def mount() -> None:
            for verb, act in before.items():
                setattr(disk, verb, act)

        return mount

    def state_folder_fails(self, verb: str, until_ms: int) -> None:
        """The state folder's disk is full, or cannot be read, until then."""
        act = getattr(self.disk, verb)

        def failing(path: str, *more: Any) -> Any:
            if path.startswith(STATE) and self.clock.now < until_ms:
                raise Unreadable(f"{path}: the disk does not answer")
            return act(path, *more)

        setattr(self.disk, verb, failing)


def test_a_partition_is_remembered_once_the_state_folder_can_be_written_again() -> None:
    world = Failing()
    begun = world.clock.now
    world.state_folder_fails("write", begun + 3 * MINUTE_MS)
    agent, controls = world.agent(tell=world.said.append)
    shown: list[object] = []
    world.clock.when(begun + 2 * MINUTE_MS + 1_000, lambda: shown.append(agent.view().last_error))
    world.run(agent, controls, 10)
    assert shown
    assert shown[0] is not None
    assert agent.view().last_error is None
    assert len([said for said in world.said if "the disk does not answer" in said]) == 2  # the logs' file, and the agent's
    world.delete()
    world.assert_told(world.lives(10), world.lost)


def test_what_vanished_is_noticed_once_the_state_folder_can_be_read_again() -> None:
    world = Failing()
    world.lives(5)
    world.delete()
    agent, controls = world.agent(tell=world.said.append)
    world.state_folder_fails("read", world.clock.now + 3 * MINUTE_MS)
    world.run(agent, controls, 10)
    world.assert_told(agent, world.lost)


def test_a_topic_is_archived_also_if_the_former_one_of_its_folder_is_noticed_later() -> None:
    world = Failing()
    world.lives(5)
    world.fill_again()
    again, begun = replace(world.path, topic_id=world.logs()[ONE].topic_id), world.clock.now
    silent = FailsBefore(world.archive, Unavailable("refused"), lambda *_: world.clock.now < begun + 4 * MINUTE_MS)
    agent, controls = world.agent(silent)
    world.state_folder_fails("read", begun + 3 * MINUTE_MS)
    world.run(agent, controls, 30)
    newest = load_newest(world.archive, again)
    assert newest is not None
    assert newest.manifest.end_offset > 0


@pytest.mark.parametrize("kind", ["logs-", "former-"])
def test_a_damaged_state_file_is_told_and_kept_under_another_name(kind: str) -> None:
    world = Failing()
    world.lives(12, world.fill_again)
    (file,) = (f"{STATE}/{name}" for name in world.disk.names(STATE) if name.startswith(kind))
    world.disk.truncate(file, 0)
    world.disk.write(file, 0, b"{")
    agent = world.lives(5)
    assert len([said for said in world.said if f"{file} at byte 1: expected a state file of format 1" in said]) == 1
    assert agent.view().last_error is None
    if kind == "logs-":
        assert world.disk.read(f"{file}.damaged") == b"{"
        assert b"g-txn-0" in world.disk.read(file)
    else:
        assert world.disk.read(file) == b"{"


def test_a_partition_that_was_recorded_and_gone_between_two_looks_is_told_after_a_restart() -> None:
    world = Failing()
    begun = world.clock.now
    silent = FailsBefore(world.archive, Unavailable("refused"), lambda *_: world.clock.now > begun + 15_000)
    world.clock.when(begun + 20_000, world.delete)
    world.run(*world.agent(silent), 2)
    world.assert_told(world.lives(10), world.lost)


def test_a_loss_is_shown_while_its_log_directory_is_not_mounted_and_after() -> None:
    world = Failing()
    world.lives(5)
    agent, controls = world.agent(tell=world.said.append)
    begun, mount = world.clock.now, list[Callable[[], None]]()
    world.clock.when(begun + 2 * MINUTE_MS, world.delete)
    world.clock.when(begun + 5 * MINUTE_MS, lambda: mount.append(world.unmount()))
    world.clock.when(begun + 8 * MINUTE_MS, lambda: world.assert_told(agent, world.lost))
    world.clock.when(begun + 9 * MINUTE_MS, lambda: mount[0]())
    world.run(agent, controls, 15)
    world.assert_told(agent, world.lost)
    assert len([said for said in world.said if "check whether its disk is mounted" in said]) == 1
    assert agent.view().last_error is None


def test_what_is_remembered_while_a_log_directory_is_not_mounted_is_found_by_the_next_agent() -> None:
    world = Failing()
    begun, mount = world.clock.now, list[Callable[[], None]]()
    world.state_folder_fails("write", begun + 5 * MINUTE_MS)
    agent, controls = world.agent(tell=world.said.append)
    world.clock.when(begun + 3 * MINUTE_MS, lambda: mount.append(world.unmount()))
    world.clock.when(begun + 7 * MINUTE_MS, lambda: mount[0]())
    world.run(agent, controls, 9)
    world.delete()
    world.assert_told(world.lives(10), world.lost)


def test_a_log_directory_without_partitions_whose_id_is_damaged_is_told_and_its_losses_once_it_is_mended() -> None:
    world = Failing()
    lost = world.grow_unrecorded()
    world.delete()
    file = f"{LOGS}/{META_PROPERTIES}"
    properties = world.disk.read(file)
    world.disk.truncate(file, len(properties) - 1)
    assert world.lives(3).view().last_error is not None
    assert [said for said in world.said if file in said and "line's end" in said]
    world.disk.write(file, 0, properties)
    world.assert_told(world.lives(10), lost)


def test_a_partition_that_is_deleted_after_looks_that_could_not_read_it_is_told_as_it_was_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = Failing()
    lost = world.grow_unrecorded()

    def unreadable(*_: Any) -> Any:
        raise Unreadable("the disk does not answer")

    monkeypatch.setattr(disk_look, "scan_log", unreadable)
    begun = world.clock.now
    full = FailsBefore(
        world.archive, Unavailable("full"), lambda verb, *_: verb != "get" and world.clock.now < begun + 3 * MINUTE_MS
    )
    world.clock.when(begun + 2 * MINUTE_MS, world.delete)
    agent, controls = world.agent(full)
    world.run(agent, controls, 10)
    world.assert_told(agent, lost)


def test_segments_expire_again_once_a_log_directory_is_mounted_again() -> None:
    world = Failing()
    agent, controls = world.agent(given=(Given("*", "retention.ms", "100000000000"),))
    begun, mount = world.clock.now, list[Callable[[], None]]()
    world.clock.when(begun + 3 * MINUTE_MS, lambda: mount.append(world.unmount()))
    world.clock.when(begun + 70 * MINUTE_MS, lambda: mount[0]())
    world.run(agent, controls, 90)
    assert [job.kind for job in agent._state.queue.waiting].count(Kind.expire) == 2
    assert load_newest(world.archive, world.path) is not None
