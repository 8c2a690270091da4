"""A compacted log takes the place of what is archived of it, with a fault at every call of the store, and a second run after it.

After each of these the archive has every record that the log has, and none that it never had; the second run ends with the
records of the log alone. Pages are small, so that superseded entries lie in some of them.
"""

from collections.abc import Iterator
from contextlib import suppress
from itertools import product

import pytest
from archive_fakes import AppliesLate, CountingIds, Crash, Door, FixedClock, MemoryStore, verbs
from crc32c import crc32c
from keyed_logs import KeyedLog
from logs_to_archive import path_of
from made_manifests import assert_sound_chain
from store_faults import FAULTS

from local_log.errors import Unavailable, Unknown
from local_log.log_reader import LogReader
from remote.manifest.entries import Entries
from remote.manifest.model import Limits, Manifest
from remote.manifest.store import load_newest
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan
from tiering.sweep import collect as sweep

pytestmark = pytest.mark.usefixtures("pages_decoded_once")

LIMITS = Limits(inline_max=2, page_entries=2, fan_out=2)
DAY_MS = 86_400_000
Records = dict[int, bytes | None]


def run(store: ObjectStore, log: LogReader, prefix: str, *, replaces: bool = True) -> list[Done]:
    try:
        due = plan(log, store, replaces=replaces)
    except (Unavailable, Unknown) as e:
        return [Done(None, error=e)]
    return list(offload(due, OffloadRun(store, FixedClock(), CountingIds(prefix), "source", lambda _: None, limits=LIMITS)))


def records(log: LogReader | ArchivedLog, end: int) -> Records:
    rows = [row for chunk in log.chunks(0, end) for _, batch in chunk.records() for row in batch.to_pylist()]
    return {row["offset"]: row["value"] for row in rows if row["offset"] < end}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator["World"]:
    world = World(KeyedLog(tmp_path_factory.mktemp("replaced"), segment_bytes=1_000))
    yield world
    world.log.log.close()


class World:
    """A log that was archived, and compacted since; `archived` are the objects of the archive, `was` the records in it."""

    def __init__(self, log: KeyedLog) -> None:
        self.log = log
        log.fill(4)
        store = MemoryStore()
        run(store, log.reader(), "a")
        self.archived = dict(store.objects)
        self.path = path_of(log.reader())
        self.was = self.read(store)
        log.clean()
        self.reader = log.reader()
        self.end = max(s.next_base_offset or 0 for s in self.reader.segments)
        self.now = records(self.reader, self.end)
        assert self.now.items() < self.was.items()

    def store(self) -> MemoryStore:
        store = MemoryStore()
        store.objects.update(self.archived)
        return store

    def read(self, store: MemoryStore) -> Records:
        """What the newest version has, each object of which is there, as it says."""
        return self.read_as(store, assert_sound_chain(store, self.path))

    def read_as(self, store: MemoryStore, newest: Manifest) -> Records:
        for entry in Entries.of(store, newest):
            for stored in (entry.stored_log, entry.stored_aux):
                body = store.objects[self.path.segment(stored.name)]
                assert (len(body), crc32c(body)) == (stored.size, stored.crc32c)
        assert newest.holes == ()
        return records(ArchivedLog(store, newest), newest.end_offset)

    def calls(self) -> int:
        door = Door(self.store())
        assert [d.error for d in run(door, self.reader, "b") if d.error] == []
        return len(door.calls)

    def ends_well(self, store: MemoryStore) -> None:
        """The next run leaves what the log has, the one after it has nothing to do, and a sweep takes what nobody names."""
        assert [d.error for d in run(store, self.reader, "d") if d.error] == []
        assert self.read(store) == self.now
        store.calls.clear()
        run(store, self.reader, "e")
        assert verbs(store.calls)[:2] == ["list", "get"]
        assert not {"upload", "put_if_absent"} & set(verbs(store.calls))
        clock = FixedClock(FixedClock().now_ms() + 30 * DAY_MS)
        garbage = sweep.plan(store, self.path, clock.now_ms(), DAY_MS)
        assert set(sweep.sweep(garbage, store, clock, CountingIds("f"), clock.now_ms())) == set(garbage.all)
        newest = load_newest(store, self.path)
        assert newest is not None
        assert self.read_as(store, newest.manifest) == self.now


@pytest.mark.parametrize("between", [pytest.param("nobody", marks=pytest.mark.slow), "another"])
def test_a_fault_at_any_call_leaves_the_old_or_the_new_of_each_group(world: World, between: str) -> None:
    numbers, told = range(1, world.calls() + 1), set[frozenset[tuple[str, bytes]]]()
    for fault, number in product(FAULTS if between == "nobody" else ["killed after"], numbers):
        store = world.store()
        door = FAULTS[fault](store, number)
        with suppress(Crash):
            run(door, world.reader, "b")
        is_late = isinstance(door, AppliesLate) and bool(door.late)
        left = frozenset(store.objects.items())
        if left in told and not is_late:
            continue  # what follows is known of this store
        told.add(left)
        assert world.now.items() <= world.read(store).items() <= world.was.items()
        if between == "another":
            assert [d.error for d in run(store, world.reader, "c") if d.error] == []
        if isinstance(door, AppliesLate):
            door.land()
        world.ends_well(store)
    assert len(told) > 5


def test_a_run_that_keeps_every_version_changes_nothing(world: World) -> None:
    store = world.store()
    before = world.read(store)
    run(store, world.reader, "b", replaces=False)
    assert world.read(store) == before
