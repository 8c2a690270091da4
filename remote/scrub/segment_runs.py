"""Distributes a deep scrub: runs of consecutive segments of a partition, each for one task."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from local_log.formats.chunks import CHUNK_BYTES
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import IDENTITY, SegmentEntry
from remote.read.context import Decoder
from remote.scrub.budget import RequestBudget, RequestsExhausted
from remote.scrub.deep import DeepScrub
from remote.scrub.steps import ScrubbedSegment, SegmentToRead


@dataclass(frozen=True, slots=True)
class SegmentRun:
    """Consecutive segments of a partition."""

    manifest: Manifest
    entries: tuple[SegmentEntry, ...]

    @property
    def bytes(self) -> int:
        """Bytes that a scrub of the run reads."""
        return sum(map(stored_bytes, self.entries))

    @property
    def requests(self) -> int:
        """Estimated requests; chunks that end inside a batch, and batches larger than a chunk, cost a few more."""
        return sum(map(requests_of, self.entries))


@dataclass(frozen=True, slots=True)
class ScrubbedRun:
    """What was found in each segment of a run; None for a segment that was not read, because the request limit was reached."""

    found: tuple[ScrubbedSegment | None, ...]
    requests: int


def stored_bytes(entry: SegmentEntry) -> int:
    """Bytes that a deep scrub of a segment reads; an encoded segment is read twice, as stored and decoded."""
    return (entry.stored_log.size + entry.stored_aux.size) * _times_read(entry)


def requests_of(entry: SegmentEntry) -> int:
    """Estimated requests of a deep scrub of a segment."""
    return (max(1, -(-entry.stored_log.size // CHUNK_BYTES)) + 1) * _times_read(entry)


def _times_read(entry: SegmentEntry) -> int:
    return 1 if entry.encoding == IDENTITY else 2


def segment_runs(unread: Iterable[SegmentToRead], bytes_max: int) -> Iterator[SegmentRun]:
    """Groups segments of a partition, in order, into runs of at most `bytes_max`, or of a single segment."""
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
    return SegmentRun(unread[0].manifest, tuple(one.entry for one in unread))


def requests_per_run(runs: tuple[SegmentRun, ...], requests_max: int) -> tuple[int, ...]:
    """Divides `requests_max` among the runs in proportion to their bytes."""
    total = sum(s.bytes for s in runs)
    shares = [requests_max * s.bytes // max(total, 1) for s in runs]
    for i in range(requests_max - sum(shares) if shares else 0):
        shares[i % len(shares)] += 1
    return tuple(shares)


def scrub_run(store: RequestBudget, decoded: Decoder, run: SegmentRun) -> ScrubbedRun:
    """Deep scrub of the segments of a run. Raises Unavailable."""
    segments = DeepScrub(store, decoded)
    found: list[ScrubbedSegment | None] = []
    for entry in run.entries:
        try:
            found.append(segments.read(SegmentToRead(run.manifest, entry)))
        except RequestsExhausted:
            found.append(None)
    return ScrubbedRun(tuple(found), store.requests)
