"""Partitions are asked for side by side: a topic of a thousand of them is planned, and followed, in seconds."""

from collections.abc import Callable
from threading import Barrier, BrokenBarrierError
from typing import TypeVar

import pytest
from archive_fakes import CountingIds, Door, FixedClock, MemoryStore

from remote import archive
from remote.manifest.model import never_archived
from remote.manifest.store import claim
from remote.manifest.transitions import source_seen
from remote.store.api import ObjectStore
from spark_jobs.common.offset_ranges import ranges_of
from spark_jobs.source.options import parse
from spark_jobs.source.ranges import THREADS, manifests
from spark_jobs.source.stream.plan import newest

T = TypeVar("T")


class Meeting(Door):
    """A store that lists manifests only when `count` of them are asked for at once."""

    def __init__(self, inner: ObjectStore, count: int) -> None:
        super().__init__(inner)
        self.barrier = Barrier(count)

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        if verb == "list" and key.endswith("/manifest/"):
            self.barrier.wait(20)
        return call()


def store_of(topics: int, partitions: int) -> MemoryStore:
    store = MemoryStore()
    archive.create_archive(store, FixedClock(), CountingIds("a"))
    for topic in range(topics):
        for number in range(partitions):
            first = never_archived(f"t{topic:02}", "A" * 22, number, 0)
            writer = claim(store, first, FixedClock(), CountingIds(f"{topic:02x}{number:02x}"), "tests")
            writer.commit(first, lambda m: source_seen(m, "broker", 0))
    return store


@pytest.mark.parametrize(("topics", "partitions"), [(1, 2 * THREADS), (2 * THREADS, 1), (4, THREADS // 2)])
@pytest.mark.parametrize("asked", ["subscribe", "subscribePattern", "assign"])
def test_batches_and_streams_ask_for_many_partitions_at_once_and_give_them_in_order(
    topics: int, partitions: int, asked: str
) -> None:
    names = [f"t{n:02}" for n in range(topics)]
    assigned = ",".join(f'"{name}": {[*range(partitions)]}' for name in names)
    value = {"subscribe": ",".join(names), "subscribePattern": "t.*", "assign": f"{{{assigned}}}"}[asked]
    options = parse({"archive": "any", asked: value})
    store = Meeting(store_of(topics, partitions), THREADS)
    wanted = [(name, n) for name in names for n in range(partitions)]
    assert [(m.topic, m.partition) for m in manifests(store, options)] == wanted
    assert [(path.topic, path.partition) for path in newest(store, options.strategy)] == wanted


def test_a_vector_asks_for_many_partitions_at_once() -> None:
    store = Meeting(store_of(1, THREADS), THREADS)
    assert len(ranges_of(store, {"t00": dict.fromkeys(range(THREADS), (0, 0))})) == THREADS


def test_who_wants_one_order_has_it() -> None:
    alone = Meeting(store_of(1, 2), 2)
    alone.barrier.abort()
    with pytest.raises(BrokenBarrierError):
        archive.newest_manifests(alone, "t00", threads=2)
    assert len(archive.newest_manifests(Meeting(store_of(1, 3), 1), "t00")) == 3
