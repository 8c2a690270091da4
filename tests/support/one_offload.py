"""One log planned and offloaded, and what is to be archived of it."""

from collections.abc import Callable

from archive_fakes import CountingIds, FixedClock
from golden_logs import live

from local_log.log_reader import LogReader
from remote.store.api import ObjectStore
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan

TXN = "g-txn-0"


def due_ranges(log: LogReader) -> list[tuple[int, int]]:
    """The inactive segments below the last stable offset that the broker itself told."""
    stable = live(str(log.partition))["last_stable_offset"]
    ranges = ((s.base_offset, s.next_base_offset) for s in log.segments)
    return [(base, end) for base, end in ranges if end is not None and log.log_start_offset < end <= stable]


def named(manifest: object) -> list[tuple[int, int]]:
    return [(e.base_offset, e.end_offset) for e in manifest.entries]  # type: ignore[attr-defined]


def run(store: ObjectStore, log: LogReader, *, prefix: str = "", progress: Callable[[int], None] = lambda _: None) -> list[Done]:
    """Plans and offloads one log."""
    return list(offload(plan(log, store), OffloadRun(store, FixedClock(), CountingIds(prefix), "source", progress)))
