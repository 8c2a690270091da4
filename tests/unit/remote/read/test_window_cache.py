"""The chunk cache in memory: whoever asks, a chunk is requested once, and the bound holds whatever is under way or in use."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from local_log.errors import Unavailable
from remote.read.window_cache import CachedSegment, Window, WindowCache, window_bytes_for

CHUNK = 10


class Source:
    """The bytes of segments, and what was requested of them. A request waits for `may_go`, if there is one, and may fail."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, int, int]] = []
        self.may_go: threading.Event | None = None
        self.error: Exception | None = None

    def segment(self, number: int, size: int) -> CachedSegment:
        def fetch(start: int, end: int) -> bytes:
            self.asked.append((number, start, end))
            assert self.may_go is None or self.may_go.wait(60)
            if self.error is not None:
                raise self.error
            return content(number, start, end)

        return CachedSegment(number, size, fetch, CHUNK)


def content(number: int, start: int, end: int) -> bytes:
    return bytes((number * 7 + at) % 251 for at in range(start, end))


class WaitingJobs:
    """A pool that runs a job when the test says so."""

    def __init__(self) -> None:
        self.jobs: list[Callable[[], object]] = []

    def submit(self, call: Callable[..., Any], /, *args: Any) -> None:
        self.jobs.append(lambda: call(*args))

    def run(self) -> None:
        while self.jobs:
            self.jobs.pop(0)()


def read(cache: WindowCache, segment: CachedSegment, position: int, end: int) -> bytes:
    """The bytes from a position to the end of its window, or up to `end`."""
    window = cache.window(segment, position, end)
    assert window is not None
    return bytes(window.data[position - window.start : end - window.start])


