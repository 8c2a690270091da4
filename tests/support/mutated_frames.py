"""Frames as no client sends them: good requests of every API and version with wrong lengths, arrays, tags and cuts."""

import zlib
from collections.abc import Callable, Sequence
from random import Random  # noqa: TID251  # seeded
from typing import Any

from random_messages import random_message

from tiering.endpoint.protocol.api_keys import APIS, PRODUCE
from tiering.endpoint.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tiering.endpoint.protocol.requests import RequestHeader, write_request

_SIZE, _HEADER = 4, 8
_EXTREMES = tuple(
    value.to_bytes(size, "big", signed=True)
    for size in (1, 2, 4, 8)
    for value in (0, -1, -2, 1, (1 << (8 * size - 1)) - 1, -(1 << (8 * size - 1)))
)
_VARINTS = (
    b"\x00",
    b"\x01",
    b"\x7f",
    b"\xff\xff\xff\xff\x0f",
    b"\xff\xff\xff\xff\x07",
    b"\x80\x80\x80\x80\x80\x80",
    b"\xff" * 10,
)
_BOMB = zlib.compress(bytes(64 << 20), 9)
"""64 MiB in 65 KB."""

Mutate = Callable[[bytearray, Random], None]


def good_frame(random: Random) -> bytes:
    """A request of some API and version that is answered, with its size in front."""
    api = random.choice(tuple(APIS.values()))
    version = random.randint(api.first, api.last)
    header = RequestHeader(api, version, random.getrandbits(31), random.choice((None, "", "client", "ü" * 40)))
    return write_request(header, _message(api.request, version, random))


def mutated(frame: bytes, random: Random) -> bytes:
    """The frame with some things wrong; its size is right, unless that is one of them."""
    data = bytearray(frame[_SIZE:])
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        random.choice(_MUTATIONS)(data, random)
    size = (
        len(data) if random.random() < 0.95 else random.choice((len(data) + 1, len(data) - 1, -1, 0, 1 << 30, len(data) + 1000))
    )
    return size.to_bytes(_SIZE, "big", signed=True) + data


def mutated_body(frame: bytes, random: Random) -> bytes:
    """The same, of the same API and version and with the same correlation id, so that it is one answer that is told wrong."""
    data = bytearray(frame[_SIZE:])
    for _ in range(random.choice((1, 1, 2))):
        random.choice(_MUTATIONS)(data, random)
    data[:_HEADER] = frame[_SIZE : _SIZE + _HEADER]
    return len(data).to_bytes(_SIZE, "big") + data


def pieces(frame: bytes, random: Random) -> Sequence[bytes]:
    """The frame as it may arrive: whole, in pieces, or a byte at a time; and now and then not to its end."""
    if random.random() < 0.05:
        frame = frame[: random.randrange(len(frame))]
    step = random.choice((len(frame), len(frame), 1460, 7, 1 if len(frame) < 300 else 50)) or 1
    return [frame[at : at + step] for at in range(0, len(frame), step)]


def _message(of: type, version: int, random: Random) -> Any:
    if of is ProduceRequest and random.random() < 0.3:
        bomb = PartitionProduceData(0, (_batch(_BOMB),))
        return ProduceRequest(acks=random.choice((0, 1, -1)), topic_data=(TopicProduceData("g-txn", partition_data=(bomb,)),))
    return random_message(of, version, random)


def _batch(section: bytes) -> bytes:
    """Of magic 2 with gzip, as its header says; nobody looks at the rest."""
    return bytes(8) + (49 + len(section)).to_bytes(4, "big") + bytes(4) + b"\x02" + bytes(4) + b"\x00\x01" + bytes(38) + section


def _place(data: bytearray, random: Random) -> int:
    """Mostly after the fields by which the request is told."""
    return random.randrange(_HEADER if random.random() < 0.9 and len(data) > _HEADER else 0, max(1, len(data)))


def _flip(data: bytearray, random: Random) -> None:
    if data:
        data[_place(data, random) % len(data)] ^= 1 << random.randrange(8)


def _overwrite(data: bytearray, random: Random) -> None:
    place, value = _place(data, random), random.choice(_EXTREMES)
    data[place : place + len(value)] = value


def _varint(data: bytearray, random: Random) -> None:
    place = _place(data, random)
    data[place : place + 1] = random.choice(_VARINTS)


def _insert(data: bytearray, random: Random) -> None:
    place = _place(data, random)
    data[place:place] = random.randbytes(random.choice((1, 2, 4, 16, 300)))


def _delete(data: bytearray, random: Random) -> None:
    place = _place(data, random)
    del data[place : place + random.choice((1, 2, 4, 16, 300))]


def _repeat(data: bytearray, random: Random) -> None:
    """An element once more, or a thousand times."""
    place, size = _place(data, random), random.choice((1, 4, 20, 60))
    data[place:place] = bytes(data[place : place + size]) * random.choice((1, 1, 10, 1000))


def _tags(data: bytearray, random: Random) -> None:
    """Tagged fields that nobody knows, of any size, instead of the last byte, which says that there are none."""
    count = random.choice((1, 3, 2000))
    fields = b"".join(bytes([100 + random.randrange(27), size]) + bytes(size) for size in random.choices(range(100), k=count))
    data[-1:] = (bytes([count]) if count < 128 else bytes([count & 0x7F | 0x80, count >> 7])) + fields


def _version(data: bytearray, random: Random) -> None:
    """The body of one request under the name of another."""
    api = random.choice((*APIS.values(), PRODUCE))
    data[0:4] = api.key.to_bytes(2, "big") + random.randint(api.first, api.last + 1).to_bytes(2, "big")


_MUTATIONS: Sequence[Mutate] = (_flip, _flip, _overwrite, _overwrite, _varint, _insert, _delete, _repeat, _tags, _version)
