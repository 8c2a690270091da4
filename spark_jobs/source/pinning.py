"""Plans a read that retention does not break: the driver puts a pin for each partition before it returns the plan.

A pin covers the offsets to be read of a partition for `pinHours`. PySpark does not call a reader when a batch read has ended, so
pins are released only by a Python caller that planned the read. Other pins expire, and the sweep deletes them. Retention removes
pinned segments from the manifest as usual, but does not delete their objects.
"""

import os
import platform
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from local_log.errors import Conflict, Invalid
from remote.clock import Clock, Ids
from remote.keys import PartitionPath
from remote.manifest import pins
from remote.manifest.pins import Pin
from remote.manifest.store import load_newest, newest_version
from remote.parallel import in_order
from remote.store.api import ObjectStore
from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import Split, plan_splits
from spark_jobs.source.pushdown import EVERYTHING, Pushdown
from spark_jobs.source.ranges import THREADS

PLANS_MAX = 5
_HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Planned:
    """Splits, and the pins of their partitions: none where the options want none, or the archive lets us only read."""

    splits: tuple[Split, ...]
    pins: tuple[tuple[PartitionPath, Pin], ...] = ()


@dataclass(frozen=True, slots=True)
class _Read:
    """What is read of one partition: offsets `[start, end)` from these segments, as manifest `version` has them."""

    path: PartitionPath
    version: int
    start: int
    end: int
    segments: frozenset[str]


def plan_pinned(store: ObjectStore, options: ReadOptions, clock: Clock, ids: Ids, pushdown: Pushdown = EVERYTHING) -> Planned:
    """As `plan_splits`, with pins.

    A pin is too late if retention has read the pins before it was put. So the newest manifests are read once more, and if one no
    longer has a planned segment, the read is planned again. For an old version (asOf…) there is no guarantee. Raises what
    `plan_splits` raises; Unavailable, Unknown; Conflict if retention removes segments before each of the plans is pinned.
    """
    for _ in range(PLANS_MAX):
        splits = plan_splits(store, options, pushdown)
        if options.pin_hours == 0 or not splits:
            return Planned(splits)
        reads = _reads(splits)
        try:
            with in_order(lambda r: _pinned(store, r, options, clock, ids), reads, THREADS) as found:
                planned = Planned(splits, tuple(found))
        except Invalid:  # we may only read here
            return Planned(splits)
        is_past = options.as_of_version is not None or options.as_of_timestamp is not None
        with in_order(lambda r: _is_given_up(store, r), reads, THREADS) as given_up:
            if is_past or not any(given_up):
                return planned
        release(store, planned)
    raise Conflict(f"{PLANS_MAX} plans in a row were invalidated by retention; start the read at a later offset")


def release(store: ObjectStore, planned: Planned) -> None:
    """Ends the pins of a plan. Raises Unavailable."""
    for path, pin in planned.pins:
        pins.release(store, path, pin)


@contextmanager
def pinned_splits(
    store: ObjectStore, options: ReadOptions, clock: Clock, ids: Ids, pushdown: Pushdown = EVERYTHING
) -> Iterator[tuple[Split, ...]]:
    """The splits of a read for as long as the block lasts, for who knows when all is read. Raises as `plan_pinned`."""
    planned = plan_pinned(store, options, clock, ids, pushdown)
    try:
        yield planned.splits
    finally:
        release(store, planned)


def _reads(splits: Iterable[Split]) -> list[_Read]:
    found: dict[PartitionPath, _Read] = {}
    for s in splits:
        path = s.manifest.path
        start, end = (found[path].start, found[path].end) if path in found else (s.span.start, s.span.end)
        segments = found[path].segments if path in found else frozenset[str]()
        segments |= {s.span.entry.segment_id}
        found[path] = _Read(path, s.manifest.version, min(start, s.span.start), max(end, s.span.end), segments)
    return list(found.values())


def _pinned(store: ObjectStore, r: _Read, options: ReadOptions, clock: Clock, ids: Ids) -> tuple[PartitionPath, Pin]:
    owner = f"Spark's format tiering, planned on {platform.node()} by process {os.getpid()}"
    lasts_ms = options.pin_hours * _HOUR_MS
    return r.path, pins.create(store, r.path, owner, r.version, r.start, r.end, lasts_ms, clock, ids)


def _is_given_up(store: ObjectStore, r: _Read) -> bool:
    if newest_version(store, r.path) == r.version:
        return False
    newest = load_newest(store, r.path)
    if newest is None or newest.manifest.is_deleted or newest.manifest.log_start_offset > r.start:
        return True
    return any(d.id in r.segments for d in newest.manifest.deleting)
