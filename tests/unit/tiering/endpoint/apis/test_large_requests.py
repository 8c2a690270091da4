"""Requests with many elements take a time that grows with their number, not its square: no client must stop the others."""

from typing import Any

import pytest
from asked_endpoint import Endpoint
from tiered_worlds import World

from local_log.os_disk import OsWritableDisk
from tiering.endpoint.apis.authorized import RULES
from tiering.endpoint.apis.kafka_apis import _ANSWERS
from tiering.endpoint.authorization.acl_file import AclFile
from tiering.endpoint.authorization.acls import Acl, Operation, PatternType, ResourceType
from tiering.endpoint.authorization.authorizer import AclIndex, Authorizer
from tiering.endpoint.protocol.api_keys import (
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    Api,
)
from tiering.endpoint.protocol.messages.delete_groups import DeleteGroupsRequest
from tiering.endpoint.protocol.messages.describe_groups import DescribeGroupsRequest
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
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
    acls = AclFile(OsWritableDisk(), "acls.json", endpoint.clock, Authorizer(index), endpoint.said.append)
    object.__setattr__(endpoint.context, "acls", acls)
    request_context = RequestContext(RequestHeader(api, version, 1, "test"), endpoint.connection)
    before = CountedName.compared
    RULES[api.key](_ANSWERS[api.key], message, request_context, endpoint.context)
    assert CountedName.compared - before <= 20 * COUNT
