"""A file that holds batches of a log as they are: a segment of the local log, or an archived one in a folder."""

from collections.abc import Callable
from typing import NamedTuple

from local_log.file_range import OpenedFile


class BatchFile(NamedTuple):
    """`opened`, named `name` in errors, with batches one after another from its first byte on.

    `position_of` gives a position for an offset where a batch begins, at or before the batch with the offset. Batches whose base
    offset is at or above `end_offset` are not to be read; `next_offset` is where the log goes on after the file, None if it is
    the newest. `size` is how many bytes are batches, None for all that the file has when it is looked at. The last batch of the
    newest file may be incomplete.
    """

    name: str
    opened: OpenedFile
    position_of: Callable[[int], int]
    end_offset: int
    next_offset: int | None
    size: int | None = None
