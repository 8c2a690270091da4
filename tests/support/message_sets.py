"""Messages of magic 0 and 1 as they are read, or what is said against them."""

import struct
import zlib

import pytest
from hand_made import GZIP, LZ4, SNAPPY, decoded, message

from local_log.errors import Corrupt
from local_log.formats.messages.message_set import scan_messages
from local_log.formats.record_batch.projection import Projection

CODECS = [GZIP, SNAPPY, LZ4]


def rows(buffer: bytes) -> list[tuple]:
    batches, _ = scan_messages(buffer)
    records = decoded(buffer, batches, Projection(timestamp_type=True)).to_pylist()
    return [(r["offset"], r["timestamp"], r["timestamp_type"], r["key"], r["value"]) for r in records]


def wrong(buffer: bytes) -> str:
    """What is said of the message after a sound one, which every finding has to be placed at."""
    sound = message(1, offset=-1)
    scanned, stop = scan_messages(sound + buffer)
    assert (len(scanned), stop) == (1, len(sound))
    with pytest.raises(Corrupt) as caught:
        scan_messages(sound + buffer, stop)
    assert caught.value.position == len(sound)
    return caught.value.problem


def with_crc(whole: bytes | bytearray) -> bytes:
    return bytes(whole[:12]) + struct.pack(">I", zlib.crc32(whole[16:])) + bytes(whole[16:])
