"""Kafka's checkpoint files: a version line (0), a count line, then that many lines of fields.

`leader-epoch-checkpoint` in a partition's folder has lines `epoch start-offset`; the offset checkpoints of a log directory (high
watermarks, log start offsets, recovery points) have lines `topic partition offset`. Every line ends with a line end: a last one
without it was truncated, and its number may lack digits. Source: Kafka's CheckpointFile, which accepts such a line.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

from local_log.errors import Corrupt
from local_log.formats.filenames import TopicPartition
from local_log.formats.primitives import INT32_MAX, INT64_MAX, Buffer

T = TypeVar("T")

_SHOWN_MAX = 60
_NO_EPOCH = -1
_EPOCH_FIELDS = "epoch and start offset"


@dataclass(frozen=True, slots=True, order=True)
class EpochEntry:
    """`epoch` is the leader epoch of the offsets from `start_offset` up to the next entry's start offset."""

    epoch: int
    start_offset: int


def read_epochs(buffer: Buffer) -> tuple[EpochEntry, ...]:
    """The entries of a leader-epoch checkpoint. Raises Corrupt, also if epochs or offsets do not increase."""
    entries = tuple(_lines(buffer, _EPOCH_FIELDS, _epoch_entry))
    for before, after in pairwise(entries):
        if after.epoch <= before.epoch or after.start_offset < before.start_offset:
            raise Corrupt(f"leader epoch {after.epoch} from {after.start_offset} does not follow {before}")
    return entries


def read_epoch_lines(buffer: Buffer) -> tuple[EpochEntry, ...]:
    """The entries of a leader-epoch checkpoint as Kafka reads them: in any order, also a last line without a line end; none if
    the file ends after its version.

    Raises Corrupt.
    """
    return () if bytes(buffer) in (b"0", b"0\n") else tuple(_lines(buffer, _EPOCH_FIELDS, _epoch_entry, last_may_be_cut=True))


def write_epochs(entries: Iterable[EpochEntry]) -> bytes:
    """The bytes of a leader-epoch checkpoint."""
    return _written(f"{e.epoch} {e.start_offset}" for e in entries)


def read_offsets(buffer: Buffer) -> dict[TopicPartition, int]:
    """The offsets of an offset checkpoint by partition. Raises Corrupt."""
    return dict(_lines(buffer, "topic, partition and offset", _partition_offset))


def write_offsets(offsets: Mapping[TopicPartition, int]) -> bytes:
    """The bytes of an offset checkpoint, sorted by partition."""
    return _written(f"{p.topic} {p.partition} {offset}" for p, offset in sorted(offsets.items()))


def epoch_of(entries: Iterable[EpochEntry], offset: int) -> int | None:
    """The leader epoch of the record at `offset`, also of a future one; None before the first epoch."""
    found = None
    for entry in entries:
        if entry.start_offset > offset:
            break
        found = entry.epoch
    return found


def end_offset_for(entries: Sequence[EpochEntry], epoch: int, log_end_offset: int) -> EpochEntry | None:
    """The greatest epoch at or below `epoch` and its end offset, to which a follower truncates (OffsetsForLeaderEpoch).

    None if it is unknown. An epoch before the first one is returned itself, with the first entry's start as its end offset.
    """
    if epoch == _NO_EPOCH:
        return None
    if entries and epoch == entries[-1].epoch:
        return EpochEntry(epoch, log_end_offset)
    higher = next((e for e in entries if e.epoch > epoch), None)
    if higher is None:
        return None
    floor = max((e.epoch for e in entries if e.epoch <= epoch), default=epoch)
    return EpochEntry(floor, higher.start_offset)


def epochs_before(entries: Iterable[EpochEntry], end_offset: int) -> tuple[EpochEntry, ...]:
    """The entries that start below `end_offset`: the leader epochs of a log that ends there."""
    return tuple(e for e in entries if e.start_offset < end_offset)


def epochs_with_batches(entries: tuple[EpochEntry, ...], batches: tuple[EpochEntry, ...]) -> tuple[EpochEntry, ...]:
    """The leader epochs of a log with those of `batches` from before its first one, which truncateFromStart has dropped.

    `batches` are the epochs of some batches of the log in order, each with the offset of its first batch. A log without any
    leader epoch keeps none.
    """
    if not entries:
        return entries
    earlier = tuple(e for e in batches if e.start_offset < entries[0].start_offset)
    return earlier + tuple(e for e in entries if not earlier or e.epoch > earlier[-1].epoch)


def epochs_from(entries: tuple[EpochEntry, ...], start_offset: int) -> tuple[EpochEntry, ...]:
    """The leader epochs of a log that starts at `start_offset`: the epoch that contains it starts there (truncateFromStart)."""
    gone = [e for e in entries if e.start_offset <= start_offset]
    return (EpochEntry(gone[-1].epoch, start_offset), *entries[len(gone) :]) if gone else entries


def _epoch_entry(epoch: str, start_offset: str) -> EpochEntry:
    return EpochEntry(_number(epoch, INT32_MAX), _number(start_offset, INT64_MAX))


def _partition_offset(topic: str, partition: str, offset: str) -> tuple[TopicPartition, int]:
    return TopicPartition(topic, _number(partition, INT32_MAX)), _number(offset, INT64_MAX)


def _number(text: str, greatest: int) -> int:
    number = int(text)
    if "_" in text or not -greatest - 1 <= number <= greatest:
        raise ValueError(text)
    return number


def _written(lines: Iterable[str]) -> bytes:
    rows = [f"{line}\n" for line in lines]
    return "".join(["0\n", f"{len(rows)}\n", *rows]).encode()


def _lines(buffer: Buffer, fields: str, parse: Callable[..., T], *, last_may_be_cut: bool = False) -> Iterable[T]:
    if not len(buffer):
        return ()  # a broker creates the file empty
    try:
        lines = bytes(buffer).decode("ascii").splitlines()
    except UnicodeDecodeError as e:
        raise Corrupt(f"a checkpoint file of Kafka is ASCII; found byte {e.object[e.start]:#x}", position=e.start) from e
    version, count = [*lines, ""][:2]
    if version != "0":
        raise Corrupt(f"a checkpoint file of Kafka begins with its version, a line 0; found {_shown(version)}")
    if count != str(len(lines) - 2):
        raise Corrupt(f"expected a line with the number of lines that follow, {max(0, len(lines) - 2)}; found {_shown(count)}")
    if not last_may_be_cut and bytes(buffer[-1:]) != b"\n":
        raise Corrupt(f"expected a line's end after the last line, {_shown(lines[-1])}; it was cut", position=len(buffer))
    return [_parsed(line, fields, parse) for line in lines[2:]]


def _parsed(line: str, fields: str, parse: Callable[..., T]) -> T:
    try:
        return parse(*line.split())
    except (ValueError, TypeError) as e:
        raise Corrupt(f"expected a line of {fields}; found {_shown(line)}") from e


def _shown(line: str) -> str:
    return repr(line if len(line) <= _SHOWN_MAX else f"{line[:_SHOWN_MAX]}…")
