"""What an offload did, as a few rows for each partition: the driver holds nothing for each segment. Loaded by executors."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition
from local_log.log_reader import LogReader
from tiering.offload.copy import REFUSED
from tiering.offload.plan import Action
from tiering.offload.run import Result

REASONS_MAX: Final = 2


@dataclass(frozen=True, slots=True)
class OffloadRow:
    """The segments of a partition that came to one action: how many, the bytes of their logs, and why.

    Bytes are of what was, or in a dry run would be, copied. Refused segments have one row for each class of error, with the
    first one. No segments: the row is of the log.
    """

    partition: TopicPartition
    action: str
    segments: int
    bytes: int
    reason: str
    error: Exception | None = None


@dataclass(slots=True)
class _Sum:
    segments: int = 0
    bytes: int = 0
    reasons: dict[str, None] = field(default_factory=dict)
    error: LogError | None = None


def rows_of(results: Iterable[Result]) -> Iterator[OffloadRow]:
    """The rows for these results, in the order in which partitions and actions first appear."""
    sums: dict[tuple[TopicPartition, str, type | None], _Sum] = {}
    for log, done in results:
        error = done.error if done.action == REFUSED else None
        one = sums.setdefault((log.partition, done.action, type(error) if error else None), _Sum())
        one.error = one.error or error
        if done.reason:
            one.reasons[done.reason] = None
        if done.decision is None:
            continue
        one.segments += 1
        if done.entry is not None:
            one.bytes += done.entry.log_size
        elif done.action == Action.copy and isinstance(log, LogReader):
            one.bytes += _size(log, done.decision.segment.base_offset)
    for (partition, action, _), one in sums.items():
        yield OffloadRow(partition, action, one.segments, one.bytes, _listed(one.reasons), one.error)


def _listed(reasons: Iterable[str]) -> str:
    texts = [*reasons]
    more = f"; and {len(texts) - REASONS_MAX} more" if len(texts) > REASONS_MAX else ""
    return "; ".join(texts[:REASONS_MAX]) + more


def _size(log: LogReader, base_offset: int) -> int:
    try:
        return sum(s.size() for s in log.segments if s.base_offset == base_offset)
    except LogError:
        return 0  # its broker has deleted it in the meantime
