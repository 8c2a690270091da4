"""The cases of Kafka's FetchSessionTest that are about the cache; each test names its own."""

import pytest
from archive_fakes import CountingIds

from remote.clock import RandomIds
from tiering.endpoint.fetch_sessions.cache import FetchSessionCache
from tiering.endpoint.fetch_sessions.session import NO_SESSION, CachedPartition, FetchSession, Key, Wanted, next_epoch
from tiering.endpoint.protocol.messages.fetch import FetchPartition


def partitions(count: int) -> dict[Key, CachedPartition]:
    found = (Wanted("test", "", FetchPartition(number)) for number in range(count))
    return {one.key: CachedPartition(one) for one in found}


def create(cache: FetchSessionCache, now_ms: int, size: int, *, privileged: bool = False) -> int:
    return cache.create(now_ms, partitions(size), is_privileged=privileged, uses_topic_ids=True)


def session(cache: FetchSessionCache, session_id: int) -> FetchSession:
    found = cache.get(session_id)
    assert found is not None
    return found


def ids_in(cache: FetchSessionCache, *ids: int) -> list[int]:
    return [one for one in ids if cache.get(one) is not None]


def test_ids_are_positive_and_new() -> None:
    """testNewSessionId."""
    cache = FetchSessionCache(RandomIds(), slots_max=3000)
    found = {create(cache, 0, 1) for _ in range(3000)}
    assert len(found) == 3000
    assert min(found) > 0


def test_an_id_that_is_zero_or_taken_is_drawn_again() -> None:
    class Drawn(CountingIds):
        def new_id(self) -> str:
            return {"1": "80000000", "3": "00000005", "4": "00000006"}.get(super().new_id()[-1], "00000005").zfill(32)

    cache = FetchSessionCache(Drawn())
    assert [create(cache, 0, 1), create(cache, 0, 1)] == [5, 6]


def test_a_session_makes_room_when_it_is_unused_for_long_or_old_and_smaller() -> None:
    """testSessionCache."""
    cache = FetchSessionCache(CountingIds(), slots_max=3, eviction_ms=100)
    first, second, third = (create(cache, now_ms, size) for now_ms, size in ((0, 10), (10, 20), (20, 30)))
    assert [create(cache, 30, 40), create(cache, 40, 5)] == [NO_SESSION, NO_SESSION]
    assert ids_in(cache, first, second, third) == [first, second, third]
    cache.used(session(cache, first), 200)
    fourth = create(cache, 210, 11)  # the second is not used for longest
    assert ids_in(cache, first, second, third, fourth) == [first, third, fourth]
    for one, now_ms in ((third, 390), (first, 400), (fourth, 400)):
        cache.used(session(cache, one), now_ms)
    fifth = create(cache, 410, 50)  # the first is the smallest that is old
    assert ids_in(cache, first, third, fourth, fifth) == [third, fourth, fifth]
    assert create(cache, 410, 5) == NO_SESSION
    sixth = create(cache, 410, 5, privileged=True)
    assert ids_in(cache, third, fourth, fifth, sixth) == [third, fifth, sixth]


def test_partitions_and_evictions_are_counted() -> None:
    """testResizeCachedSessions."""
    cache = FetchSessionCache(CountingIds(), slots_max=2, eviction_ms=100)
    assert (len(cache), cache.partitions, cache.evictions) == (0, 0, 0)
    first = create(cache, 0, 2)
    assert (len(cache), cache.partitions, cache.evictions) == (1, 2, 0)
    second = create(cache, 0, 4)
    assert (len(cache), cache.partitions, cache.evictions) == (2, 6, 0)
    for one in (first, second):
        cache.used(session(cache, one), 200)
    third = create(cache, 200, 5)
    assert ids_in(cache, first, second, third) == [second, third]
    assert (len(cache), cache.partitions, cache.evictions) == (2, 9, 1)
    removed = session(cache, third)
    for _ in range(2):  # the second time changes nothing
        cache.remove(removed)
        assert (len(cache), cache.partitions, cache.evictions) == (1, 4, 1)
    left = session(cache, second)
    left.partitions.popitem()
    assert (len(left.partitions), left.cached_size) == (3, 4)
    cache.used(left, left.last_used_ms)
    assert cache.partitions == 3


def test_without_slots_there_are_no_sessions() -> None:
    assert create(FetchSessionCache(CountingIds(), slots_max=0), 0, 1, privileged=True) == NO_SESSION


def test_the_partitions_of_all_sessions_together_are_limited() -> None:
    cache = FetchSessionCache(CountingIds(), eviction_ms=100, partitions_max=10)
    assert create(cache, 0, 11) == NO_SESSION
    first, second = create(cache, 0, 4), create(cache, 0, 4)
    assert create(cache, 50, 3) == NO_SESSION
    third = create(cache, 101, 10)  # both are unused for long
    assert (ids_in(cache, first, second, third), cache.partitions, cache.evictions) == ([third], 10, 2)


@pytest.mark.parametrize(("epoch", "following"), [(0, 1), (1, 2), ((1 << 31) - 1, 1), (-1, -1)])
def test_the_epoch_of_the_next_request(epoch: int, following: int) -> None:
    assert next_epoch(epoch) == following


def test_a_session_that_made_room_for_another_cannot_be_used() -> None:
    cache = FetchSessionCache(CountingIds(), slots_max=1, eviction_ms=100)
    first = session(cache, create(cache, 0, 1))
    second = create(cache, 101, 1)
    assert not cache.used(first, 102)
    cache.remove(first)
    assert ids_in(cache, first.id, second) == [second]
    assert cache.partitions == 1
