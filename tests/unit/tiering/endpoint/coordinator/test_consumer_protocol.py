"""What consumers of the classic protocol say and are assigned, in every version."""

import pytest
from mixed_members import assignment, subscription

from local_log.errors import Corrupt
from tiering.endpoint.coordinator.consumer_protocol import (
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    TopicPartition,
    read_assignment,
    read_subscription,
    subscribed_topics,
    version_of,
    write_assignment,
)

HAS = {"orders": frozenset({0, 2})}


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_has_what_its_version_has(version: int) -> None:
    found = read_subscription(subscription("orders", "payments", version=version, has=HAS, rack="a"))
    assert found == ConsumerProtocolSubscription(
        ("orders", "payments"),
        owned_partitions=(TopicPartition("orders", (0, 2)),) if version >= 1 else (),
        generation_id=7 if version >= 2 else -1,
        rack_id="a" if version >= 3 else None,
    )


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_written_as_it_is_read(version: int) -> None:
    data = assignment(version, orders={0, 2}, payments={1})
    assert write_assignment({"payments": [1], "orders": [2, 0]}, version) == data
    of = (TopicPartition("orders", (0, 2)), TopicPartition("payments", (1,)))
    assert read_assignment(data) == ConsumerProtocolAssignment(of)
    assert read_assignment(assignment(version, b"mine")).user_data == b"mine"


def test_a_later_version_is_read_as_the_last_one_that_is_known() -> None:
    data = b"\x00\x09" + subscription("orders", version=3, rack="a")[2:] + b"more"
    assert (version_of(data), read_subscription(data).rack_id) == (3, "a")


@pytest.mark.parametrize("version", range(4))
def test_what_is_cut_off_or_of_no_version_is_corrupt(version: int) -> None:
    whole = subscription("orders", version=version, has=HAS, rack="a")
    for end in range(len(whole)):
        with pytest.raises(Corrupt):
            read_subscription(whole[:end])
    given = assignment(version, orders={0, 2})
    for end in range(len(given)):
        with pytest.raises(Corrupt):
            read_assignment(given[:end])
    with pytest.raises(Corrupt):
        read_subscription(b"\xff\xff" + whole[2:])


def test_the_topics_of_any_version_are_told_without_what_comes_after_them() -> None:
    assert subscribed_topics(b"\x7f\xff" + subscription("orders", version=0)[2:]) == {"orders"}
