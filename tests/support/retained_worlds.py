"""An archived partition with real objects, writers, readers and a clock for who retains and sweeps it; and what must hold of it.

Segments are of ten offsets and of bytes that tell them apart. Pages are small, so that there are some.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from archive_fakes import (
    WRITES,
    AppliesLate,
    CountingIds,
    Crash,
    CrashesAt,
    Door,
    FailsBefore,
    LosesAnswer,
    MemoryStore,
    SleptClock,
)
from crc32c import crc32c
from made_manifests import PATH, chain_faults, entry

from local_log.errors import Corrupt, LogError, NotFound, Unavailable
from local_log.formats.checkpoints import EpochEntry
from remote.manifest import pins
from remote.manifest.entries import Entries
from remote.manifest.model import Limits, Manifest, never_archived
from remote.manifest.pins import Pin
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import segment_copied
from remote.store import store_time as store_clock
from remote.store.api import ObjectStore
from remote.store.store_time import StoreRun
from tiering.retention import expire as retention
from tiering.retention.plan import Policy
from tiering.sweep import collect as sweep
from tiering.sweep.plan import Garbage

LIMITS = Limits(inline_max=3, page_entries=2, fan_out=2)
FIRST = never_archived(PATH.topic, PATH.topic_id, PATH.partition, 0)
HOUR_MS = 3_600_000
DELAY_MS = 4 * HOUR_MS
GRACE_MS = 6 * HOUR_MS
AGE_MS = 8 * HOUR_MS
"""What is kept by age; a segment is an hour younger than the one before."""


class Jumping(SleptClock):
    """A machine's clock beside the store's, off by `off_ms`."""

    def __init__(self, true: SleptClock, off_ms: int = 0) -> None:
        super().__init__(0)
        self.true, self.off_ms = true, off_ms

    def now_ms(self) -> int:
        return self.true.now_ms() + self.off_ms

    def sleep(self, seconds: float) -> None:
        self.true.sleep(seconds)


@dataclass
class World:
    """The objects, the true time, and how many segments were ever copied."""

    store: MemoryStore
    clock: SleptClock
    copied: int = 0

    def fork(self) -> "World":
        """The same objects at the same time, to go another way."""
        clock = SleptClock(self.clock.now)
        store = MemoryStore(clock)
        store.objects, store.modified = dict(self.store.objects), dict(self.store.modified)
        return World(store, clock, self.copied)

    def hours(self, hours: float) -> None:
        self.clock.now += round(hours * HOUR_MS)

    @property
    def manifest(self) -> Manifest:
        stored = load_newest(self.store, PATH)
        assert stored is not None
        return stored.manifest

    def upload(self, number: int, ids: CountingIds, store: ObjectStore | None = None) -> SegmentEntry:
        """The objects of a segment, and the entry that nobody has committed yet."""
        log, aux = body_of(number), b"aux of %d" % number
        named = entry(10 * number, 10 * number + 10)
        one = replace(
            named,
            max_timestamp_ms=self.clock.now_ms(),
            log_size=len(log),
            log_crc32c=crc32c(log),
            aux_size=len(aux),
            aux_crc32c=crc32c(aux),
        )
        for name, body in ((one.log_name, log), (one.aux_name, aux)):
            (store or self.store).upload(PATH.segment(name), [body], size=len(body), crc32c=crc32c(body))
        return one

    def writer(self, name: str = "f", store: ObjectStore | None = None) -> ManifestWriter:
        newest = load_newest(self.store, PATH)
        epoch = newest.manifest.writer_epoch if newest else 0
        return ManifestWriter(store or self.store, PATH, self.clock, CountingIds(name), name, epoch, LIMITS)

    def copy(self, *numbers: int, name: str = "f") -> None:
        for number in numbers:
            ids = CountingIds(f"{name}{number:03}")
            one = self.upload(number, ids)
            replace(self.writer(name), ids=ids).commit(FIRST, copied(one))
            self.copied = max(self.copied, number + 1)
            self.hours(1)

    def retain(self, store: ObjectStore | None = None, *, off_ms: int = 0, name: str = "a") -> retention.Expired:
        """As the command does it, from the plan on."""
        door, clock = store or self.store, Jumping(self.clock, off_ms)
        stored = load_newest(door, PATH)
        assert stored is not None
        due = retention.plan(stored.manifest, door, Policy(AGE_MS, None, DELAY_MS), clock.now_ms())
        if due.is_empty:
            return retention.Expired(0, stored.manifest.log_start_offset)
        return retention.expire(due, StoreRun(door, clock, CountingIds(name)), "retain")

    def sweep(self, store: ObjectStore | None = None, *, off_ms: int = 0, name: str = "b") -> list[Garbage]:
        """The same."""
        door, clock, ids = store or self.store, Jumping(self.clock, off_ms), CountingIds(name)
        now_ms = store_clock.store_now_ms(door, ids)
        gone = [*sweep.sweep(sweep.plan(door, PATH, now_ms, GRACE_MS), door, clock, ids, now_ms)]
        for piece in sweep.strays(door, now_ms, GRACE_MS):
            sweep.sweep_stray(door, piece)
            gone.append(piece)
        return gone

    def orphans(self) -> set[str]:
        """Every object that neither the newest manifest names nor is one itself."""
        entries = Entries.of(self.store, self.manifest)
        named = {PATH.page(name) for name in entries.page_names()}
        for one in (*entries, *(e for d in self.manifest.deleting for e in entries.deleting(d))):
            named |= {PATH.segment(one.log_name), PATH.segment(one.aux_name)}
        return {key for key in self.store.objects if key not in named and key != PATH.manifest(self.manifest.version)}


def body_of(number: int) -> bytes:
    return b"segment %03d " % number * 8


def copied(one: SegmentEntry) -> Callable[[Manifest], Manifest]:
    return lambda before: segment_copied(before, one, (EpochEntry(0, 0),), "lost", 7)


def made(segments: int = 18) -> World:
    """A partition whose segments were copied one an hour, of which the first two were given up long enough ago."""
    clock = SleptClock()
    world = World(MemoryStore(clock), clock)
    world.copy(*range(segments - 6))
    world.retain()
    world.copy(*range(segments - 6, segments))
    world.sweep(name="6")
    return world


@dataclass(frozen=True)
class Reader:
    """Somebody who has opened a version and reads it at leisure, with a pin or without."""

    manifest: Manifest
    pin: Pin | None

    @classmethod
    def opened(cls, world: World, *, pinned: bool, off_ms: int = 0, name: str = "c") -> "Reader":
        pin = None
        if pinned:
            newest = world.manifest
            clock = Jumping(world.clock, off_ms)
            start, end = newest.log_start_offset, newest.end_offset
            pin = pins.create(world.store, PATH, "r", newest.version, start, end, 12 * HOUR_MS, clock, CountingIds(name))
        return cls(world.manifest, pin)

    def assert_reads_all(self, world: World) -> None:
        assert_readable(world, Entries.of(world.store, self.manifest))


def assert_readable(world: World, entries: Entries) -> None:
    """Every offset from the log start offset to the end, each segment with the bytes that it was copied with."""
    at = entries.manifest.log_start_offset
    for one in entries:
        if one.end_offset <= entries.manifest.log_start_offset:
            continue
        assert one.base_offset <= at < one.end_offset
        at = one.end_offset
        assert world.store.get(PATH.segment(one.log_name)) == body_of(one.base_offset // 10)
        for stored in (one.stored_log, one.stored_aux):
            body = world.store.get(PATH.segment(stored.name))
            assert (len(body), crc32c(body)) == (stored.size, stored.crc32c)
    assert at == entries.manifest.end_offset


def assert_whole(world: World, start_max: int) -> None:
    """The chain is sound, everything named is there, nothing is lost that retention had no reason to take."""
    newest = world.manifest
    assert chain_faults(world.store) == []
    assert newest.log_start_offset <= start_max
    assert newest.end_offset == 10 * world.copied
    assert_readable(world, Entries.of(world.store, newest))


def due_start(world: World) -> int:
    """Where the log starts when everything that is too old has gone: segment n is of hour n."""
    old = [e for e in Entries.of(world.store, world.manifest) if e.max_timestamp_ms < world.clock.now_ms() - AGE_MS]
    return max((e.end_offset for e in old), default=world.manifest.log_start_offset)


FAULTS = ("fails before", "answer lost", "lands late", "killed after")
FAULTS_OF_READS = ("fails before",)
"""Who is killed at a read leaves what they leave who are killed after the write before it."""


def faulty(world: World, fault: str, number: int) -> Door:
    """The store whose call of that number, 1 and up, goes wrong so."""
    seen = 0

    def nth(_verb: str, _key: str) -> bool:
        nonlocal seen
        seen += 1
        return seen == number

    if fault == "fails before":
        return FailsBefore(world.store, Unavailable("no answer"), nth)
    if fault == "answer lost":
        return LosesAnswer(world.store, nth)
    if fault == "lands late":
        return AppliesLate(world.store, nth)
    return CrashesAt(world.store, number, after=True)


def survived(act: Callable[[], object]) -> None:
    """Does it, whatever goes wrong as real stores do."""
    with suppress(LogError, Crash):
        act()


def faults_of(act: Callable[[World, Door], object], world: World) -> Iterator[tuple[str, int]]:
    """Every fault at every call that `act` makes, where it makes a difference."""
    fork = world.fork()
    door = Door(fork.store)
    act(fork, door)
    for number, call in enumerate(door.calls, 1):
        for fault in FAULTS if call[0] in WRITES else FAULTS_OF_READS:
            yield fault, number


def retain_and_sweep(world: World) -> None:
    """Retention and sweep, again and again, as a schedule runs them."""
    for _ in range(2):
        assert world.retain(name="7").error is None
        world.hours(DELAY_MS / HOUR_MS + 1)
        assert world.retain(name="8").error is None
        world.hours(GRACE_MS / HOUR_MS + 9)
        world.sweep(name="9")


def caught(check: Callable[..., None], world: World, cases: Iterable[tuple[Any, ...]]) -> bool:
    """Whether a check sees in one of the cases what a mutant does wrong."""
    try:
        for case in cases:
            check(world, *case)
    except (AssertionError, NotFound, Corrupt):
        return True
    return False
