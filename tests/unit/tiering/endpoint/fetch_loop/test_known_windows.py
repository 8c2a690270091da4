"""Larger answers out of windows of the cache: of what lies in a store, or is encoded."""

import socket
from collections import Counter
from dataclasses import replace

import pytest
from archive_fakes import Door, MemoryStore
from asked_endpoint import Endpoint, bytes_of, response_of
from encodings_to_try import ENCODED, KEYS, transforms
from loop_clients import LoopClient, fetch, fetch_loop, the_long_way
from made_archive import batch_of, made
from pools import InstantPool

from remote.read.context import ReadContext
from remote.read.shared_reads import SharedReads
from remote.read.window_cache import CachedSegment, WindowCache
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.unwrapped_once import UnwrappedOnce
from tiering.endpoint.fetch_loop.loop import Unsent
from tiering.endpoint.fetch_loop.tables import WINDOWS_MAX
from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.reads import Reads

SEGMENTS = [[range(n, n + 3) for n in range(first, first + 900, 3)] for first in (0, 900, 1_800)]
"""Three segments of 900 KB, of 300 batches each."""
ALL = b"".join(batch_of(n, range(n, n + 3)) for n in range(0, 2_700, 3))
END = 2_700
WINDOW = 256 << 10
CACHE = 16 * WINDOW
SIZE = 40_000


def over(store: MemoryStore | Door, bytes_max: int = CACHE) -> Endpoint:
    keys = UnwrappedOnce(KEYS)
    endpoint = Endpoint(None, store, reading=ReadContext(lambda store: DecodedBytes(store, keys)))
    cache = WindowCache(bytes_max, InstantPool(), WINDOW, 16 << 10)
    endpoint.context = replace(endpoint.context, reads=Reads(shared=SharedReads(cache)))
    return endpoint


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    found = MemoryStore()
    made(found, SEGMENTS)
    return found


def asked(endpoint: Endpoint, offset: int, size: int = SIZE) -> bytes:
    return fetch(endpoint, offset, topic="made", max_bytes=size)


def followed(client: LoopClient, offset: int = 0, stop: int = END, size: int = SIZE) -> bytes:
    """The batches that a consumer gets until an offset."""
    got = bytearray()
    while offset < stop:
        answer = client.ask(asked(client.endpoint, offset, size))
        assert answer is not None
        records = b"".join(response_of(FETCH, 11, answer).responses[0].partitions[0].records)
        got += records
        offset += 3 * len(records) // (len(ALL) // 900)
    return bytes(got)


def test_a_consumer_of_an_archive_gets_most_of_its_answers_from_the_loop(store: MemoryStore) -> None:
    door = Door(store)
    endpoint = over(door)
    with fetch_loop(endpoint) as loop:
        client = LoopClient(endpoint, loop)
        assert followed(client) == ALL
        answers = len(ALL) // SIZE
        assert client.by_loop > answers // 2
        assert client.by_others < 6, "the first ones, until it is read ahead"
    ranges = [call[1:] for call in door.calls if call[0] == "get_range" and call[1].endswith(".log")]
    assert set(Counter((key, at) for key, start, end in ranges for at in range(start, end, 64)).values()) == {1}


@pytest.mark.parametrize("encoding", ENCODED)
def test_encoded_segments_are_answered_as_others_are(encoding: str) -> None:
    store = MemoryStore()
    made(store, SEGMENTS, transforms=transforms(encoding))
    endpoint = over(store)
    with fetch_loop(endpoint) as loop:
        client = LoopClient(endpoint, loop)
        assert followed(client) == ALL
        assert client.by_loop > len(ALL) // SIZE // 2


def test_clients_at_different_places_of_one_log_get_what_the_long_way_gives(store: MemoryStore) -> None:
    endpoint, other = over(store), over(store)
    with fetch_loop(endpoint) as loop:
        clients = [(LoopClient(endpoint, loop), at, size) for at in (0, 300, 1_500) for size in (SIZE, 100_000)]
        for number in range(30):
            for client, at, size in clients:
                for offset in (at + 12 * number, at + 12 * number + 1):
                    assert client.ask(asked(endpoint, offset, size)) == the_long_way(other, asked(other, offset, size))
        for client, at, size in clients:
            assert followed(client, at, size=size) == ALL[at // 3 * (len(ALL) // 900) :]
        assert sum(client.by_loop for client, *_ in clients) > 100


def test_what_the_socket_does_not_take_is_bytes_of_the_window(store: MemoryStore) -> None:
    endpoint, other = over(store), over(store)
    with fetch_loop(endpoint) as loop:
        client = LoopClient(endpoint, loop)
        followed(client, stop=900)
        offset = next(n for n in range(900, END, 3) if asks_the_loop(client, n))
        client.server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
        found = client.event(asked(endpoint, offset))
        assert isinstance(found, Unsent)
        assert [type(part) for part in found.parts] == [bytes, memoryview, bytes]
        right = the_long_way(other, asked(other, offset))
        assert right is not None
        assert b"".join(map(bytes_of, found.parts)) == right
        assert 0 < found.sent < len(right)


def asks_the_loop(client: LoopClient, offset: int) -> bool:
    before = client.by_loop
    client.ask(asked(client.endpoint, offset))
    return client.by_loop > before


def test_the_memory_of_a_window_that_the_cache_has_no_longer_is_free_within_a_second(store: MemoryStore) -> None:
    endpoint = over(store)
    cache = endpoint.context.reads.shared.cache
    with fetch_loop(endpoint) as loop:
        client = LoopClient(endpoint, loop)
        followed(client, stop=900)
        offset = next(n for n in range(900, END, 3) if asks_the_loop(client, n))
        others = CachedSegment("of another log", CACHE, lambda start, end: bytes(end - start), 16 << 10)
        for at in range(0, CACHE // 2, WINDOW):
            cache.window(others, at, at + WINDOW)
        for at in range(CACHE // 2, CACHE, WINDOW):  # what was evicted may be in use by the loop
            cache.window(others, at, at + WINDOW)
        loop.look()
        for at in range(0, CACHE, WINDOW):
            assert cache.window(others, at, at + WINDOW) is not None
        assert client.event(asked(endpoint, offset)) is not None


def test_more_logs_than_there_are_rows_for_windows_are_read_in_turns() -> None:
    store, topics = MemoryStore(), [f"made-{n}" for n in range(WINDOWS_MAX + 2)]
    for n, topic in enumerate(topics):
        made(store, SEGMENTS[:1], topic, topic_id=f"{n:022d}")
    endpoint = over(store, bytes_max=len(topics) * 8 * WINDOW)
    with fetch_loop(endpoint) as loop:
        clients = {topic: LoopClient(endpoint, loop) for topic in topics}
        right = [the_long_way(endpoint, fetch(endpoint, n, topic=topics[0], max_bytes=SIZE)) for n in range(0, 300, 12)]
        for n, answer in zip(range(0, 300, 12), right, strict=True):
            for topic, client in clients.items():
                got = client.ask(fetch(endpoint, n, topic=topic, max_bytes=SIZE))
                assert got is not None
                assert answer is not None
                assert got.replace(topic.encode(), topics[0].encode()) == answer
        assert sum(client.by_loop for client in clients.values()) > len(topics)
