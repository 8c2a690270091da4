"""Who is next, and when: the pure part."""

import pytest

from tiering.agent.schedule import FAILED_MAX, NEVER_MS, OPEN, Backoff, Gate, Job, Kind, Waiting, choose, earlier, moved, wake_ms
from tiering.agent.tasks.rounds import Round

BACKOFF = Backoff(500, 30_000, 0.2)


def copy(subject: str) -> Job:
    return Job(Kind.copy, subject)


def served(ms: int, more_in: dict[str, int]) -> list[str]:
    """Whom a loop serves that does nothing but take turns: each one takes a ms, and leaves so many more to do."""
    waiting = {copy(name): Waiting(0) for name in more_in}
    order: list[str] = []
    turns = dict.fromkeys(more_in, 0)
    for now_ms in range(ms):
        for job in choose(waiting, (), 1, now_ms, OPEN):
            del waiting[job]
            order.append(job.subject)
            more_in[job.subject] -= 1
            if more_in[job.subject]:
                turns[job.subject] += 1
                waiting[job] = Waiting(now_ms, turns=turns[job.subject])
    return order


def test_a_partition_with_much_to_copy_starves_none_of_the_others() -> None:
    order = served(40, {"a": 30, "b": 3, "c": 1, "d": 2})
    assert order[:4] == ["a", "b", "c", "d"]
    assert set(order[4:7]) == {"a", "b", "d"}
    assert set(order[7:9]) == {"a", "b"}
    assert order[9:] == ["a"] * 27


def test_who_comes_later_waits_for_one_turn_of_each_who_waits() -> None:
    waiting = {copy("late"): Waiting(9), copy("busy"): Waiting(10), copy("other"): Waiting(8)}
    assert choose(waiting, (), 3, 10, OPEN) == [copy("other"), copy("late"), copy("busy")]


def test_of_those_due_at_one_time_the_oldest_lag_goes_first() -> None:
    waiting = {copy("a"): Waiting(5, oldest_ms=300), copy("b"): Waiting(5, oldest_ms=100), copy("c"): Waiting(5)}
    assert [job.subject for job in choose(waiting, (), 9, 5, OPEN)] == ["b", "a", "c"]


def test_a_partition_is_in_one_turn_at_a_time() -> None:
    waiting = {copy("a"): Waiting(0), Job(Kind.expire, "a"): Waiting(0), Job(Kind.sweep, "b"): Waiting(0)}
    assert choose(waiting, (), 4, 0, OPEN) == [copy("a"), Job(Kind.sweep, "b")]
    assert choose(waiting, [Job(Kind.expire, "a")], 4, 0, OPEN) == [Job(Kind.sweep, "b")]


def test_no_more_run_than_there_are_threads_and_nothing_before_it_is_due() -> None:
    waiting = {copy(str(n)): Waiting(n) for n in range(10)}
    assert len(choose(waiting, [copy("x")], 4, 100, OPEN)) == 3
    assert [job.subject for job in choose(waiting, (), 4, 1, OPEN)] == ["0", "1"]
    assert choose(waiting, [copy("x")] * 4, 4, 100, OPEN) == []


def test_waits_grow_as_kafka_s_exponential_backoff_has_it() -> None:
    assert [Backoff(500, 30_000, 0.0).wait_ms(n, 0.5) for n in range(1, 9)] == [
        500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000,
    ]  # fmt: skip
    assert (BACKOFF.wait_ms(1, 0.0), BACKOFF.wait_ms(1, 1.0)) == (400, 600)
    assert BACKOFF.wait_ms(10_000, 0.999) == 30_000


def test_when_job_after_job_fails_one_at_a_time_asks_for_the_store() -> None:
    gate = OPEN
    waiting = {copy(str(n)): Waiting(0) for n in range(10)}
    for n in range(FAILED_MAX):
        assert not gate.is_shut
        gate = gate.after_failure(str(n), 1_000, BACKOFF, 0.5)
    assert gate.is_shut
    assert choose(waiting, (), 4, gate.until_ms - 1, gate) == []
    assert len(choose(waiting, (), 4, gate.until_ms, gate)) == 1
    assert choose(waiting, [copy("5")], 4, gate.until_ms, gate) == []
    longer = gate.after_failure("7", gate.until_ms, BACKOFF, 0.5)
    assert longer.until_ms - gate.until_ms == 2 * (gate.until_ms - 1_000)


def test_one_job_that_fails_again_and_again_shuts_nobody_else_out() -> None:
    gate: Gate = OPEN
    for _ in range(50):
        gate = gate.after_failure("a", 0, BACKOFF, 0.5)
    assert not gate.is_shut


def test_the_loop_sleeps_until_something_can_be_started() -> None:
    waiting = {copy("a"): Waiting(700), Job(Kind.expire, "b"): Waiting(300)}
    assert wake_ms(waiting, (), 2, OPEN) == 300
    assert wake_ms(waiting, [copy("b")], 2, OPEN) == 700
    assert wake_ms(waiting, [copy("b"), copy("c")], 2, OPEN) == NEVER_MS
    assert wake_ms({}, (), 2, OPEN) == NEVER_MS
    assert wake_ms(waiting, (), 2, Gate(frozenset("xyz"), 1, 900)) == 900


def test_a_job_is_brought_forward_but_never_out_of_its_wait_after_a_failure() -> None:
    assert earlier(None, 7) == Waiting(7)
    assert earlier(Waiting(9), 7) == Waiting(7)
    assert earlier(Waiting(5), 7) == Waiting(5)
    assert earlier(Waiting(9, failures=2), 7) == Waiting(9, failures=2)


def test_a_clock_that_is_set_back_leaves_waits_as_long_as_they_were() -> None:
    waiting = {copy("a"): Waiting(5_000, 1, 3, 77)}
    assert moved(waiting, -3_600_000) == {copy("a"): Waiting(5_000 - 3_600_000, 1, 3, 77)}


@pytest.mark.parametrize("subjects", [[], ["a"], ["a", "b", "c"]])
def test_a_round_goes_through_everything_once_and_begins_again_after_its_interval(subjects: list[str]) -> None:
    round_ = Round(Kind.sweep, 1_000)
    assert round_.due_ms() == 0
    pieces, piece = [], round_.begin(subjects, 50)
    while piece is not None:
        pieces.append(piece.subject)
        assert round_.is_under_way
        piece = round_.next()
    assert pieces == subjects
    assert not round_.is_under_way
    assert round_.due_ms() == 1_050
