"""Fetches of a session over real logs: what they leave out, what they wait for, and what a topic's end does to them."""

import shutil
from pathlib import Path

import pytest
from asked_endpoint import Endpoint, response_of
from logs_to_archive import copy_of
from tiered_worlds import World

from local_log.formats.filenames import PARTITION_METADATA
from local_log.formats.partition_metadata import write_topic_id
from tiering.endpoint.apis.kafka_apis import Waits, answer_fetch, handle
from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse
from tiering.endpoint.protocol.requests import RequestHeader, write_request

NAMES = ("g-tiny", "g-txn")


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["local alone"], None)


def end_of(endpoint: Endpoint, name: str) -> int:
    topic = endpoint.context.logs.topic(name)
    assert topic is not None
    return topic.partitions[0].end_offset()


def request(endpoint: Endpoint, version: int, session: int, epoch: int, wait_ms: int = 0, **offsets: int) -> FetchRequest:
    """Asks for topics at offsets; `_` stands for the dash in their names."""
    topics = tuple(
        endpoint.topic(name.replace("_", "-"), version, FetchPartition(0, fetch_offset=at, partition_max_bytes=1 << 20))
        for name, at in offsets.items()
    )
    return FetchRequest(session_id=session, session_epoch=epoch, max_wait_ms=wait_ms, min_bytes=1, topics=topics)


def sizes(response: FetchResponse) -> list[int]:
    return [sum(map(len, one.records or ())) for topic in response.responses for one in topic.partitions]


@pytest.mark.parametrize("version", [7, 12, 13, 18])
def test_a_session_is_answered_what_is_new_to_it(endpoint: Endpoint, version: int) -> None:
    full = endpoint.ask(FETCH, version, request(endpoint, version, 0, 0, g_tiny=0, g_txn=0))
    assert full.session_id > 0
    assert all(sizes(full))
    ends = {name.replace("-", "_"): end_of(endpoint, name) for name in NAMES}
    nothing = endpoint.ask(FETCH, version, request(endpoint, version, full.session_id, 1, **ends))
    assert (nothing.error_code, nothing.session_id, nothing.responses) == (0, full.session_id, ())
    again = endpoint.ask(FETCH, version, request(endpoint, version, full.session_id, 2, g_tiny=0))
    assert sizes(again) == sizes(full)[:1]


def test_versions_before_sessions_have_none(endpoint: Endpoint) -> None:
    for version in range(7):
        endpoint.ask(FETCH, version, request(endpoint, version, 0, 0, g_tiny=0))
    assert len(endpoint.sessions) == 0


def test_a_fetch_of_a_session_that_waits_is_of_one_epoch(endpoint: Endpoint) -> None:
    ends = {name.replace("-", "_"): end_of(endpoint, name) for name in NAMES}
    session = endpoint.ask(FETCH, 12, request(endpoint, 12, 0, 0, **ends)).session_id
    for epoch in (1, 2):
        message = request(endpoint, 12, session, epoch, wait_ms=500)
        waiting = handle(write_request(RequestHeader(FETCH, 12, 99, None), message)[4:], endpoint.connection, endpoint.context)
        assert isinstance(waiting, Waits)
        assert answer_fetch(waiting, endpoint.context, may_wait=True) is waiting
        found = answer_fetch(waiting, endpoint.context, may_wait=False)
        assert not isinstance(found, Waits)
        assert response_of(FETCH, 12, b"".join(map(bytes, found))) == FetchResponse(session_id=session)


def test_what_nobody_knows_is_told_last_and_ends_no_wait(endpoint: Endpoint) -> None:
    asked = request(endpoint, 12, 0, 0, nowhere=0, g_tiny=0)
    answer = endpoint.ask(FETCH, 12, asked)
    assert [topic.topic for topic in answer.responses] == ["g-tiny", "nowhere"]
    end = end_of(endpoint, "g-tiny")
    assert endpoint.ask(FETCH, 12, request(endpoint, 12, 0, 0, wait_ms=500, nowhere=0, g_tiny=end)) is None
    assert endpoint.ask(FETCH, 12, request(endpoint, 12, 0, 0, wait_ms=500, nowhere=0)) is not None


def test_a_wish_for_more_bytes_than_an_answer_may_have_waits_for_no_more(endpoint: Endpoint) -> None:
    endpoint.configure("fetch.max.bytes=10000")
    for min_bytes, max_bytes, waits in ((20_000, 1 << 20, False), (20_000, 5_000, False)):
        one = endpoint.topic("g-txn", 12, FetchPartition(0, partition_max_bytes=1 << 20))
        asked = FetchRequest(max_wait_ms=500, min_bytes=min_bytes, max_bytes=max_bytes, topics=(one,))
        assert (endpoint.ask(FETCH, 12, asked) is None) == waits


def test_a_topic_that_was_created_anew_is_not_that_of_the_session(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    endpoint = Endpoint(folder, None)
    session = endpoint.ask(FETCH, 18, request(endpoint, 18, 0, 0, g_tiny=0)).session_id
    old = endpoint.topic("g-tiny", 18, FetchPartition(0))
    other = "N" * 21 + "A"
    shutil.rmtree(folder / "g-tiny-0")
    shutil.copytree(world.folders["local alone"] / "g-tiny-0", folder / "g-tiny-0")
    (folder / "g-tiny-0" / PARTITION_METADATA).write_bytes(write_topic_id(other))
    endpoint.clock.sleep(1)
    assert endpoint.fetch("g-tiny", 0, version=18).error_code == ErrorCode.NONE
    incremental = endpoint.ask(FETCH, 18, FetchRequest(session_id=session, session_epoch=1))
    assert [one.error_code for one in incremental.responses[0].partitions] == [ErrorCode.INCONSISTENT_TOPIC_ID]
    full = endpoint.ask(FETCH, 18, FetchRequest(topics=(old,)))
    assert full.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_TOPIC_ID
    assert endpoint.context.logs.name_of(other) == "g-tiny"
