"""Clients that have used up their quota are answered with nothing and the time to wait for, and are not read meanwhile."""

import socket
import time
from dataclasses import replace

import pytest
from asked_endpoint import Endpoint, response_of
from served_endpoint import served
from tiered_worlds import World

from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest
from tiering.endpoint.protocol.requests import RequestHeader, write_request
from tiering.endpoint.quotas.client_quotas import ClientQuotas


@pytest.fixture
def endpoint(world: World) -> Endpoint:
    return Endpoint(world.folders["some archived dropped"], world.store)


def asked(endpoint: Endpoint, version: int, **session: int) -> FetchRequest:
    topic = endpoint.topic("g-txn", version, FetchPartition(0, partition_max_bytes=1 << 20))
    return FetchRequest(max_bytes=1 << 30, topics=(topic,), **session)


@pytest.mark.parametrize("version", [4, 11, 18])
def test_a_client_above_its_quota_is_told_when_to_come_again(endpoint: Endpoint, version: int) -> None:
    request = asked(endpoint, version, session_id=0, session_epoch=-1)
    whole = endpoint.ask(FETCH, version, request)
    size = sum(map(len, whole.responses[0].partitions[0].records))
    endpoint.context = replace(endpoint.context, quotas=ClientQuotas({("ANONYMOUS", None): size // 10}))
    first = endpoint.ask(FETCH, version, request)
    assert first.throttle_time_ms == 0
    assert 0 < sum(map(len, first.responses[0].partitions[0].records)) <= size
    second = endpoint.ask(FETCH, version, request)
    assert (second.responses, second.error_code, 5_000 < second.throttle_time_ms < 11_000) == ((), 0, True)
    endpoint.clock.now += 11_000
    assert endpoint.ask(FETCH, version, request).throttle_time_ms == 0


def test_a_session_goes_on_after_a_throttled_fetch_and_none_begins_with_one(endpoint: Endpoint) -> None:
    begun = endpoint.ask(FETCH, 11, asked(endpoint, 11, session_id=0, session_epoch=0))
    assert begun.session_id
    endpoint.context = replace(endpoint.context, quotas=ClientQuotas({("ANONYMOUS", None): 1}))
    again = asked(endpoint, 11, session_id=begun.session_id, session_epoch=1)
    throttled = endpoint.ask(FETCH, 11, again)
    assert (throttled.session_id, throttled.responses, throttled.throttle_time_ms > 0) == (begun.session_id, (), True)
    new = endpoint.ask(FETCH, 11, asked(endpoint, 11, session_id=0, session_epoch=0))
    assert (new.session_id, new.throttle_time_ms > 0) == (0, True)
    endpoint.context = replace(endpoint.context, quotas=None)
    third = endpoint.ask(FETCH, 11, replace(again, session_epoch=2))
    assert (third.error_code, third.session_id, bool(third.responses)) == (0, begun.session_id, True)


def test_nothing_more_is_answered_before_the_time_is_over(endpoint: Endpoint) -> None:
    request = write_request(RequestHeader(FETCH, 11, 99, "test"), asked(endpoint, 11, session_id=0, session_epoch=-1))
    whole = endpoint.ask(FETCH, 11, asked(endpoint, 11, session_id=0, session_epoch=-1))
    size = sum(map(len, whole.responses[0].partitions[0].records))
    bound = int(size * 2 / 10.3)  # with the second answer the rate of ten seconds is 3 percent above it
    endpoint.context = replace(endpoint.context, quotas=ClientQuotas({("ANONYMOUS", None): bound}))
    with served(endpoint) as address, socket.create_connection(address, timeout=20) as client:
        client.sendall(request * 3)
        data, answers = bytearray(), list[tuple[float, int]]()
        while len(answers) < 3:
            data += client.recv(1 << 20)
            while len(data) >= 4 and len(data) >= 4 + int.from_bytes(data[:4], "big"):
                end = 4 + int.from_bytes(data[:4], "big")
                answers.append((time.monotonic(), response_of(FETCH, 11, bytes(data[:end])).throttle_time_ms))
                del data[:end]
    (_, first_ms), (second_s, second_ms), (third_s, _) = answers
    assert (first_ms, 250 < second_ms < 350) == (0, True)
    assert third_s - second_s > 0.2
