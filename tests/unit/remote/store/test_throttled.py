"""No more bytes than so many a second, in both directions, by whoever shares the store."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from archive_fakes import FixedClock, MemoryStore, SleptClock
from crc32c import crc32c
from store_promises import ObjectStoreConformance, race

from local_log.errors import AlreadyExists, Corrupt, Invalid
from remote.store.api import ObjectStore
from remote.store.throttled import Throttled, burst_s


class TestThrottled(ObjectStoreConformance):
    @pytest.fixture
    def store(self) -> ObjectStore:
        return Throttled(MemoryStore(), 10 << 20, SleptClock())


RATE = 1_000


@pytest.fixture
def clock() -> SleptClock:
    return SleptClock()


@pytest.fixture
def store(clock: SleptClock) -> Throttled:
    store = Throttled(MemoryStore(), RATE, clock)
    store.put_if_absent("used up", bytes(int(RATE * burst_s)))
    assert clock.slept == []
    return store


def test_bytes_of_both_directions_wait_for_their_turn(store: Throttled, clock: SleptClock) -> None:
    store.put_if_absent("a", bytes(500))
    assert clock.slept == [0.5]
    store.get_range("a", 100, 350)
    assert clock.slept == [0.5, 0.25]
    store.upload("b", [bytes(100), bytes(50)], size=150, crc32c=crc32c(bytes(150)))
    assert clock.slept == pytest.approx([0.5, 0.25, 0.1, 0.05])
    assert store.get("a") == bytes(500)
    store.get("b")
    assert sum(clock.slept) == pytest.approx(0.9 + 0.5)  # the first get waits for nothing, the second for the first


def test_what_moves_no_bytes_of_objects_waits_for_nothing(store: Throttled, clock: SleptClock) -> None:
    store.get("used up")
    for _ in range(3):
        store.head("used up")
        list(store.list(""))
        list(store.list_folders(""))
        list(store.abandoned_uploads("", 0))
    store.delete("used up")
    assert clock.slept == []


def test_an_idle_store_saves_up_a_burst_and_no_more(store: Throttled, clock: SleptClock) -> None:
    clock.now += 3_600_000
    store.put_if_absent("a", bytes(int(RATE * burst_s)))
    assert clock.slept == []
    store.put_if_absent("b", bytes(10))
    assert clock.slept == [0.01]


def test_a_clock_that_is_set_back_or_on_costs_no_more_than_was_owed(store: Throttled, clock: SleptClock) -> None:
    clock.now -= 3_600_000
    store.put_if_absent("a", bytes(10))
    clock.now += 7_200_000
    store.put_if_absent("b", bytes(10))
    assert clock.slept == [0.01]


def test_threads_share_the_rate() -> None:
    clock = FixedClock()
    store = Throttled(MemoryStore(), RATE, clock)
    assert race(20, lambda n: store.put_if_absent(f"{n}", bytes(100))) == [*range(20)]
    # Time stands still, so each waits until all before it are paid for: the last for all but the burst.
    assert sorted(clock.slept) == pytest.approx([n / 10 for n in range(1, 11)])


def test_a_part_is_not_read_before_its_time() -> None:
    clock = SleptClock()
    store = Throttled(MemoryStore(), RATE, clock)
    read_at = []

    def parts() -> Any:
        for _ in range(3):
            read_at.append(clock.now)
            yield bytes(RATE)

    start = clock.now
    store.upload("a", parts(), size=3 * RATE, crc32c=crc32c(bytes(3 * RATE)))
    assert [at - start for at in read_at] == [0, 0, 1_000]


def test_a_refused_body_costs_its_time_too(store: Throttled, clock: SleptClock) -> None:
    with pytest.raises(AlreadyExists):
        store.put_if_absent("used up", bytes(100))
    with pytest.raises(Corrupt):
        store.upload("a", [bytes(100)], size=100, crc32c=1)
    assert sum(clock.slept) == pytest.approx(0.2)


@pytest.mark.parametrize("rate", [0, -1, 0.5, float("nan")])
def test_a_rate_that_moves_nothing_is_refused(rate: float) -> None:
    with pytest.raises(Invalid, match="bytes a second"):
        Throttled(MemoryStore(), rate, FixedClock())


def test_a_copy_starts_with_a_full_bucket(store: Throttled) -> None:
    copy = pickle.loads(pickle.dumps(store))
    with ThreadPoolExecutor(1) as pool:
        pool.submit(copy.put_if_absent, "a", bytes(RATE)).result()
    assert copy._clock.slept == []
