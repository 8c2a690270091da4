"""Time travel over writes to many partitions: as of any time a write is seen in all of them or in none."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import cycle, repeat
from typing import Any

import pytest
from archive_fakes import CallNumber, CountingIds, Door, FailsBefore, FixedClock, MemoryStore
from made_manifests import entry

from local_log.errors import Unavailable, Unknown
from remote import archive
from remote.direct_write.commit import PartitionEntries, Write, commit_write
from remote.direct_write.topic import written_topic
from remote.keys import WritePath
from remote.manifest.model import never_archived
from remote.manifest.store import ManifestWriter, claim, load_version
from remote.manifest.transitions import claimed
from remote.manifest.write_record import decisions
from remote.store.api import ObjectStore
from spark_jobs.source.options import parse
from spark_jobs.source.ranges import manifests

PARTITIONS = 3
START_MS = FixedClock().now_ms()


class Ticking(FixedClock):
    """Later by the next step each time that it is asked; a step may lead back."""

    def __init__(self, steps: Iterable[int]) -> None:
        super().__init__()
        self.steps = iter(steps)

    def now_ms(self) -> int:
        self.now += next(self.steps)
        return super().now_ms()


def new_store() -> MemoryStore:
    store = MemoryStore()
    archive.create_archive(store, FixedClock(), CountingIds("a"))
    return store


def write(store: ObjectStore, write_id: str, clock: FixedClock) -> None:
    def placed(now: Any) -> PartitionEntries:
        return {path: (entry(p.end_offset, p.end_offset + 10),) for path, p in now.items()}

    asked = Write(write_id, (written_topic(store, "rows", PARTITIONS),), "tests")
    commit_write(store, clock, CountingIds(write_id.encode().hex()), asked, placed, threads=1)


def seen(store: ObjectStore, time_ms: int) -> tuple[int, ...]:
    """Where the partitions that are there as of a time end."""
    options = parse({"archive": "any", "subscribe": "rows", "asOfTimestamp": str(time_ms)})
    return tuple(m.end_offset for m in manifests(store, options))


def times(store: ObjectStore) -> Iterator[int]:
    """All times at which something was committed or decided, and those just before and after."""
    for path in archive.partition_paths(store, "rows"):
        for n in range(1, 1 + sum(1 for _ in store.list(path.manifests))):
            at = load_version(store, path, n).manifest.committed_at_ms
            yield from (at - 1, at, at + 1)
    topic_id = next(iter(archive.partition_paths(store, "rows"))).topic_id
    for write_id in ("one", "two"):
        for decision in decisions(store, WritePath("rows", topic_id, write_id)):
            yield from (decision.decided_at_ms - 1, decision.decided_at_ms, decision.decided_at_ms + 1)


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param(lambda: repeat(10), id="a clock that goes on"),
        pytest.param(lambda: repeat(0), id="a clock that stands still"),
        pytest.param(lambda: cycle([10, -25, 40, -5]), id="a clock that is set back"),
        pytest.param(lambda: cycle([50, 50, -70, -20, 3]), id="a clock that is set back by more"),
    ],
)
def test_a_write_is_seen_whole_or_not_at_all_whatever_its_clock_does(steps: Callable[[], Iterable[int]]) -> None:
    store, clock = new_store(), Ticking(steps())
    write(store, "one", clock)
    write(store, "two", clock)
    found = {seen(store, at) for at in times(store)}
    assert found <= {(), (10, 10, 10), (20, 20, 20)}
    assert found >= {(), (20, 20, 20)}
    assert seen(store, START_MS + 10**9) == (20, 20, 20)


def calls_of_a_write() -> int:
    door = Door(new_store())
    write(door, "one", FixedClock())
    door.calls.clear()
    write(door, "two", FixedClock())
    return len(door.calls)


@pytest.mark.parametrize("number", range(1, calls_of_a_write() + 1))
@pytest.mark.slow
def test_one_whose_writer_was_killed_is_there_since_its_decision_however_late_each_partition_takes_it_in(number: int) -> None:
    store = new_store()
    write(store, "one", FixedClock(START_MS - 1000))
    with suppress(Unavailable, Unknown):
        write(FailsBefore(store, Unavailable("killed"), CallNumber(number, on=True)), "two", Ticking(repeat(10)))
    paths = [*archive.partition_paths(store, "rows")]
    before = {at: seen(store, at) for at in times(store)}
    later = FixedClock(START_MS + 1_000_000)
    for path in paths[1:]:  # what they take in later is no later to a reader, and the first has not taken it in yet
        claim(store, never_archived(path.topic, path.topic_id, path.partition, 0), later, CountingIds("c"), "sweep")
    assert {at: seen(store, at) for at in before} == before
    assert set(before.values()) <= {(), (10, 10, 10), (20, 20, 20)}


def test_a_version_is_never_of_an_earlier_time_than_the_one_before_it() -> None:
    store, first = new_store(), never_archived("rows", "A" * 22, 0, 0)
    for at in (START_MS, START_MS - 500, START_MS + 5):
        ManifestWriter(store, first.path, FixedClock(at), CountingIds(f"{at:x}"), "tests", 9).commit(first, claimed)
    stamps = [load_version(store, first.path, n).manifest.committed_at_ms for n in (1, 2, 3)]
    assert stamps == [START_MS, START_MS, START_MS + 5]
