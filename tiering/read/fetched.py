"""What a fetch gives: batches, and the aborted transactions among them."""

from dataclasses import dataclass
from typing import NamedTuple

from local_log.file_range import FileRange
from local_log.formats.indexes.transaction import AbortedTxn


@dataclass(frozen=True, slots=True)
class Fetched:
    """The result of a fetch: whole batches as in the log, the offset to continue at, and the aborted transactions among them
    (empty for read_uncommitted).
    """

    records: bytes
    next_offset: int
    aborted: tuple[AbortedTxn, ...]


class OwnRange(NamedTuple):
    """Batches of a log that this process writes, as they lie in its file; the last may be incomplete. None if there are none.

    `next_offset` is the log's end if the range goes up to there, else the offset that was asked for: what lies between is not
    looked at. `aborted` are the aborted transactions among them, None for read_uncommitted.
    """

    range: FileRange | None
    next_offset: int
    aborted: tuple[AbortedTxn, ...] | None


def joined(aborted: tuple[AbortedTxn, ...], known: tuple[AbortedTxn, ...], start: int, end: int) -> tuple[AbortedTxn, ...]:
    """The aborted transactions, and those of `known` with offsets in `[start, end)`, each once."""
    more = {t for t in known if t.first_offset < end and t.last_offset >= start}.difference(aborted)
    return tuple(sorted({*aborted, *more})) if more else aborted