def test_ten_readers_at_once_cause_one_request_for_a_chunk() -> None:
    source, cache = Source(), WindowCache(1_000)
    segment, source.may_go = source.segment(1, 95), threading.Event()
    with ThreadPoolExecutor(10) as pool:
        found = [pool.submit(read, cache, segment, position, 60) for position in range(20, 60, 4)]
        source.may_go.set()
        for position, one in zip(range(20, 60, 4), found, strict=True):
            assert one.result()
            assert content(1, position, 60).startswith(one.result())
    chunks = [chunk for _, start, end in source.asked for chunk in range(start // CHUNK, -(-end // CHUNK))]
    assert sorted(chunks) == [2, 3, 4, 5]


def test_a_request_ends_before_what_is_there_and_at_the_end_of_the_segment() -> None:
    source, cache = Source(), WindowCache(1_000)
    segment = source.segment(1, 95)
    assert read(cache, segment, 33, 34) == content(1, 33, 34)
    assert read(cache, segment, 15, 60) == content(1, 15, 30)
    assert read(cache, segment, 42, 200) == content(1, 42, 95)
    assert source.asked == [(1, 30, 40), (1, 10, 30), (1, 40, 95)]
    assert cache.used == 85


def test_what_was_requested_ahead_gives_way_to_a_reader_and_not_to_other_requests_ahead() -> None:
    source, jobs = Source(), WaitingJobs()
    cache = WindowCache(100, jobs, window_bytes=20)
    one, other = source.segment(1, 95), source.segment(2, 95)
    assert cache.ahead(one, 0, 80, 20) == 80
    assert cache.ahead(other, 0, 80, 20) == 20  # 100 are requested
    jobs.run()
    assert cache.ahead(other, 20, 80, 20) == 20
    assert read(cache, one, 0, 10) == content(1, 0, 10)
    assert cache.ahead(other, 20, 80, 20) == 40  # in the place of what was read
    assert read(cache, other, 80, 95) == content(2, 80, 95)
    assert cache.used <= 100
    assert cache.at_hand(one, 20) is None
    assert cache.at_hand(one, 79) is not None


def test_nothing_small_is_requested_ahead_but_the_end_of_a_segment() -> None:
    source, jobs = Source(), WaitingJobs()
    cache, segment = WindowCache(1_000, jobs, window_bytes=40), source.segment(1, 95)
    assert cache.ahead(segment, 0, 70, 40) == 40
    assert cache.ahead(segment, 40, 95, 40) == 95
    jobs.run()
    assert source.asked == [(1, 0, 40), (1, 40, 80), (1, 80, 95)]


def test_what_was_requested_ahead_counts_as_that_until_somebody_reads_it_or_it_is_gone() -> None:
    source, jobs = Source(), WaitingJobs()
    cache, segment = WindowCache(100, jobs, window_bytes=20), source.segment(1, 95)
    cache.ahead(segment, 0, 20, 10)
    assert not cache.is_far_ahead
    cache.ahead(segment, 20, 40, 10)
    assert cache.is_far_ahead
    read(cache, segment, 0, 20)  # by the reader itself, before the pool does
    assert not cache.is_far_ahead
    cache.ahead(segment, 40, 60, 10)
    assert cache.is_far_ahead
    source.error = Unavailable("no answer")
    jobs.run()
    assert not cache.is_far_ahead


def test_a_cache_has_large_windows_if_it_has_room_for_many() -> None:
    assert window_bytes_for(256 << 20) == 16 << 20
    assert window_bytes_for(255 << 20) == 8 << 20


def test_a_reader_requests_itself_what_waits_for_the_pool() -> None:
    source, jobs = Source(), WaitingJobs()
    cache, segment = WindowCache(1_000, jobs), source.segment(1, 95)
    cache.ahead(segment, 0, 95, 10)
    assert read(cache, segment, 0, 95) == content(1, 0, 95)
    jobs.jobs.pop()()
    assert source.asked == [(1, 0, 95)]


def test_what_is_evicted_while_it_is_used_counts_until_it_is_not() -> None:
    source, cache = Source(), WindowCache(100)
    segment = source.segment(1, 100)
    window = cache.window(segment, 0, 100)
    assert window is not None
    sent = window.data[3:5]
    del window
    assert cache.window(source.segment(2, 100), 0, 100) is None
    assert cache.used == 100
    assert sent == content(1, 3, 5)
    del sent
    assert cache.used == 0
    assert read(cache, source.segment(2, 100), 0, 100) == content(2, 0, 100)
    assert cache.window(source.segment(3, 200), 0, 200) is None  # larger than the cache


def test_a_request_that_fails_tells_all_who_wait_and_is_made_again_for_the_next() -> None:
    source, jobs = Source(), WaitingJobs()
    cache, segment = WindowCache(100, jobs), source.segment(1, 95)
    source.error, source.may_go = Unavailable("no answer"), threading.Event()
    with ThreadPoolExecutor(3) as pool:
        found = [pool.submit(read, cache, segment, 0, 95) for _ in range(3)]
        while not source.asked:
            pass
        source.may_go.set()
        assert {type(one.exception()) for one in found} == {Unavailable}
    cache.ahead(segment, 0, 95, 10)
    jobs.jobs.pop()()
    assert cache.used == 0
    source.error = None
    assert read(cache, segment, 0, 95) == content(1, 0, 95)


def test_damaged_bytes_are_requested_again_and_forgotten_where_they_came_from() -> None:
    source, forgotten = Source(), list[tuple[int, int]]()
    plain = source.segment(1, 95)
    cache = WindowCache(100)
    segment = CachedSegment(1, 95, plain.fetch, CHUNK, lambda start, end: forgotten.append((start, end)))
    window = cache.window(segment, 42, 60)
    assert window is not None
    cache.forget(window)
    assert cache.at_hand(segment, 42) is None
    assert forgotten == [(40, 60)]


def test_a_closed_cache_requests_nothing_more_ahead() -> None:
    source, jobs = Source(), WaitingJobs()
    cache, segment = WindowCache(100, jobs), source.segment(1, 95)
    cache.ahead(segment, 0, 95, 10)
    cache.close()
    jobs.jobs.pop()()
    assert source.asked == []
    assert cache.used == 0
    with pytest.raises(Unavailable):
        read(cache, segment, 0, 95)


NUMBERS, POSITIONS, SIZES = st.integers(0, 2), st.integers(0, 94), st.integers(1, 60)


class AnyUse(RuleBasedStateMachine):
    """Any readers, whose answers are held for any time, requests ahead that run in any order, and a store that fails at times."""

    def __init__(self) -> None:
        super().__init__()
        self.source, self.jobs = Source(), WaitingJobs()
        self.held: list[tuple[memoryview, bytes]] = []

    @initialize(bytes_max=st.integers(0, 120), window_bytes=st.integers(1, 60))
    def opened(self, bytes_max: int, window_bytes: int) -> None:
        self.cache = WindowCache(bytes_max, self.jobs, window_bytes)
        self.segments = [self.source.segment(number, size) for number, size in enumerate((95, 30, 7))]

    @rule(
        number=st.integers(0, 2), position=st.integers(0, 94), size=st.integers(1, 60), fails=st.booleans(), holds=st.booleans()
    )
    def reads(self, number: int, position: int, size: int, fails: bool, holds: bool) -> None:
        segment = self.segments[number]
        position = min(position, segment.size - 1)
        was_there = self.cache.at_hand(segment, position)
        self.source.error = Unavailable("no answer") if fails else None
        asked = len(self.source.asked)
        try:
            window: Window | None = self.cache.window(segment, position, position + size)
        except Unavailable:
            assert fails
            assert self.cache.at_hand(segment, position) is None
            return
        if was_there is not None:
            assert len(self.source.asked) == asked
        if window is not None:
            want = content(number, window.start, window.end)
            assert window.start <= position < window.end
            assert window.data == want
            if holds:
                self.held.append((window.data[1:3], want[1:3]))

    @rule(number=NUMBERS, start=POSITIONS, size=SIZES, at_least=st.integers(1, 30))
    def requests_ahead(self, number: int, start: int, size: int, at_least: int) -> None:
        reached = self.cache.ahead(self.segments[number], start, start + size, at_least)
        assert reached >= start

    @rule(at=st.integers(0, 5), fails=st.booleans())
    def a_request_ahead_is_made(self, at: int, fails: bool) -> None:
        self.source.error = Unavailable("no answer") if fails else None
        if self.jobs.jobs:
            self.jobs.jobs.pop(at % len(self.jobs.jobs))()

    @rule()
    def answers_are_sent(self) -> None:
        self.held.clear()

    @invariant()
    def the_bound_holds(self) -> None:
        if hasattr(self, "cache"):
            assert self.cache.used <= self.cache.bytes_max
            assert all(part == want for part, want in self.held)

    def teardown(self) -> None:
        if not hasattr(self, "cache"):
            return
        self.source.error = None
        self.jobs.run()
        self.held.clear()
        kept = {id(window): window for window in self.cache._windows.values()}
        assert self.cache.used == sum(window.end - window.start for window in kept.values())


TestAnyUse = AnyUse.TestCase
TestAnyUse.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
