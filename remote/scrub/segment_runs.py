"""A deep scrub on many machines: runs of segments of one partition, each read by a task, so that none has to wait for another."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from local_log.formats.chunks import CHUNK_BYTES
from remote.manifest.model import IDENTITY, Manifest, SegmentEntry
from remote.read.context import Decoded
from remote.scrub.budget import Budget, Spent
from remote.scrub.deep import SegmentScrub
from remote.scrub.finding import Finding
from remote.scrub.steps import Unread


@dataclass(frozen=True, slots=True)
class Stretch:
    """Segments of one partition, in order. Of `before` only what the first of them needs is read."""

    manifest: Manifest
    before: SegmentEntry | None
    entries: tuple[SegmentEntry, ...]

    @property
    def bytes(self) -> int:
        """What is read of the store."""
        return sum(map(stored_bytes, self.entries))

    @property
    def requests(self) -> int:
        """About what reading it costs: chunks that end inside a batch, and batches that are larger than one, cost some more."""
        return sum(map(requests_of, self.entries)) + (self.before is not None)


@dataclass(frozen=True, slots=True)
class StretchScrub:
    """What is wrong with each segment of a stretch, None for one that was not read, since the requests were used up."""

    found: tuple[tuple[Finding, ...] | None, ...]
    requests: int


def stored_bytes(entry: SegmentEntry) -> int:
    """Bytes that a deep scrub of a segment reads: those of an encoded one are read once as they are, and once to be decoded."""
    return (entry.stored_log.size + entry.stored_aux.size) * _times_read(entry)


def requests_of(entry: SegmentEntry) -> int:
    """About how many requests a deep scrub of a segment makes."""
    return (max(1, -(-entry.stored_log.size // CHUNK_BYTES)) + 1) * _times_read(entry)


def _times_read(entry: SegmentEntry) -> int:
    return 1 if entry.encoding == IDENTITY else 2


def stretches(unread: Iterable[Unread], bytes_max: int) -> Iterator[Stretch]:
    """Segments in the order of a walk, cut into stretches of at most `bytes_max` each, or of one segment."""
    for _, group in groupby(unread, key=lambda one: one.manifest.path):
        held: list[Unread] = []
        size = 0
        for one in group:
            if held and size + stored_bytes(one.entry) > bytes_max:
                yield _stretch(held)
                held, size = [], 0
            held.append(one)
            size += stored_bytes(one.entry)
        yield _stretch(held)


def _stretch(unread: list[Unread]) -> Stretch:
    return Stretch(unread[0].manifest, unread[0].before, tuple(one.entry for one in unread))


def shared(stretches_: tuple[Stretch, ...], requests_max: int) -> tuple[int, ...]:
    """How many requests each stretch may make, so that all together make no more: by its share of all bytes."""
    total = sum(s.bytes for s in stretches_)
    shares = [requests_max * s.bytes // max(total, 1) for s in stretches_]
    for i in range(requests_max - sum(shares) if shares else 0):
        shares[i % len(shares)] += 1
    return tuple(shares)


def scrub_stretch(store: Budget, decoded: Decoded, stretch: Stretch) -> StretchScrub:
    """Reads the segments of a stretch. Raises Unavailable."""
    segments = SegmentScrub(store, decoded)
    found: list[tuple[Finding, ...] | None] = []
    before = stretch.before
    for entry in stretch.entries:
        meets = before is not None and before.end_offset == entry.base_offset
        try:
            found.append(segments.read(Unread(stretch.manifest, entry, before if meets else None)))
        except Spent:
            found.append(None)
        before = entry
    return StretchScrub(tuple(found), store.requests)
