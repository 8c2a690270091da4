"""One agent a log directory, and who only asks is in nobody's way."""

import pytest
from archive_fakes import SleptClock

from local_log.errors import Invalid, NotFound
from tiering.agent.agent_lock import ATTEMPTS_MAX, agent_lock, has_agent


class Folders:
    """Holds of everybody. A folder in `busy` is somebody's for so many more questions."""

    def __init__(self, **busy: int) -> None:
        self.busy = busy
        self.held: set[str] = set()

    def hold(self, folder: str) -> bool:
        if folder == "nothing":
            raise NotFound(folder)
        if self.busy.get(folder, 0):
            self.busy[folder] -= 1
            return False
        if folder in self.held:
            return False
        self.held.add(folder)
        return True

    def let_go(self, folder: str) -> None:
        self.held.remove(folder)


def test_all_log_directories_are_held_for_as_long_as_the_agent_lives() -> None:
    folders = Folders()
    with agent_lock(folders, ["a", "b"], SleptClock()):
        assert folders.held == {"a", "b"}
        assert has_agent(folders, ["c", "b"])
        assert not has_agent(folders, ["c", "d"])
    assert folders.held == set()


def test_of_two_agents_that_have_one_in_common_the_second_is_refused_and_holds_nothing() -> None:
    folders, clock = Folders(b=99), SleptClock()
    with pytest.raises(Invalid, match="b: another agent uses this log directory"), agent_lock(folders, ["a", "b"], clock):
        raise AssertionError("it must not begin")
    assert folders.held == set()
    assert len(clock.slept) == ATTEMPTS_MAX


def test_one_that_is_held_for_a_moment_only_is_waited_for() -> None:
    with agent_lock(Folders(a=ATTEMPTS_MAX - 1), ["a"], SleptClock()):
        pass


def test_a_log_directory_that_is_not_there_frees_the_others() -> None:
    folders = Folders()
    with pytest.raises(NotFound), agent_lock(folders, ["a", "nothing"], SleptClock()):
        raise AssertionError("it must not begin")
    assert folders.held == set()
