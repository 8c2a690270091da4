"""Reading ahead: which windows are asked for, how many bytes are on their way, and what goes wrong when."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import pytest
from pools import LazyPool, ShuffledPool

from local_log.errors import Corrupt, Unavailable
from remote.read.read_ahead import AheadBytes, Pool, ReadAhead, ReadRange

SIZES = (1_000, 40, 7, 250, 3_000)


def parts() -> list[ReadRange[str]]:
    return [ReadRange(f"segment {n}", n, n + size) for n, size in enumerate(SIZES)]


def body(name: str, start: int, end: int) -> bytes:
    return bytes((hash(name) + at) % 251 for at in range(start, end))


def expected() -> dict[str, bytes]:
    return {part.target: body(part.target, part.start, part.end) for part in parts()}


def collect(windows: Iterable[tuple[ReadRange[str], bytes]], found: dict[str, bytes]) -> dict[str, bytes]:
    for part, data in windows:
        found[part.target] = found.get(part.target, b"") + data
    return found


def taken(ahead: ReadAhead, first_bytes: int = 16) -> dict[str, bytes]:
    return collect(ahead.read(parts(), body, first_bytes), {})


def sizes(ahead: ReadAhead, first_bytes: int) -> list[tuple[str, int]]:
    return [(window.range.target, window.end - window.start) for window in ahead.windows(parts(), first_bytes)]


def test_windows_double_up_to_the_limit_and_go_on_so_in_the_next_segment() -> None:
    assert sizes(ReadAhead(window_bytes=256), 64) == [
        ("segment 0", 64), ("segment 0", 128), ("segment 0", 256), ("segment 0", 256), ("segment 0", 256), ("segment 0", 40),
        ("segment 1", 40), ("segment 2", 7), ("segment 3", 250),
        *[("segment 4", 256)] * 11, ("segment 4", 184),
    ]  # fmt: skip


def test_windows_end_at_multiples_of_the_alignment_or_at_the_part_s_end() -> None:
    windows = [*ReadAhead(window_bytes=256, align=100).windows(parts(), 64)]
    assert all(w.end % 100 == 0 or w.end == w.range.end for w in windows)
    assert [(w.start, w.end) for w in windows[:3]] == [(0, 100), (100, 300), (300, 600)]


@pytest.mark.parametrize("ahead_bytes_max", [0, 1, 100, 10_000])
@pytest.mark.parametrize("pool", [None, LazyPool(), ShuffledPool(1), ShuffledPool(2), ShuffledPool(3)])
def test_the_bytes_come_in_order_whatever_the_pool_does_first(pool: Pool | None, ahead_bytes_max: int) -> None:
    assert taken(ReadAhead(pool, window_bytes=256, ahead_bytes_max=ahead_bytes_max)) == expected()


def test_the_bytes_come_in_order_from_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            assert taken(ReadAhead(pool, window_bytes=64, ahead_bytes_max=512)) == expected()


def test_a_pool_makes_the_same_requests_as_none() -> None:
    for pool in (None, LazyPool(), ShuffledPool(7)):
        asked: list[tuple[str, int, int]] = []

        def read(name: str, start: int, end: int, asked: list[tuple[str, int, int]] = asked) -> bytes:
            asked.append((name, start, end))
            return body(name, start, end)

        ahead = ReadAhead(pool, window_bytes=256)
        assert len([*ahead.read(parts(), read, 16)]) == len(asked)
        assert sorted(asked) == sorted((w.range.target, w.start, w.end) for w in ahead.windows(parts(), 16))


def test_what_is_on_its_way_is_bounded_and_at_most_twice_what_was_taken() -> None:
    pool = LazyPool()
    ahead = ReadAhead(pool, window_bytes=128, ahead_bytes_max=500)
    got = most = 0
    for _, data in ahead.read(parts(), body, 16):
        got += len(data)
        waiting = sum(later._args[2] - later._args[1] for later in pool.asked if not later.is_done)
        assert waiting <= min(500, 2 * got)
        most = max(most, waiting)
    assert most >= 3 * 128


def test_the_next_segment_is_asked_for_before_this_one_has_ended() -> None:
    pool = LazyPool()
    for part, _ in ReadAhead(pool, window_bytes=256, ahead_bytes_max=1_000).read(parts(), body, 64):
        ahead_of_it = {later._args[0] for later in pool.asked if not later.is_done}
        if part.target == "segment 1":
            assert {"segment 2", "segment 3", "segment 4"} <= ahead_of_it
            return
    pytest.fail("segment 1 never came")


def test_a_reader_that_takes_one_window_has_asked_for_few_bytes() -> None:
    pool = LazyPool()
    read = ReadAhead(pool, window_bytes=256).read(parts(), body, 64)
    next(read)
    assert [later._args for later in pool.asked] == [("segment 0", 64, 192)]


def test_a_reader_that_stops_cancels_what_is_on_its_way() -> None:
    pool = LazyPool()
    read = ReadAhead(pool, window_bytes=256, ahead_bytes_max=1_000).read(parts(), body, 64)
    for _ in range(4):
        next(read)
    waiting = [later for later in pool.asked if not later.is_done]
    assert waiting
    read.close()  # type: ignore[attr-defined]  # it is a generator
    assert all(later.is_cancelled for later in waiting)


@pytest.mark.parametrize("pool", [None, LazyPool(), ShuffledPool(5)])
def test_what_goes_wrong_ahead_is_raised_when_its_turn_comes(pool: Pool | None) -> None:
    def read(name: str, start: int, end: int) -> bytes:
        if name == "segment 3":
            raise Unavailable("the store is away")
        return body(name, start, end)

    read_ahead = ReadAhead(pool, window_bytes=256).read(parts(), read, 64)
    found: dict[str, bytes] = {}
    with pytest.raises(Unavailable):
        collect(read_ahead, found)
    assert found == {name: data for name, data in expected().items() if name < "segment 3"}


@pytest.mark.parametrize("pool", [None, LazyPool(), ShuffledPool(5)])
def test_a_part_that_cannot_be_named_is_an_error_when_its_turn_comes(pool: Pool | None) -> None:
    def some() -> Iterator[ReadRange[str]]:
        yield from parts()[:2]
        raise Corrupt("no index")

    read_ahead = ReadAhead(pool, window_bytes=2_000).read(some(), body, 2_000)
    found: dict[str, bytes] = {}
    with pytest.raises(Corrupt):
        collect(read_ahead, found)
    assert found == {name: data for name, data in expected().items() if name < "segment 2"}


def test_parts_without_bytes_cost_nothing() -> None:
    assert [*ReadAhead(LazyPool()).read([ReadRange("empty", 5, 5), ReadRange("turned", 6, 5)], body, 64)] == []


@pytest.mark.parametrize("bytes_max", [0, 300, 600, 1 << 20])
def test_many_readers_are_ahead_by_a_number_of_bytes_together_and_each_gets_all_of_its_own(bytes_max: int) -> None:
    of_all, under_way, most = AheadBytes(bytes_max), [0], [0]

    class Counting:
        """Counts what is requested and not taken."""

        def submit(self, call: Callable[..., bytes], name: str, start: int, end: int) -> "Pending":
            under_way[0] += end - start
            most[0] = max(most[0], under_way[0])
            return Pending(lambda: call(name, start, end), end - start)

    class Pending:
        def __init__(self, call: Callable[[], bytes], size: int) -> None:
            self.call, self.size = call, size

        def result(self) -> bytes:
            under_way[0] -= self.size
            return self.call()

        def cancel(self) -> bool:
            under_way[0] -= self.size
            return True

    ahead = ReadAhead(Counting(), window_bytes=256, of_all=of_all)
    readers = [ahead.read(parts(), body, 16) for _ in range(4)]
    given_up = ahead.read(parts(), body, 16)
    for _ in range(4):
        next(given_up)
    found: list[dict[str, bytes]] = [{} for _ in readers]
    for number in range(100):
        for reader, one in zip(readers, found, strict=True):
            collect(islice(reader, 1), one)
        if number == 5:
            given_up.close()
    assert found == [expected()] * 4
    assert most[0] <= bytes_max
    assert (most[0] > 0) == (bytes_max > 0)
    assert under_way == [0]
    assert of_all.take(bytes_max)


def test_a_read_that_fails_is_ahead_no_more() -> None:
    def failing(name: str, start: int, end: int) -> bytes:
        if start > 100:
            raise Unavailable("no")
        return body(name, start, end)

    of_all = AheadBytes(1_000)
    with pytest.raises(Unavailable):
        list(ReadAhead(LazyPool(), window_bytes=256, of_all=of_all).read(parts(), failing, 16))
    assert of_all.take(1_000)
