"""What an archived partition costs whoever commits, opens, searches and retains, with ten thousand segments and with a million.

The segments are made up: what names them is written straight through the page writer into a store in memory, so that what is
measured is our own work, the requests and the bytes. Times are the best of several; memory is the peak of what Python holds.
"""

import time
import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from archive_fakes import CountingIds, Door, FixedClock, MemoryStore

from local_log.formats.checkpoints import EpochEntry
from remote.keys import AUX, LOG, PartitionPath, segment_name
from remote.manifest import codec, pages, paging
from remote.manifest.entries import Entries
from remote.manifest.model import LIMITS, Manifest, PageRef, never_archived
from remote.manifest.segment_entry import (
    IDENTITY,
    LEADER_EPOCH_CHECKPOINT,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    AuxRange,
    SegmentEntry,
)
from remote.manifest.store import ManifestWriter, load_newest
from remote.manifest.transitions import retained, segment_copied
from tiering.retention.plan import Policy, RetentionPlan, plan_retention

T = TypeVar("T")
T0 = 1_700_000_000_000
OFFSETS = 1_000_000
"""In a segment."""
MS = 60_000
"""From one segment to the next."""
ROUNDS = 5
PATH = PartitionPath("bench", "A" * 22, 0)
FIRST = never_archived(PATH.topic, PATH.topic_id, PATH.partition, 0)
PARTS = (OFFSET_INDEX, TIME_INDEX, PRODUCER_SNAPSHOT, LEADER_EPOCH_CHECKPOINT)


class Counted(Door):
    """How many bytes went through."""

    bytes = 0

    def around(self, verb: str, key: str, call: Callable[[], T]) -> T:
        answer = call()
        self.bytes += len(answer) if isinstance(answer, bytes) else 0
        return answer

    def put_if_absent(self, key: str, body: "bytes | bytearray | memoryview") -> None:
        self.bytes += len(body)
        super().put_if_absent(key, body)


@dataclass(frozen=True)
class Cost:
    """What one act took."""

    seconds: float
    requests: int
    bytes: int
    peak: int

    def __str__(self) -> str:
        return f"{self.seconds * 1e3:9.1f} ms {self.requests:3} requests {self.bytes / 1e3:8.0f} KB {self.peak / 1e6:6.1f} MB"


def segment(number: int) -> SegmentEntry:
    """A segment of a gigabyte, with ids and checksums that look like any other's."""
    mixed = (number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128)
    segment_id, crc, base, epoch = f"{mixed:032x}", mixed >> 96, number * OFFSETS, number // 5_000
    return SegmentEntry(
        segment_id, base, base + OFFSETS, base + OFFSETS - 1, T0 + (number + 1) * MS, OFFSETS, (EpochEntry(epoch, base),),
        segment_name(base, epoch, segment_id, LOG), (1 << 30) - crc % 100_000, crc,
        segment_name(base, epoch, segment_id, AUX), 700_000 + crc % 1_000, crc ^ 1,
        {part: AuxRange(i * 170_000, (i + 1) * 170_000, crc ^ i) for i, part in enumerate(PARTS)},
        True, IDENTITY, T0 + (number + 1) * MS,
    )  # fmt: skip


