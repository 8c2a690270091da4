"""The archive is opened once, however many turns need it and however often its store does not respond."""

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Semaphore

import pytest

from local_log.errors import Unavailable
from tiering.agent.opening import Opening

LONG_S, OTHERS = 60, 7


class Archive:
    """Holds whoever opens it until `go`; it fails while `is_away`."""

    def __init__(self) -> None:
        self.asked, self.is_away, self.begun, self.go = 0, True, Event(), Event()

    def open(self) -> bool:
        self.asked += 1
        self.begun.set()
        assert self.go.wait(LONG_S)
        if self.is_away:
            raise Unavailable("no answer")
        return True


def test_turns_that_wait_for_one_that_fails_fail_with_it_and_the_next_one_tries_again() -> None:
    archive, calling = Archive(), Semaphore(0)
    opening = Opening(archive.open)

    def turn() -> bool:
        calling.release()
        return opening()

    with ThreadPoolExecutor(1 + OTHERS) as pool:
        turns = [pool.submit(turn)]
        assert archive.begun.wait(LONG_S)
        turns += [pool.submit(turn) for _ in range(OTHERS)]
        assert all(calling.acquire(timeout=LONG_S) for _ in turns)
        time.sleep(0.1)  # they wait for the first one now, or some of them
        archive.go.set()
        assert {str(one.exception(LONG_S)) for one in turns} == {"no answer"}
    assert archive.asked < len(turns)
    archive.is_away = False
    assert [opening(), opening()] == [True, False]


def test_what_is_a_bug_is_raised_to_whom_it_happens() -> None:
    def fails() -> bool:
        raise ZeroDivisionError

    opening = Opening(fails)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            opening()
