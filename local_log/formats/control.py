"""Control records: the markers that end transactions. The key is int16 version, int16 type; the value of one that
ends a transaction int16 version, int32 coordinator epoch (KIP-98)."""

import struct
from dataclasses import dataclass
from enum import IntEnum

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer, need, read_varint, read_varlong

_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")


SNAPSHOT_HEADER, SNAPSHOT_FOOTER = 3, 4
"""The types of a metadata snapshot's first and last record (KIP-630)."""


class ControlType(IntEnum):
    """The types that end a transaction; Kafka's other types are not transactional."""

    ABORT = 0
    COMMIT = 1


def read_control_type(key: Buffer) -> int:
    """The type in a control record's key, to compare with ControlType. Types of later versions of Kafka are returned as well."""
    need(key, 0, _KEY.size, "the key of a control record")
    _version, control_type = _KEY.unpack_from(key)
    return int(control_type)


@dataclass(frozen=True, slots=True)
class EndTxnMarker:
    """The first record of a control batch: its type, the coordinator's epoch, and the difference in ms between the record's
    timestamp and the batch's base timestamp."""

    control_type: ControlType
    coordinator_epoch: int
    timestamp_delta: int


def read_end_txn_marker(records: Buffer) -> EndTxnMarker:
    """The marker at the start of a control batch's records. Raises Corrupt with the position in `records`."""
    length, pos = read_varint(records, 0, "a record's length")
    need(records, pos, max(length, 0), "a record")
    timestamp_delta, pos = read_varlong(records, pos + 1, "a record's timestamp")
    _offset_delta, pos = read_varint(records, pos, "a record's offset")
    key, pos = _field(records, pos, "a marker's key")
    value, _ = _field(records, pos, "a marker's value")
    control_type = read_control_type(key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise Corrupt(f"a control record of type {control_type} ends no transaction")
    need(value, 0, _VALUE.size, "a marker's value")
    _version, coordinator_epoch = _VALUE.unpack_from(value)
    return EndTxnMarker(ControlType(control_type), coordinator_epoch, timestamp_delta)


def marker_key(control_type: ControlType) -> bytes:
    """The key of the record that ends a transaction."""
    return _KEY.pack(0, control_type)


def marker_value(coordinator_epoch: int) -> bytes:
    """The value of the record that ends a transaction."""
    return _VALUE.pack(0, coordinator_epoch)


def _field(records: Buffer, pos: int, what: str) -> tuple[Buffer, int]:
    size, pos = read_varint(records, pos, what)
    need(records, pos, max(size, 0), what)
    return records[pos : pos + max(size, 0)], pos + max(size, 0)
