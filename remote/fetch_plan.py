"""Which parts of which segments answer a read: pure, from a manifest, each offset once."""

from collections.abc import Iterator
from dataclasses import dataclass

from local_log.errors import OffsetOutOfRange
from remote.errors import NotFound
from remote.manifest.model import Manifest, SegmentEntry


@dataclass(frozen=True, slots=True)
class Span:
    """The offsets `[start, end)` of one segment."""

    entry: SegmentEntry
    start: int
    end: int


class MissingRange(NotFound):
    """Offsets that the archive knows it does not have; its fields are those of the gap, cut to what was asked for."""

    def __init__(self, partition: str, start: int, end: int, reason: str) -> None:
        super().__init__(partition, start, end, reason)
        self.partition = partition
        self.start = start
        self.end = end
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.partition}: the archive lacks offsets [{self.start}, {self.end}): {self.reason}; read from {self.end} on"


def plan(manifest: Manifest, start: int, end: int, *, fail_on_data_loss: bool = True) -> tuple[Span, ...]:
    """The spans that hold `[start, end)`, in order; `end` is cut to the archive's end.

    Overlapping segments give each offset once, from the segment that starts first. Raises OffsetOutOfRange where `start` is
    outside the archive, MissingRange where offsets between are missing, unless data loss is allowed: then they are left out.
    """
    spans: list[Span] = []
    for piece in pieces(manifest, start, end):
        if isinstance(piece, Span):
            spans.append(piece)
        elif fail_on_data_loss:
            raise piece
    return tuple(spans)


def pieces(manifest: Manifest, start: int, end: int) -> Iterator[Span | MissingRange]:
    """As `plan`, with what is missing in its place, for a reader who goes as far as there are offsets."""
    name = f"{manifest.topic}-{manifest.partition}"
    if not manifest.log_start_offset <= start <= manifest.end_offset:
        raise OffsetOutOfRange(name, start, manifest.log_start_offset, manifest.end_offset)
    end = min(end, manifest.end_offset)
    for entry in manifest.entries:
        if start >= end:
            return
        if entry.base_offset > start:
            missing_end = min(end, entry.base_offset)
            yield MissingRange(name, start, missing_end, _reason(manifest, start, missing_end))
        if entry.end_offset > start and entry.base_offset < end:
            yield Span(entry, max(start, entry.base_offset), min(end, entry.end_offset))
        start = max(start, entry.end_offset)


def _reason(manifest: Manifest, start: int, end: int) -> str:
    reasons = (gap.reason for gap in manifest.gaps if gap.start < end and gap.end > start)
    return "; ".join(dict.fromkeys(reasons)) or "no segment holds them"
