"""Jobs in the background: they run once at a time, their errors come out, and their end is waited for."""

import sys
import threading
from subprocess import run

import pytest

from local_log.engine.manager.background import AtOnce, Threads


def test_no_job_starts_while_one_runs() -> None:
    threads, go_on, count = Threads(), threading.Event(), [0]

    def job() -> None:
        count[0] += 1
        go_on.wait(10)

    threads.run(2, job)
    threads.run(2, job)
    go_on.set()
    threads.stop()
    assert count == [2]
    threads.run(2, job)
    assert count == [2]


def test_what_a_job_raises_the_next_run_raises() -> None:
    threads = Threads()

    def job() -> None:
        raise ZeroDivisionError

    threads.run(1, job)
    threads.stop()
    with pytest.raises(ZeroDivisionError):
        threads.run(1, job)


def test_a_stop_ends_the_pause_of_a_job() -> None:
    threads, is_paused = Threads(), threading.Event()

    def job() -> None:
        is_paused.set()
        threads.pause(60_000)

    threads.run(1, job)
    assert is_paused.wait(10)
    threads.stop()


def test_a_process_that_raises_ends_while_a_job_runs() -> None:
    program = (
        "from local_log.engine.manager.background import Threads\n"
        "threads = Threads()\n"
        "threads.run(2, lambda: threads.pause(3_600_000))\n"
        "raise SystemExit(7)\n"
    )
    assert run([sys.executable, "-c", program], timeout=60, check=False).returncode == 7


def test_at_once_a_job_is_done_when_run_returns() -> None:
    done: list[int] = []
    background = AtOnce()
    background.run(2, lambda: done.append(1))
    background.pause(60_000)
    background.stop()
    assert done == [1, 1]
