"""A client without a consumer's work: it asks for bytes, takes them, and looks for where they end. It waits for the server alone.

Fetch of version 11, which every server here answers. As a command it reads a topic again and again, until it is ended, or
several topics side by side for each line of its input, and answers how many bytes that were:

    python bench/raw_fetches.py ADDRESS TOPIC BYTES CONNECTIONS END
    python bench/raw_fetches.py BYTES ADDRESS,TOPIC,END...
"""

import random  # noqa: TID251  # seeded
import selectors
import socket
import ssl
import struct
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

FETCH, VERSION = 1, 11
RESPONSE_BYTES_MAX = 50 << 20
_BATCH = struct.Struct(">qi")


@dataclass(frozen=True)
class Answer:
    """`size` bytes of records, where to go on, the error code and the high watermark."""

    size: int
    next_offset: int
    error: int
    high_watermark: int


def connected(address: str, trusted: str | None = None) -> socket.socket:
    """A connection that blocks; by TLS if the file of the authority is given that signs the servers."""
    host, _, port = address.rpartition(":")
    found = socket.create_connection((host, int(port)))
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return found if trusted is None else ssl.create_default_context(cafile=trusted).wrap_socket(found, server_hostname=host)


def request(topic: str, offset: int, bytes_max: int) -> bytes:
    """A frame that asks for partition 0 of a topic."""
    name = topic.encode()
    body = struct.pack(">hhih", FETCH, VERSION, 1, 5) + b"bench"
    body += struct.pack(">iiiibii", -1, 500, 1, RESPONSE_BYTES_MAX, 0, 0, -1)
    body += struct.pack(">ih", 1, len(name)) + name
    body += struct.pack(">iiiqqi", 1, 0, -1, offset, -1, bytes_max) + struct.pack(">ih", 0, 0)
    return struct.pack(">i", len(body)) + body


def receive(of: socket.socket, into: memoryview) -> int:
    """A frame without its size, into the beginning of a buffer; how many bytes it has."""
    _fill(of, into[:4])
    size = int.from_bytes(into[:4], "big")
    _fill(of, into[:size])
    return size


def answer(data: memoryview, topic: str, offset: int) -> Answer:
    """What a frame says, which answers a request for `offset`."""
    at = 4 + 4 + 2 + 4 + 4 + 2 + len(topic) + 4 + 4
    error, high_watermark = struct.unpack_from(">hq", data, at)
    at += 2 + 8 + 8 + 8
    aborted = struct.unpack_from(">i", data, at)[0]
    at += 4 + max(aborted, 0) * 16 + 4
    size = max(0, struct.unpack_from(">i", data, at)[0])
    at, end = at + 4, at + 4 + size
    while at + 61 <= end:
        base, length = _BATCH.unpack_from(data, at)
        if at + 12 + length > end:
            break
        offset = base + struct.unpack_from(">i", data, at + 23)[0] + 1
        at += 12 + length
    return Answer(size, offset, error, high_watermark)


def drain(address: str, topic: str, bytes_max: int, end: int, trusted: str | None = None) -> int:
    """Reads a topic up to offset `end` by one connection; how many bytes that were."""
    buffer, offset, total = memoryview(bytearray(bytes_max + (2 << 20))), 0, 0
    with connected(address, trusted) as to:
        while offset < end:
            to.sendall(request(topic, offset, bytes_max))
            receive(to, buffer)
            found = answer(buffer, topic, offset)
            if found.error or found.next_offset == offset:
                raise AssertionError(f"error {found.error} at {offset} of {end}")
            total, offset = total + found.size, found.next_offset
    return total


def take_all(of: socket.socket, bytes_max: int) -> int:
    """Takes what comes, up to its end, as it takes answers of so many bytes; how many bytes that were."""
    buffer, total = memoryview(bytearray(bytes_max)), 0
    while count := of.recv_into(buffer[total % bytes_max :]):
        total += count
    return total


def latencies(address: str, topic: str, connections: int, count: int, end: int) -> list[float]:
    """Seconds of so many fetches of one batch, at any offset below `end`, sorted; each connection has one under way."""
    where, found, began = random.Random(1), list[float](), dict[socket.socket, float]()
    left = dict[socket.socket, int]()
    with selectors.DefaultSelector() as ready:
        everybody = [connected(address) for _ in range(connections)]

        def ask(of: socket.socket) -> None:
            began[of], left[of] = time.perf_counter(), -1
            of.sendall(request(topic, where.randrange(end), 1))

        for one in everybody:
            ready.register(one, selectors.EVENT_READ)
            ask(one)
        while len(found) < count:
            for key, _ in ready.select():
                one = key.fileobj
                assert isinstance(one, socket.socket)
                data = one.recv(1 << 16)
                if not data:
                    raise AssertionError("the connection was closed")
                left[one] = (int.from_bytes(data[:4], "big") + 4 if left[one] < 0 else left[one]) - len(data)
                if not left[one]:
                    found.append(time.perf_counter() - began[one])
                    ask(one)
        for one in everybody:
            one.close()
    return sorted(found)


def _fill(of: socket.socket, into: memoryview) -> None:
    done = 0
    while done < len(into):
        count = of.recv_into(into[done:])
        if not count:
            raise AssertionError("the connection was closed")
        done += count


def _again_and_again(address: str, topic: str, bytes_max: int, end: int) -> None:
    while True:
        drain(address, topic, bytes_max, end)


def _together(bytes_max: int, topics: list[list[str]]) -> int:
    with ThreadPoolExecutor(len(topics)) as pool:
        return sum(pool.map(lambda one: drain(one[0], one[1], bytes_max, int(one[2])), topics))


if __name__ == "__main__":
    given = sys.argv[1:]
    if "," in given[1]:
        for _ in sys.stdin:
            print(_together(int(given[0]), [one.split(",") for one in given[1:]]), flush=True)
        sys.exit()
    readers = [
        threading.Thread(target=_again_and_again, args=(given[0], given[1], int(given[2]), int(given[4])), daemon=True)
        for _ in range(int(given[3]))
    ]
    for reader in readers:
        reader.start()
    readers[0].join()
