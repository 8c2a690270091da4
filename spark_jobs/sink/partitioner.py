"""Which partition of its topic a row goes to, as Kafka's producers have it: the one it names, else its key's, else in turn.

All of it depends on the rows and the number of the task alone, so a task that is run again sends every row where it went before.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from local_log.errors import Invalid
from local_log.formats.kernels.keys import partitions_of_keys

STICKY_ROWS = 1_000
"""How many rows without a key go to one partition before the next one, so that batches are full (Kafka's sticky partitioner)."""

_NO_BYTES = np.empty(0, np.uint8)


class Partitioner:
    """Sends the rows of one task to the partitions of one topic."""

    def __init__(self, topic: str, partitions: int, task: int) -> None:
        self._topic = topic
        self._partitions = partitions
        self._turn = task * STICKY_ROWS

    def numbers(self, key: Any, partition: Any | None) -> Any:
        """The partition of each row (int32); `partition` is what rows say themselves. Raises Invalid for one that is none."""
        numbers = np.empty(len(key), np.int32)
        if not len(key):
            return numbers
        if partitions_of_keys(*_buffers(key), self._partitions, numbers):
            keyless = np.flatnonzero(numbers < 0)
            if partition is not None:
                keyless = keyless[~_stated(partition)[keyless]]
            numbers[keyless] = (self._turn + np.arange(len(keyless))) // STICKY_ROWS % self._partitions
            self._turn += len(keyless)
        if partition is not None:
            stated, said = _stated(partition), partition.fill_null(0).to_numpy()
            wrong = said[stated & ((said < 0) | (said >= self._partitions))]
            if len(wrong):
                raise Invalid(
                    f"Invalid partition given with record: {wrong[0]} is not in the range [0...{self._partitions}) of topic "
                    f"{self._topic}; a new topic has as many as the option partitions says, 1 without it"
                )
            numbers[stated] = said[stated]
        return numbers


def divided(rows: pa.RecordBatch, numbers: Any) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each partition, in the order in which they stand; what all goes to one is not copied."""
    if not len(numbers):
        return
    if (numbers == numbers[0]).all():
        yield int(numbers[0]), rows
        return
    order = np.argsort(numbers, kind="stable")
    present, starts = np.unique(numbers[order], return_index=True)
    for number, start, end in zip(present.tolist(), starts, [*starts[1:], len(order)], strict=True):
        # Copied, since a few rows of a rare partition would keep all rows of the batch in memory.
        yield number, rows.take(pa.array(order[start:end]))


def _stated(partition: Any) -> Any:
    return partition.is_valid().to_numpy(zero_copy_only=False)


def _buffers(column: Any) -> tuple[Any, Any, Any, int]:
    bits, ends, data = column.buffers()
    first = column.offset
    return (
        np.frombuffer(ends, np.int32)[first : first + len(column) + 1],
        np.frombuffer(data, np.uint8) if data else _NO_BYTES,
        np.frombuffer(bits, np.uint8) if bits else _NO_BYTES,
        first,
    )
