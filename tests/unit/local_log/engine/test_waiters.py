"""Those who wait for a log's end or high watermark: called once each, when it is reached or may never be."""

import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from logs_at_work import Log, batch_of, settings

from local_log.engine import waiters
from local_log.engine.waiters import Waiters
from local_log.errors import Invalid


@pytest.fixture
def at(tmp_path: Path) -> Log:
    return Log(tmp_path / "t-0")


def test_who_waits_for_new_data_is_woken_by_the_append_that_brings_it_and_once(at: Log) -> None:
    woken: list[str] = []
    at.log.when_end_reaches(1, lambda: woken.append("first"))
    at.log.when_end_reaches(3, lambda: woken.append("third"))
    at.log.append_as_leader(batch_of("a", "b"), 0)
    assert woken == ["first"]
    at.follow(batch_of("c", offset=2), batch_of("d", offset=3))
    at.log.append_as_leader(batch_of("e"), 0)
    assert woken == ["first", "third"]


def test_the_fast_path_of_a_follower_wakes_too(at: Log) -> None:
    at.follow(*(batch_of("a", offset=offset) for offset in range(4)))
    assert at.log.local.segments.active.tail is not None
    woken: list[int] = []
    at.log.when_end_reaches(5, lambda: woken.append(at.log.offsets.end.offset))
    at.follow(batch_of("a", offset=4), batch_of("a", offset=5))
    assert woken == [5]


def test_who_waits_for_what_is_there_is_woken_at_once(at: Log) -> None:
    at.log.append_as_leader(batch_of("a"), 0)
    woken: list[str] = []
    at.log.when_end_reaches(1, lambda: woken.append("end"))
    at.log.when_high_watermark_reaches(0, lambda: woken.append("high watermark"))
    assert woken == ["end", "high watermark"]


def test_who_waits_for_replication_is_woken_by_the_high_watermark(at: Log) -> None:
    woken: list[int] = []
    at.log.when_high_watermark_reaches(2, lambda: woken.append(at.log.offsets.high_watermark.offset))
    at.log.append_as_leader(batch_of("a", "b", "c"), 0)
    at.log.update_high_watermark(1)
    assert woken == []
    at.log.update_high_watermark(3)
    at.log.update_high_watermark(3)
    assert woken == [3]


def test_an_only_replica_wakes_both_with_an_append(at: Log) -> None:
    at.log.become_only_replica()
    woken: list[str] = []
    at.log.when_end_reaches(1, lambda: woken.append("end"))
    at.log.when_high_watermark_reaches(1, lambda: woken.append("high watermark"))
    at.log.append_as_leader(batch_of("a"), 0)
    assert woken == ["end", "high watermark"]


def test_who_is_woken_finds_the_offset_published_also_if_the_append_flushes(tmp_path: Path) -> None:
    log = Log(tmp_path / "t-0", settings(flush_messages=1)).log
    log.become_only_replica()
    seen: list[int] = []
    log.when_high_watermark_reaches(1, lambda: seen.append(log.offsets.high_watermark.offset))
    log.append_as_leader(batch_of("a"), 0)
    assert seen == [1]


@pytest.mark.parametrize(
    "change", [lambda log: log.truncate_to(1), lambda log: log.truncate_fully_and_start_at(5), lambda log: log.close()]
)
def test_a_truncation_and_the_end_of_a_log_wake_everybody(at: Log, change: Callable[[object], object]) -> None:
    at.log.append_as_leader(batch_of("a"), 0)
    at.log.append_as_leader(batch_of("b"), 0)
    woken: list[str] = []
    at.log.when_end_reaches(100, lambda: woken.append("end"))
    at.log.when_high_watermark_reaches(100, lambda: woken.append("high watermark"))
    change(at.log)
    assert woken == ["end", "high watermark"]


def test_who_gives_up_is_not_woken(at: Log) -> None:
    woken: list[str] = []
    end = at.log.when_end_reaches(1, lambda: woken.append("end"))
    high_watermark = at.log.when_high_watermark_reaches(1, lambda: woken.append("high watermark"))
    assert at.log.cancel_end_waiter(end)
    assert at.log.cancel_high_watermark_waiter(high_watermark)
    at.log.append_as_leader(batch_of("a"), 0)
    at.log.update_high_watermark(1)
    assert woken == []
    assert not at.log.cancel_end_waiter(end)


def test_waiters_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiters, "WAITERS_MAX", 1)
    waiting = Waiters()
    waiting.add(1, lambda: None, lambda: 0)
    with pytest.raises(Invalid, match="1 waiters for one log"):
        waiting.add(1, lambda: None, lambda: 0)


def test_of_many_threads_that_wait_beside_appends_each_is_woken_once(at: Log) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    woken = [0] * 200

    def wait(start: int) -> None:
        for offset in range(start, 200, 2):
            event = threading.Event()

            def wake(offset: int = offset, event: threading.Event = event) -> None:
                woken[offset] += 1
                event.set()

            at.log.when_end_reaches(offset + 1, wake)
            assert event.wait(20), offset

    try:
        threads = [threading.Thread(target=wait, args=(start,)) for start in (0, 1)]
        for thread in threads:
            thread.start()
        for _ in range(200):
            at.log.append_as_leader(batch_of("a"), 0)
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert woken == [1] * 200