def partition(segments: int) -> MemoryStore:
    """An archived partition of so many segments, as its commits would have left it."""
    store, ids, refs = MemoryStore(), CountingIds(), list[PageRef]()
    inline = LIMITS.inline_max - LIMITS.page_entries // 2
    whole = (segments - inline) // LIMITS.page_entries * LIMITS.page_entries
    for first in range(0, whole, LIMITS.page_entries):
        entries = [segment(n) for n in range(first, first + LIMITS.page_entries)]
        body = pages.encode(0, entries)
        refs.append(pages.ref_of(0, entries, body, ids.new_id()))
        store.objects[PATH.page(refs[-1].name)] = body
    lineage = tuple(EpochEntry(n // 5_000, n * OFFSETS) for n in range(0, segments, 5_000))
    newest = replace(
        FIRST, version=1, leader_epochs=lineage, pages=tuple(refs), entries=tuple(segment(n) for n in range(whole, segments))
    )
    newest, made = paging.within_limits(newest, lambda ref: (), ids.new_id, T0, LIMITS)
    store.objects |= {PATH.page(page.ref.name): page.body for page in made}
    store.objects[PATH.manifest(1)] = codec.encode(newest)
    return store


def opened(store: Door) -> Manifest:
    """The newest manifest."""
    stored = load_newest(store, PATH)
    assert stored is not None
    return stored.manifest


def acts(segments: int) -> dict[str, Callable[[Door, Manifest], object]]:
    """What is measured; each is handed a store and the manifest that was opened before."""
    end = segments * OFFSETS

    def commit(store: Door, change: Callable[[Manifest], Manifest]) -> Manifest:
        return ManifestWriter(store, PATH, FixedClock(), CountingIds("c"), "bench", 0).commit(FIRST, change)

    def copied(before: Manifest) -> Manifest:
        return segment_copied(before, segment(segments), (), "", T0)

    def planned(store: Door, manifest: Manifest, policy: Policy) -> RetentionPlan:
        return plan_retention(Entries.of(store, manifest), policy, T0 + segments * MS, lambda item: False)

    return {
        "open the newest manifest": lambda store, _: opened(store),
        "find an offset, the newest": lambda store, m: next(Entries.of(store, m).overlapping(end - 1, end)),
        "find an offset, an old one": lambda store, m: next(Entries.of(store, m).overlapping(end // 7, end // 7 + 1)),
        "find a time": lambda store, m: next(Entries.of(store, m).as_late_as(T0 + segments * MS // 3, 0, end)),
        "commit one more segment": lambda store, _: commit(store, copied),
        "plan retention: nothing goes": lambda store, m: planned(store, m, Policy(retention_ms=segments * MS)),
        "plan retention: a hundredth goes": lambda store, m: planned(store, m, Policy(retention_ms=segments * MS * 99 // 100)),
        "retain: ten segments go": lambda store, _: commit(store, lambda m: retained(m, 10 * OFFSETS, T0)),
        "retain: half of it goes": lambda store, _: commit(store, lambda m: retained(m, end // 2, T0)),
    }


def fork(store: MemoryStore) -> Counted:
    """The same objects, so that an act changes nothing for the next."""
    copy = MemoryStore()
    copy.objects = dict(store.objects)
    return Counted(copy)


def cost(store: MemoryStore, act: Callable[[Door, Manifest], object]) -> Cost:
    """The best time, and what requests, bytes and memory it took."""
    manifest = opened(Door(store))
    best = float("inf")
    for _ in range(ROUNDS):
        door = fork(store)
        start = time.perf_counter()
        act(door, manifest)
        best = min(best, time.perf_counter() - start)
    again = fork(store)
    tracemalloc.start()
    act(again, manifest)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return Cost(best, len(door.calls), door.bytes, peak)


def run() -> None:
    """Prints the costs of either, and how many times more the larger one's are."""
    sizes = (10_000, 1_000_000)
    found: list[dict[str, Cost]] = []
    for segments in sizes:
        start = time.perf_counter()
        store = partition(segments)
        seconds, size = time.perf_counter() - start, sum(map(len, store.objects.values()))
        print(f"A partition of {segments:,} segments: {len(store.objects)} objects, {size / 1e6:.1f} MB, made in {seconds:.0f} s")
        found.append({name: cost(store, act) for name, act in acts(segments).items()})
        for name, taken in found[-1].items():
            print(f"  {name:32} {taken}")
    print(f"\n{sizes[1]:,} beside {sizes[0]:,} segments, times as much:       time  requests   bytes  memory")
    for name, large in found[1].items():
        small = found[0][name]
        ratios = (large.seconds / small.seconds, large.requests / small.requests if small.requests else 1.0)
        sizes_ratio = (large.bytes / small.bytes if small.bytes else 1.0, large.peak / small.peak)
        print(f"  {name:48} {ratios[0]:8.2f} {ratios[1]:9.2f} {sizes_ratio[0]:7.2f} {sizes_ratio[1]:7.2f}")
    print()
