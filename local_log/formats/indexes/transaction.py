"""The transaction index (`.txnindex`): the aborted transactions whose abort marker is in the segment.

34-byte entries: int16 version 0, int64 producer id, first offset, last offset (of the marker), last stable offset.
Source: Kafka's AbortedTxn.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer

ENTRY = struct.Struct(">hqqqq")


@dataclass(frozen=True, slots=True, order=True)
class AbortedTxn:
    """The transactional batches of `producer_id` in `[first_offset, last_offset]` were aborted; last_offset is the marker's."""

    first_offset: int
    last_offset: int
    producer_id: int
    last_stable_offset: int


def read_txn_index(buffer: Buffer) -> tuple[AbortedTxn, ...]:
    """All entries of an index file. Raises Corrupt for an invalid size or version."""
    if len(buffer) % ENTRY.size:
        raise Corrupt(
            f"{len(buffer)} bytes are not a whole number of {ENTRY.size}-byte entries: the transaction index is truncated",
            position=len(buffer) - len(buffer) % ENTRY.size,
        )
    aborted = []
    for at, (version, producer_id, first, last, last_stable) in enumerate(ENTRY.iter_unpack(buffer)):
        if version != 0 or first > last:
            problem = f"entry {at} of the transaction index is of version {version}, offsets {first} to {last}"
            raise Corrupt(problem, position=at * ENTRY.size)
        aborted.append(AbortedTxn(first, last, producer_id, last_stable))
    return tuple(aborted)


def write_txn_index(aborted: Iterable[AbortedTxn]) -> bytes:
    """The bytes of an index with these transactions."""
    return b"".join(ENTRY.pack(0, t.producer_id, t.first_offset, t.last_offset, t.last_stable_offset) for t in aborted)
