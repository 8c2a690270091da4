"""The limit of the cleaner's reads and writes: how long it waits, and when."""

import pytest

from local_log.engine.cleaner.throttle import Throttle


class Time:
    def __init__(self) -> None:
        self.now = 1_000
        self.waits: list[int] = []

    def pause(self, ms: int) -> None:
        self.waits.append(ms)
        self.now += ms


@pytest.fixture
def time() -> Time:
    return Time()


def throttle(time: Time, bytes_per_second: float) -> Throttle:
    return Throttle(bytes_per_second, lambda: time.now, time.pause)


def test_too_many_bytes_wait_until_the_rate_is_as_it_may_be(time: Time) -> None:
    one = throttle(time, 1_000)
    one.passed(500)
    time.now += 400
    one.passed(500)
    assert time.waits == [600]
    time.now += 400
    one.passed(500)
    assert time.waits == [600, 100]


def test_within_the_check_interval_nothing_waits(time: Time) -> None:
    one = throttle(time, 1_000)
    time.now += 300
    one.passed(100_000)
    assert time.waits == []


def test_few_bytes_do_not_wait_and_are_forgotten(time: Time) -> None:
    one = throttle(time, 1_000)
    time.now += 1_000
    one.passed(1_000)
    time.now += 400
    one.passed(500)
    assert time.waits == [100]


def test_a_clock_that_is_set_back_begins_anew(time: Time) -> None:
    one = throttle(time, 1_000)
    time.now -= 900
    one.passed(5_000)
    assert time.waits == []
    time.now += 400
    one.passed(500)
    assert time.waits == [100]


def test_without_a_limit_nothing_waits(time: Time) -> None:
    one = throttle(time, 1.7976931348623157e308)
    time.now += 400
    one.passed(1 << 40)
    assert time.waits == []
