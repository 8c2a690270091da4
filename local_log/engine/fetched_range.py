"""What a fetch finds; see `local_log.file_range` for how long it is valid. The log announces a truncation before it begins."""

from typing import NamedTuple

from local_log.engine.local_log import Slice
from local_log.engine.offsets import OffsetMetadata
from local_log.engine.published import PublishedOffsets
from local_log.file_range import FileRange
from local_log.formats.indexes.transaction import AbortedTxn

_tuple = tuple.__new__  # as a named tuple's constructor, in a third of its time


class FetchedRange(NamedTuple):
    """As `Fetched`, with the batches where they lie; `range` is None if there are none."""

    start: OffsetMetadata
    range: FileRange | None
    first_batch_is_cut: bool
    aborted: tuple[AbortedTxn, ...] | None


def range_of(found: Slice, published: PublishedOffsets) -> FetchedRange:
    """What was found in a log, with its file opened, within `PublishedOffsets.undisturbed`. Raises NotFound, Unreadable."""
    start, segment, size, is_cut, aborted = found
    if segment is None:
        return FetchedRange(start, None, is_cut, aborted)
    place = _tuple(FileRange, (segment.open(), start.position, size, published, published.truncations))
    return _tuple(FetchedRange, (start, place, is_cut, aborted))
