"""What a user may do, by any ACLs, and who one is by any tokens: on a broker as on endpoints."""

import time
from dataclasses import replace
from typing import Any

from any_requests import any_message, of_acls, of_groups, of_rights
from compared_brokers import World
from compared_logins import Word, compare_login, logins
from compared_requests import EACH, Values, any_request, for_any, unknown
from hypothesis import strategies as st

from tiering.endpoint.protocol.api_keys import CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS, Api
from tiering.endpoint.protocol.messages.acls import AclCreation, CreateAclsRequest, DeleteAclsFilter, DeleteAclsRequest
from tiering.endpoint.protocol.messages.acls import DescribeAclsRequest as Asked

_ANY = 1
_ALL = {"operation": _ANY, "permission_type": _ANY, "principal_filter": None, "host_filter": None, "resource_name_filter": None}
_PATIENCE_S = 5.0


def of_security(world: World) -> Values:
    """The values of fields of ACLs."""
    return world.facts.values() | of_acls((*world.facts.topics,))


def compare_acls(world: World) -> None:
    """Any changes of ACLs, and what is asked about them."""
    apis = (CREATE_ACLS, CREATE_ACLS, DELETE_ACLS, DESCRIBE_ACLS)
    values = of_security(world)
    made = st.sampled_from(apis).flatmap(
        lambda api: st.tuples(st.just(api), any_request(api, range(api.first, api.last + 1), values))
    )

    def ask(asked: tuple[Api, tuple[int, Any]]) -> None:
        api, request = asked
        differences = unknown(world.compare(api, *request), world)
        assert not differences, (asked, differences)
        wait_for_equal_acls(world)

    for_any(made, ask)


def compare_as_user(world: World, apis: tuple[Api, ...], versions: dict[Api, range]) -> None:
    """Any requests of somebody who may do what any ACLs say."""
    values = world.facts.values() | of_groups()
    of_topics = any_message(AclCreation, 3, world.facts.values() | of_rights((*world.facts.topics,)))
    of_cluster = of_topics.map(lambda acl: replace(acl, resource_type=4, resource_pattern_type=3, resource_name="kafka-cluster"))
    acls = st.lists(st.one_of(of_topics, of_topics, of_cluster), max_size=8).map(tuple)
    requests = st.sampled_from(apis).flatmap(lambda api: st.tuples(st.just(api), any_request(api, versions[api], values)))
    everything = DeleteAclsRequest((DeleteAclsFilter(_ANY, pattern_type_filter=_ANY, **_ALL),))

    with world.acting_as("alice") as alice:

        def ask(asked: tuple[tuple[AclCreation, ...], list[tuple[Api, tuple[int, Any]]]]) -> None:
            world.compare(DELETE_ACLS, 3, everything)
            wait_for_equal_acls(world)
            world.compare(CREATE_ACLS, 3, CreateAclsRequest(asked[0]))
            wait_for_equal_acls(world)
            for api, request in asked[1]:
                differences = unknown(alice.compare(api, *request), alice)
                assert not differences, (asked[0], api.name, request, differences)

        for_any(st.tuples(acls, st.lists(requests, min_size=10, max_size=30)), ask, max(5, EACH // 10))
        world.compare(DELETE_ACLS, 3, everything)


def wait_for_equal_acls(world: World) -> None:
    """A broker learns of ACLs from its controller, a moment after these are made."""
    deadline = time.monotonic() + _PATIENCE_S
    asked = Asked(_ANY, pattern_type_filter=_ANY, **_ALL)
    while found := unknown(world.compare(DESCRIBE_ACLS, 3, asked), world):
        assert time.monotonic() < deadline, found
        time.sleep(0.002)


def compare_logins(world: World) -> None:
    """Any clients that say who they are."""

    def ask(words: list[Word]) -> None:
        differences = unknown(list(compare_login(words, world.sasl[:2])), world)
        assert not differences, ([(api.name, version, said) for api, version, said in words], differences)

    for_any(logins(), ask)
