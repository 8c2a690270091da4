"""The record of a write over many partitions: one object, put if absent, that says whether the write is committed or aborted.

The writer puts "committed" when the write is pending in every manifest. Another writer that has to commit before that puts
"aborted". The first put decides.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from local_log.errors import Corrupt, Invalid, NotFound, Unknown
from remote.clock import Clock
from remote.keys import PartitionPath, WritePath
from remote.manifest.model import Manifest, PendingWrite
from remote.manifest.numbers import whole
from remote.manifest.stamped_json import MAJOR, MINOR, REMEDY, read_stamped, stamped
from remote.manifest.writes import resolved
from remote.store.api import ObjectReader, ObjectStore, ReadableStore
from remote.store.conditional_put import PutOutcome, conditional_put

_COMMITTED, _GIVEN_UP = "committed", "given up"


@dataclass(frozen=True, slots=True)
class WrittenRange:
    """The offsets `[start, end)` that a write has added to a partition."""

    path: PartitionPath
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Decision:
    """How an attempt ended, when and by whom; `ranges` are what it added, empty for one that was given up."""

    committed: bool
    decided_at_ms: int
    by: str
    ranges: tuple[WrittenRange, ...] = ()

    @property
    def committed_at_ms(self) -> int | None:
        """Since when the write is there, None where it is not."""
        return self.decided_at_ms if self.committed else None

    @property
    def topics(self) -> frozenset[tuple[str, str]]:
        """The topics, each with its id, that got records."""
        return frozenset((r.path.topic, r.path.topic_id) for r in self.ranges)


def read_decision(store: ObjectReader, key: str) -> Decision | None:
    """The decision under a key, None where there is none yet. Raises Corrupt, Newer, Unavailable."""
    try:
        body = store.get(key)
    except NotFound:
        return None
    return _decode(body, key)


def decide(store: ObjectStore, clock: Clock, key: str, wanted: Decision) -> Decision:
    """Decides as `wanted` unless somebody has decided before; gives what holds. Raises Unknown, Unavailable, Corrupt."""
    put = conditional_put(store, clock, key, _encode(wanted), lambda found: _decode(found, key) == wanted)
    if put.outcome is PutOutcome.done:
        return wanted
    if put.found is None:
        raise Unknown(f"{key}: it is unknown whether the write is committed; run it again with the same writeId")
    return _decode(put.found, key)


def record_of(pending: PendingWrite) -> str:
    """The key of the record that decides on a pending write."""
    return WritePath(pending.topic, pending.topic_id, pending.mark.write_id).attempt(pending.mark.attempt_id)


def as_decided(store: ObjectReader, manifest: Manifest) -> Manifest:
    """The manifest as readers see it: with its pending write only if that was committed. Raises Corrupt, Unavailable."""
    if manifest.pending is None:
        return manifest
    decision = read_decision(store, record_of(manifest.pending))
    return resolved(manifest, decision.committed_at_ms if decision else None)


def ended(store: ObjectStore, clock: Clock, manifest: Manifest, by: str) -> Manifest:
    """The manifest without a pending write. A write that is not decided is aborted.

    Raises Unknown, Unavailable, Corrupt.
    """
    if manifest.pending is None:
        return manifest
    decision = decide(store, clock, record_of(manifest.pending), Decision(False, clock.now_ms(), by))
    return resolved(manifest, decision.committed_at_ms)


def decisions(store: ReadableStore, write: WritePath) -> Iterator[Decision]:
    """The decisions on the attempts of a write, of those that are decided. Raises Corrupt, Unavailable."""
    for meta in store.list(write.prefix):
        decision = read_decision(store, meta.key)
        if decision is not None:
            yield decision


def _encode(decision: Decision) -> bytes:
    ranges = [[r.path.topic, r.path.topic_id, r.path.partition, r.start, r.end] for r in decision.ranges]
    return stamped(
        {
            "format": {"major": MAJOR, "minor": MINOR},
            "outcome": _COMMITTED if decision.committed else _GIVEN_UP,
            "decided_at_ms": decision.decided_at_ms,
            "by": decision.by,
            "ranges": ranges,
        }
    )


def _decode(body: bytes, key: str) -> Decision:
    value = read_stamped(body, key)
    try:
        ranges = tuple(
            WrittenRange(PartitionPath(t, i, whole(n, "partition")), whole(start), whole(end))
            for t, i, n, start, end in value["ranges"]
        )
        committed = {_COMMITTED: True, _GIVEN_UP: False}[value["outcome"]]
        return Decision(committed, whole(value["decided_at_ms"], "decided_at_ms"), str(value["by"]), ranges)
    except (KeyError, TypeError, ValueError, Invalid) as e:
        raise Corrupt(f"not a write's record: {e!r}; {REMEDY}", file=key) from e
