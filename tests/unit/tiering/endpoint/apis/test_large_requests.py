"""Requests with many elements take a time that grows with their number, not its square: no client must stop the others."""

from typing import Any

import pytest
from asked_endpoint import Endpoint
from tiered_worlds import World

from local_log.errors import Invalid
from local_log.os_disk import OsDisk, OsWritableDisk
from tiering.endpoint.apis.authorized import RULES
from tiering.endpoint.apis.kafka_apis import _ANSWERS
from tiering.endpoint.authorization.acl_file import AclFile
from tiering.endpoint.authorization.acls import Acl, Operation, PatternType, ResourceType
from tiering.endpoint.authorization.authorizer import AclIndex, Authorizer
from tiering.endpoint.protocol.api_keys import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    DESCRIBE_PRODUCERS,
    FETCH,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    Api,
)
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.protocol.messages.delete_groups import DeleteGroupsRequest
from tiering.endpoint.protocol.messages.describe_groups import DescribeGroupsRequest
from tiering.endpoint.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from tiering.endpoint.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tiering.endpoint.protocol.requests import RequestHeader
from tiering.endpoint.request_context import RequestContext

COUNT = 300


class CountedName(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return str.__eq__(self, other)


NAMES = tuple(CountedName(f"{kind}-{number}") for kind in ("mine", "other") for number in range(COUNT // 2))
REQUESTS: list[tuple[Api, int, Any]] = [
    (LIST_OFFSETS, 11, ListOffsetsRequest(topics=tuple(ListOffsetsTopic(n, (ListOffsetsPartition(0),)) for n in NAMES))),
    (FIND_COORDINATOR, 6, FindCoordinatorRequest(coordinator_keys=NAMES)),
    (DESCRIBE_GROUPS, 6, DescribeGroupsRequest(NAMES)),
    (DELETE_GROUPS, 2, DeleteGroupsRequest(NAMES)),
]


@pytest.mark.parametrize(("api", "version", "message"), REQUESTS, ids=[api.name for api, _, _ in REQUESTS])
def test_names_are_not_compared_with_all_others(world: World, api: Api, version: int, message: Any) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    kinds = (ResourceType.TOPIC, ResourceType.GROUP)
    index = AclIndex(Acl(of, "mine-", "User:*", Operation.ALL, pattern_type=PatternType.PREFIXED) for of in kinds)
    acls = AclFile(OsDisk(), OsWritableDisk(), "acls.json", endpoint.clock, Authorizer(index), endpoint.said.append)
    object.__setattr__(endpoint.context, "acls", acls)
    request_context = RequestContext(RequestHeader(api, version, 1, "test"), endpoint.connection)
    before = CountedName.compared
    RULES[api.key](_ANSWERS[api.key], message, request_context, endpoint.context)
    assert CountedName.compared - before <= 20 * COUNT


@pytest.mark.parametrize("count", [10, 11])
def test_a_request_of_more_elements_than_memory_has_room_for_is_refused(world: World, count: int) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    endpoint.configure("queued.max.request.bytes=6000")
    for api, version, message in (
        (METADATA, 9, MetadataRequest(topics=(MetadataRequestTopic(name="t"),) * count)),
        (FETCH, 11, FetchRequest(topics=(FetchTopic("t", partitions=(FetchPartition(),) * (count - 1)),))),
    ):
        if count == 10:
            assert endpoint.ask(api, version, message)
        else:
            with pytest.raises(InvalidRequest, match="more than 10 array elements, for which"):
                endpoint.ask(api, version, message)


def test_all_segments_are_told_so_often_at_most(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)

    def codes(count: int) -> list[int]:
        asked = ListOffsetsTopic("g-mixed", (ListOffsetsPartition(0, timestamp=1 << 60, max_num_offsets=1 << 30),) * count)
        found = endpoint.ask(LIST_OFFSETS, 0, ListOffsetsRequest(-1, topics=(asked,))).topics[0].partitions
        sizes.append([len(one.old_style_offsets) for one in found])
        return [one.error_code for one in found]

    sizes = list[list[int]]()
    assert codes(1) == [0]
    monkeypatch.setattr("tiering.endpoint.apis.offsets.OFFSETS_MAX", 3 * sizes[0][0])
    assert codes(4) == [0, 0, ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]
    assert sizes[1] == [sizes[0][0]] * 2 + [0, 0]


@pytest.mark.parametrize(
    ("api", "version", "message"),
    [
        (DESCRIBE_GROUPS, 5, DescribeGroupsRequest(("one", "other", "one"))),
        (OFFSET_FETCH, 8, OffsetFetchRequest(groups=tuple(OffsetFetchRequestGroup(g, topics=None) for g in ("a", "b", "a")))),
        (DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(tuple(TopicRequest(n, (0,)) for n in ("g-txn", "g-mixed", "g-txn")))),
    ],
    ids=str,
)
def test_what_is_asked_for_again_is_described_once(world: World, api: Api, version: int, message: Any) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    context = RequestContext(RequestHeader(api, version, 1, "test"), endpoint.connection)
    found = _ANSWERS[api.key](message, context, endpoint.context)
    first, _, again = found.topics if api is DESCRIBE_PRODUCERS else found.groups
    assert first == again
    if api is DESCRIBE_PRODUCERS:
        (first,), (again,) = first.partitions, again.partitions
    assert first is again


def test_an_answer_that_grows_too_large_is_not_written(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiering.endpoint.protocol.writing.WRITTEN_BYTES_MAX", 1000)
    endpoint = Endpoint(world.folders["local alone"], None)
    endpoint.ask(DESCRIBE_GROUPS, 5, DescribeGroupsRequest(("a",) * 10))
    with pytest.raises(Invalid, match="the answer has more than 1000 bytes: ask for less at a time"):
        endpoint.ask(DESCRIBE_GROUPS, 5, DescribeGroupsRequest(("a" * 100,) * 10))
