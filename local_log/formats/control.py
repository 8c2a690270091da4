"""Control records: the markers that end transactions. The key is int16 version, int16 type (KIP-98)."""

import struct
from enum import IntEnum

from local_log.formats.primitives import Buffer, need

_KEY = struct.Struct(">hh")


class ControlType(IntEnum):
    """The types that end a transaction; those that Kafka has besides are not transactional."""

    ABORT = 0
    COMMIT = 1


def read_control_type(key: Buffer) -> int:
    """The type in a control record's key; compare with ControlType. Types that Kafka adds later pass through."""
    need(key, 0, _KEY.size, "the key of a control record")
    _version, control_type = _KEY.unpack_from(key)
    return int(control_type)
