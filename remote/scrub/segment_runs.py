"""A deep scrub on many machines: runs of segments of one partition, each read by a task, so that none has to wait for another."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from local_log.formats.chunks import CHUNK_BYTES
from remote.manifest.model import IDENTITY, Manifest, SegmentEntry
from remote.read.context import Decoder
from remote.scrub.budget import RequestBudget, RequestsExhausted
from remote.scrub.deep import DeepScrub
from remote.scrub.finding import Finding
from remote.scrub.steps import SegmentToRead


@dataclass(frozen=True, slots=True)
class SegmentRun:
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
class ScrubbedRun:
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


def segment_runs(unread: Iterable[SegmentToRead], bytes_max: int) -> Iterator[SegmentRun]:
    """Segments in the order of a walk, cut into runs of at most `bytes_max` each, or of one segment."""
    for _, group in groupby(unread, key=lambda one: one.manifest.path):
        held: list[SegmentToRead] = []
        size = 0
        for one in group:
            if held and size + stored_bytes(one.entry) > bytes_max:
                yield _run_of(held)
                held, size = [], 0
            held.append(one)
            size += stored_bytes(one.entry)
        yield _run_of(held)


def _run_of(unread: list[SegmentToRead]) -> SegmentRun:
    return SegmentRun(unread[0].manifest, unread[0].before, tuple(one.entry for one in unread))


def requests_per_run(runs: tuple[SegmentRun, ...], requests_max: int) -> tuple[int, ...]:
    """How many requests each stretch may make, so that all together make no more: by its share of all bytes."""
    total = sum(s.bytes for s in runs)
    shares = [requests_max * s.bytes // max(total, 1) for s in runs]
    for i in range(requests_max - sum(shares) if shares else 0):
        shares[i % len(shares)] += 1
    return tuple(shares)


def scrub_run(store: RequestBudget, decoded: Decoder, run: SegmentRun) -> ScrubbedRun:
    """Reads the segments of a stretch. Raises Unavailable."""
    segments = DeepScrub(store, decoded)
    found: list[tuple[Finding, ...] | None] = []
    before = run.before
    for entry in run.entries:
        meets = before is not None and before.end_offset == entry.base_offset
        try:
            found.append(segments.read(SegmentToRead(run.manifest, entry, before if meets else None)))
        except RequestsExhausted:
            found.append(None)
        before = entry
    return ScrubbedRun(tuple(found), store.requests)
