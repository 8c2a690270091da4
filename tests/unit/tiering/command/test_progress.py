"""The progress of long work: what is shown, and where nothing is."""

import threading

import pytest

from tiering.command.progress import PARTITIONS, Rate, Work, about, shown

MIB = 1 << 20


def test_the_time_left_comes_from_the_rate() -> None:
    assert about(100 * MIB, 400 * MIB, 10 * MIB) == "MiB, 10.0 MiB/s, 0:00:30 left"
    assert about(MIB // 2, MIB, 10_000) == "MiB, 0.010 MiB/s, 0:00:52 left"
    assert about(MIB, 7200 * MIB + MIB, MIB) == "MiB, 1.0 MiB/s, 2:00:00 left"


def test_the_rate_is_that_which_holds_after_a_slow_start_and_a_burst() -> None:
    rate = Rate()
    assert rate.at(100, 0) == 0
    assert rate.at(103, 0) == 0
    assert rate.at(104, 8 * MIB) == 2 * MIB
    for second in range(1, 30):
        rate.at(104 + second, (8 + 4 * second) * MIB)
    assert rate.at(134, 128 * MIB) == 4 * MIB, "of the last ten seconds"


def test_while_nothing_ends_the_rate_goes_back_to_what_did() -> None:
    rate = Rate()
    for second, done in ((0, 0), (20, 1), (40, 2), (45, 2), (59, 2)):
        found = rate.at(second, done)
    assert found == 1 / 39, "one since the 20th second"
    assert rate.at(60, 3) == 1 / 20, "one since the 40th"


def test_progress_may_be_of_partitions() -> None:
    assert about(50, 200, 5, PARTITIONS) == "partitions, 5.0 partitions/s, 0:00:30 left"
    seen: list[tuple[int, int, str]] = []
    with shown("job", lambda: 7, lambda: 3, unit=PARTITIONS, show=lambda *shown: seen.append(shown), clock=lambda: 0):
        pass
    assert seen[-1] == (7, 7, "partitions in 0 s")


def test_before_the_first_task_has_ended_nobody_knows_the_rate() -> None:
    assert about(0, 400 * MIB, 0) == "MiB"


def test_progress_goes_on_while_the_block_runs_and_ends_full() -> None:
    seen: list[tuple[int, int]] = []
    looked = threading.Event()

    def show(done: int, of: int, _about: str) -> None:
        seen.append((done, of))
        looked.set()

    with shown("job", lambda: 10 * MIB, lambda: 4 * MIB, show=show):
        assert looked.wait(10)
    assert seen[0] == (4, 10)
    assert seen[-1] == (10, 10)


def test_tasks_that_ran_twice_do_not_pass_the_end_of_a_job_that_has_not_ended() -> None:
    seen: list[int] = []
    looked = threading.Event()

    def show(done: int, _of: int, _about: str) -> None:
        seen.append(done)
        looked.set()

    with shown("job", lambda: 10 * MIB, lambda: 99 * MIB, show=show):
        assert looked.wait(10)
        assert set(seen) == {9}


def test_a_job_that_fails_never_shows_its_end() -> None:
    seen: list[int] = []

    def fail() -> None:
        with shown("job", lambda: 10 * MIB, lambda: 5 * MIB, show=lambda done, _of, _about: seen.append(done)):
            raise RuntimeError("the job failed")

    with pytest.raises(RuntimeError, match="the job failed"):
        fail()
    assert 10 not in seen


def test_what_turns_out_not_to_be_needed_is_no_part_of_the_whole() -> None:
    work, seen = Work(20 * MIB), list[tuple[int, int]]()
    looked = threading.Event()

    def show(done: int, of: int, _about: str) -> None:
        seen.append((done, of))
        looked.set()

    work.did(2 * MIB)
    work.needs_not(4 * MIB)
    with shown("job", lambda: work.of_bytes, lambda: work.done_bytes, show=show):
        assert looked.wait(10)
    assert (seen[0], seen[-1]) == ((2, 16), (16, 16))


def test_of_few_bytes_progress_is_in_smaller_units() -> None:
    seen = list[tuple[int, int, str]]()
    looked = threading.Event()

    def show(*one: object) -> None:
        seen.append(one)  # type: ignore[arg-type]
        looked.set()

    with shown("job", lambda: 3 * MIB // 2, lambda: MIB, show=show, clock=lambda: 0):
        assert looked.wait(10)
    assert seen[0] == (1024, 1536, "KiB")
    assert seen[-1] == (1536, 1536, "KiB in 0 s")


def test_of_nothing_nothing_is_shown() -> None:
    with shown("job", lambda: 0, lambda: 0, show=lambda *_: pytest.fail("there is nothing to show")):
        pass


def test_nothing_is_shown_where_there_is_no_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with shown("job", lambda: 10 * MIB, lambda: pytest.fail("nobody looks")):
        pass
    assert capfd.readouterr().err == ""
