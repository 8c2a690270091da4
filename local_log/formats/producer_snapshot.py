"""The producer snapshot (`.snapshot`): the state of a log's producers before the offset in the file's name.

    at  bytes  field
     0      2  version, 1
     2      4  CRC-32C of everything from byte 6 on
     6      4  number of producers, then 46 bytes each:
             8  producer id         4  offset delta (of the last batch)
             2  producer epoch      8  last timestamp, ms
             4  last sequence       4  coordinator epoch
             8  last offset         8  first offset of the open transaction, -1 for none

Source: Kafka's ProducerSnapshot.json and ProducerStateManager.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from local_log.errors import Corrupt
from local_log.formats.checksum import crc32c
from local_log.formats.primitives import Buffer, need, previous_sequence
from local_log.formats.record import NO_SEQUENCE

_HEADER = struct.Struct(">hIi")
_CRC_FROM = 6
_PRODUCER = struct.Struct(">qhiqiqiq")


@dataclass(frozen=True, slots=True)
class ProducerEntry:
    """One producer. The sequences and last_offset are -1 if it has written only markers.

    `offset_delta` is the difference between last and first offset of its last batch.
    """

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_offset: int
    offset_delta: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_first_offset: int | None

    @property
    def first_sequence(self) -> int:
        """The first sequence number of its last batch."""
        return previous_sequence(self.last_sequence, self.offset_delta) if self.last_offset >= 0 else NO_SEQUENCE


def read_producer_snapshot(buffer: Buffer) -> tuple[ProducerEntry, ...]:
    """The producers in a snapshot file, in its order. Raises Corrupt."""
    need(buffer, 0, _HEADER.size, "a producer snapshot's header")
    version, crc, count = _HEADER.unpack_from(buffer)
    if version != 1:
        raise Corrupt(f"producer snapshot of version {version}; Kafka writes version 1")
    found = crc32c(memoryview(buffer)[_CRC_FROM:])
    if found != crc:
        raise Corrupt(f"producer snapshot has CRC-32C {found:08x} where its header states {crc:08x}")
    if count < 0 or len(buffer) != _HEADER.size + count * _PRODUCER.size:
        raise Corrupt(f"producer snapshot of {len(buffer)} bytes claims {count} producers", position=_CRC_FROM)
    return tuple(_producer(*fields) for fields in _PRODUCER.iter_unpack(memoryview(buffer)[_HEADER.size :]))


# The parameters are the fields of `_PRODUCER`, in order.
def _producer(
    producer_id: int, epoch: int, last_sequence: int, last_offset: int, offset_delta: int, timestamp: int,
    coordinator_epoch: int, txn_first_offset: int,
) -> ProducerEntry:  # fmt: skip
    wrote = last_offset >= 0
    return ProducerEntry(
        producer_id,
        epoch,
        last_sequence if wrote else NO_SEQUENCE,
        last_offset,
        offset_delta if wrote else 0,
        timestamp,
        coordinator_epoch,
        txn_first_offset if txn_first_offset >= 0 else None,
    )


def write_producer_snapshot(producers: Iterable[ProducerEntry]) -> bytes:
    """The bytes of a snapshot with these producers, in their order."""
    rows = [_packed(p) for p in producers]
    body = len(rows).to_bytes(4, "big") + b"".join(rows)
    return _HEADER.pack(1, crc32c(body), len(rows)) + body[4:]


def _packed(p: ProducerEntry) -> bytes:
    return _PRODUCER.pack(
        p.producer_id,
        p.producer_epoch,
        p.last_sequence,
        p.last_offset,
        p.offset_delta,
        p.last_timestamp,
        p.coordinator_epoch,
        -1 if p.current_txn_first_offset is None else p.current_txn_first_offset,
    )
