"""What members of consumer groups and those who look after these may ask where ACLs say who may do what."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asked_by_alice import MINE, OTHER, as_admin, endpoint_of_alice
from asked_endpoint import Endpoint
from tiered_worlds import World

from tiering.endpoint.authorization.authorizer import KafkaPrincipal
from tiering.endpoint.protocol.api_keys import CONSUMER_GROUP_DESCRIBE, CONSUMER_GROUP_HEARTBEAT
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest


@pytest.fixture
def endpoint(world: World, tmp_path: Path) -> Endpoint:
    return endpoint_of_alice(world, tmp_path)


def join(endpoint: Endpoint, *topics: str, group: str = "mine-1", member_id: str = "one", **more: Any) -> Any:
    said = {"rebalance_timeout_ms": 1_000, "subscribed_topic_names": topics, "topic_partitions": (), **more}
    return endpoint.ask(CONSUMER_GROUP_HEARTBEAT, 1, ConsumerGroupHeartbeatRequest(group, member_id, **said))


def describe(endpoint: Endpoint, *groups: str) -> Any:
    return endpoint.ask(CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(groups)).groups


def test_a_member_needs_its_group_and_its_topics(endpoint: Endpoint) -> None:
    assert join(endpoint, MINE).error_code == 0
    assert join(endpoint, MINE, group="theirs").error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
    assert join(endpoint, MINE, OTHER, member_id="two").error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert endpoint.context.metrics.denied.all() == {("READ", "GROUP"): 1, ("DESCRIBE", "TOPIC"): 1}
    assert len(describe(endpoint, "mine-1")[0].members) == 1


def test_an_expression_names_only_the_topics_that_the_client_may_describe(endpoint: Endpoint) -> None:
    joined = join(endpoint, subscribed_topic_names=(), subscribed_topic_regex=".*")
    assert joined.error_code == 0
    beat = ConsumerGroupHeartbeatRequest("mine-1", "one", joined.member_epoch)
    (topic,) = endpoint.ask(CONSUMER_GROUP_HEARTBEAT, 1, beat).assignment.topic_partitions
    assert endpoint.context.logs.name_of(topic.topic_id) == MINE
    assert endpoint.context.metrics.denied.all() == {}, "the client has asked for none of the others"


def test_groups_are_described_to_those_who_may_know_them_and_their_topics(endpoint: Endpoint) -> None:
    join(endpoint, MINE)
    assert [one.error_code for one in describe(endpoint, "mine-1", "theirs")] == [ErrorCode.GROUP_AUTHORIZATION_FAILED, 0]
    join(as_admin(endpoint), OTHER, group="mine-2")
    assert describe(endpoint, "mine-2")[0].members[0].assignment.topic_partitions[0].topic_name == OTHER
    endpoint.connection = replace(endpoint.connection, principal=KafkaPrincipal("alice"))
    (hidden,) = describe(endpoint, "mine-2")
    assert (hidden.error_code, hidden.members) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ())
    assert hidden.error_message == "The group has described topic(s) that the client is not authorized to describe."
