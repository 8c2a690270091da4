"""Further ranges of an object are the first request again, and whatever is not such a range is as strictly refused as before."""

import os
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from s3_servers import Application, OneAtATime, serving

from local_log.errors import BadRange, NotFound, Unavailable
from remote.store.s3.client import once
from remote.store.s3.plain_connections import PlainConnections
from remote.store.s3.store import S3Store

BODY = bytes(range(256)) * 2_400
"""Larger than what is received without botocore's connections."""


class Watched(OneAtATime):
    """An S3 server that counts what is read, may break off in its midst, and may state a checksum of its own."""

    def __init__(self, application: Application) -> None:
        super().__init__(application)
        self.reads = 0
        self.breaks_off = False
        self.checksum: str | None = None

    def __call__(self, environ: Any, start_response: Any) -> list[bytes]:
        if environ["REQUEST_METHOD"] != "GET":
            return super().__call__(environ, start_response)
        self.reads += 1

        def start(status: str, headers: list[tuple[str, str]]) -> Any:
            return start_response(status, headers + ([("x-amz-checksum-crc32c", self.checksum)] if self.checksum else []))

        body = super().__call__(environ, start)
        return [part[: len(part) // 2] for part in body] if self.breaks_off else body


class Read:
    """A store, the server that it reads, and how many of its GETs botocore has made from their parameters."""

    def __init__(self, store: S3Store, server: Watched) -> None:
        self.store, self.server, self.made = store, server, 0
        store._client(once).meta.events.register("before-parameter-build.s3.GetObject", self._count)

    def _count(self, **_: Any) -> None:
        self.made += 1


@pytest.fixture
def read(s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Read]:
    servers: list[Watched] = []

    def watched(application: Application) -> Watched:
        servers.append(Watched(application))
        return servers[0]

    with serving(watched) as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        store = S3Store(s3_bucket, "some/prefix")
        store.put_if_absent("a key", BODY)
        yield Read(store, servers[0])


def test_one_request_reads_each_further_range_and_botocore_prepares_the_first_alone(read: Read) -> None:
    for start, end in ((0, 10), (5, 100_000), (len(BODY) - 1, len(BODY)), (3, 500_000), (0, len(BODY)), (7, 8)):
        assert read.store.get_range("a key", start, end) == BODY[start:end]
    assert (read.server.reads, read.made) == (6, 1)


def test_a_proxy_is_asked_for_large_ranges_too(read: Read, s3_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", os.environ["AWS_ENDPOINT_URL"])  # to which the server is its own proxy
    monkeypatch.setattr(PlainConnections, "get", None)
    store = S3Store(s3_bucket, "some/prefix")
    for start, end in ((0, 1), (3, 500_000)):
        assert store.get_range("a key", start, end) == BODY[start:end]


def test_a_copy_for_another_process_begins_anew(read: Read) -> None:
    read.store.get_range("a key", 0, 1)
    copied = pickle.loads(pickle.dumps(read.store))
    assert [copied.get_range("a key", at, at + 3) for at in (1, 2)] == [BODY[1:4], BODY[2:5]]


@pytest.mark.parametrize("end", [1, 400_000])
def test_an_object_that_has_gone_is_not_found_and_one_that_came_back_is_read(read: Read, end: int) -> None:
    read.store.get_range("a key", 0, 1)
    read.store.delete("a key")
    for _ in range(2):
        with pytest.raises(NotFound):
            read.store.get_range("a key", 0, end)
    read.store.put_if_absent("a key", BODY)
    assert read.store.get_range("a key", 1, 3) == BODY[1:3]


@pytest.mark.parametrize("start", [len(BODY) - 10, len(BODY), len(BODY) + 10])
@pytest.mark.parametrize("size", [20, 400_000])
def test_a_further_range_past_the_end_is_a_bad_range(read: Read, start: int, size: int) -> None:
    read.store.get_range("a key", 0, 1)
    with pytest.raises(BadRange):
        read.store.get_range("a key", start, start + size)


@pytest.mark.parametrize("end", [90_000, 500_000])
def test_a_further_range_that_breaks_off_is_unavailable_and_sent_once(read: Read, end: int) -> None:
    read.store.get_range("a key", 0, 1)
    read.server.breaks_off = True
    with pytest.raises(Unavailable):
        read.store.get_range("a key", 10, end)
    assert read.server.reads == 2


@pytest.mark.parametrize("end", [20, 500_000])
def test_a_further_range_that_is_not_what_its_checksum_says_is_unavailable(read: Read, end: int) -> None:
    read.store.get_range("a key", 0, 1)
    read.server.checksum = "4waSgw=="  # of 123456789
    with pytest.raises(Unavailable, match="checksum"):
        read.store.get_range("a key", 10, end)


@pytest.mark.parametrize("end", [2, 500_000])
def test_a_server_that_nobody_reaches_any_more_is_unavailable(read: Read, end: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as url:
        monkeypatch.setenv("AWS_ENDPOINT_URL", url)
        store = S3Store(read.store.bucket, "some/prefix")
        assert store.get_range("a key", 0, 2) == BODY[:2]
    with pytest.raises(Unavailable, match="check AWS_ENDPOINT_URL and the network"):
        store.get_range("a key", 1, end)
