import sys
from collections import Counter
from typing import Any

import pytest
from asked_endpoint import Endpoint, bytes_of, response_of
from tiered_worlds import World

from tiering.endpoint.apis.freeing import STEP, free
from tiering.endpoint.apis.kafka_apis import handle
from tiering.endpoint.protocol.api_keys import FETCH
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, PartitionData
from tiering.endpoint.protocol.requests import RequestHeader, write_request

COUNT = 3 * STEP + 10


class Counted:
    """Notes how many are left in a list when it is freed."""

    def __init__(self, items: list[Any], lengths: Counter[int]) -> None:
        self.items, self.lengths = items, lengths

    def __del__(self) -> None:
        self.lengths[len(self.items)] += 1


def test_a_large_list_is_freed_in_steps() -> None:
    items, lengths = list[Any](), Counter[int]()
    items += [Counted(items, lengths) for _ in range(COUNT)]
    free(items)
    assert lengths == {2 * STEP + 10: STEP, STEP + 10: STEP, 10: STEP, 0: 10}


def test_a_dict_is_freed_likewise() -> None:
    items = {number: object() for number in range(COUNT)}
    free(items)
    assert items == {}


def test_what_a_fetch_of_many_partitions_finds_is_freed_in_steps(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits for Python meanwhile gets it between two steps."""
    where: Counter[str] = Counter()

    def freed(_: object) -> None:
        where[sys._getframe(1).f_code.co_name] += 1

    endpoint = Endpoint(world.folders["local alone"], None)
    partitions = tuple(FetchPartition(number, partition_max_bytes=1) for number in range(COUNT))

    def ask(message: FetchRequest) -> bytes:
        found = handle(write_request(RequestHeader(FETCH, 11, 99, "t"), message)[4:], endpoint.connection, endpoint.context)
        assert isinstance(found, list)
        return b"".join(map(bytes_of, found))

    begun = response_of(FETCH, 11, ask(FetchRequest(session_epoch=0, topics=(FetchTopic("nope", partitions=partitions),))))
    monkeypatch.setattr(PartitionData, "__del__", freed, raising=False)
    answer = ask(FetchRequest(session_id=begun.session_id, session_epoch=1))
    assert len(answer) > COUNT
    assert where["free"] >= COUNT
    assert where.total() - where["free"] < STEP
