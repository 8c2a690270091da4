"""Members that subscribe by a regular expression: which topics that are, when they are looked for, and who may know them."""

import pytest
from consumer_members import SESSION_MS, Consumers

from tiering.endpoint.coordinator.modern.regular_expressions import is_valid, matching
from tiering.endpoint.protocol.errors import ErrorCode

TWO = frozenset({0, 1})


@pytest.fixture
def group() -> Consumers:
    return Consumers({"orders": 2, "payments": 2, "internal": 2})


def test_a_name_is_matched_from_beginning_to_end_whatever_the_expression_has_in_it() -> None:
    names = ("orders", "orders-2", "my-orders", "ORDERS", "a|b")
    assert matching("orders", names) == {"orders"}
    assert matching("orders|my-orders", names) == {"orders", "my-orders"}
    assert matching("(?i)orders", names) == {"orders", "ORDERS"}
    assert matching("or", names) == frozenset()
    assert matching(r"a\|b", names) == {"a|b"}
    assert matching(".*", ()) == frozenset()


def test_what_re2_does_not_understand_is_no_expression() -> None:
    assert not any(map(is_valid, ("(", "a)(b", "*", r"(a)\1", "(?=a)", "[")))
    assert matching("a)(b", ("ab",)) == frozenset()


def test_an_expression_that_keeps_others_busy_takes_no_time() -> None:
    names = tuple("a" * 200 + str(number) for number in range(1_000))
    assert matching("(a*)*b", names) == frozenset()


def test_the_topics_are_looked_for_after_the_first_heartbeat_and_assigned_at_the_next(group: Consumers) -> None:
    one = group.joined("one", regex="orders|pay.*")
    assert (one.code, one.epoch, one.has) == (0, 1, {}), "as on a broker, which looks for them meanwhile"
    assert group.group.resolved["orders|pay.*"].topics == {"orders", "payments"}
    assert group.beat(one).has == {"orders": TWO, "payments": TWO}
    assert one.epoch == group.group.epoch == 2


def test_an_expression_that_others_have_is_not_looked_for_again(group: Consumers) -> None:
    one = group.joined("one", regex="orders")
    group.settled(one)
    kept = len(group.log.kept)
    two = group.joined("two", regex="orders")
    assert two.epoch == 3
    assert not any(found.record.key[:2] == b"\0\x10" for found in group.log.kept[kept:])
    assert sorted(sum(map(len, has.values())) for has in group.settled(one, two)) == [1, 1]


def test_what_is_no_expression_is_refused_and_changes_nothing(group: Consumers) -> None:
    refused = group.joined("one", regex="(")
    assert refused.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert refused.said == "SubscribedTopicRegex `(` is not a valid regular expression."
    assert group.listed() == []


def test_another_expression_takes_the_place_of_the_former_one(group: Consumers) -> None:
    one = group.joined("one", regex="orders")
    group.settled(one)
    group.later(10_001)
    group.beat(one, subscribed_topic_regex="payments")
    assert group.settled(one) == [{"payments": TWO}]
    assert list(group.group.resolved) == ["payments"]
    group.beat(one, subscribed_topic_regex="", subscribed_topic_names=("orders",))
    assert group.settled(one) == [{"orders": TWO}]
    assert (group.group.resolved, group.group.regexes) == ({}, {})


def test_topics_are_looked_for_at_most_once_in_ten_seconds(group: Consumers) -> None:
    one = group.joined("one", regex="orders")
    group.settled(one)
    two = group.joined("two", regex="payments")
    assert group.settled(one, two) == [{"orders": TWO}, {}]
    group.later(10_001)
    assert group.settled(one, two) == [{"orders": TWO}, {"payments": TWO}]


def test_topics_are_looked_for_although_the_clock_is_set_back(group: Consumers) -> None:
    one = group.joined("one", regex="orders")
    group.settled(one)
    group.clock.set_by_ms = -3_600_000
    two = group.joined("two", regex="payments")
    assert group.settled(one, two) == [{"orders": TWO}, {"payments": TWO}]


def test_new_topics_are_found_and_others_left_alone(group: Consumers) -> None:
    one = group.joined("one", regex="new.*")
    assert group.settled(one) == [{}]
    group.topics.made["new-1"] = 1
    group.later(5_000)
    assert group.settled(one) == [{}], "not so soon"
    group.later(5_001)
    assert group.settled(one) == [{"new-1": frozenset({0})}]
    kept = len(group.log.kept)
    group.later(20_000)
    group.settled(one)
    assert len(group.log.kept) == kept, "there is nothing new"


def test_expressions_are_looked_for_again_after_the_interval(group: Consumers) -> None:
    one = group.joined("one", regex="orders|payments")
    group.settled(one)
    group.hidden.add("payments")
    for _ in range(20):
        group.later(30_000)
        group.beat(one)
    assert group.settled(one) == [{"orders": TWO, "payments": TWO}]
    group.later(1)
    assert group.settled(one) == [{"orders": TWO}], "what a client may no longer know is given up then"


def test_topics_that_a_client_may_not_know_are_not_found(group: Consumers) -> None:
    group.hidden.add("internal")
    one = group.joined("one", regex=".*")
    assert group.settled(one) == [{"orders": TWO, "payments": TWO}]


def test_an_expression_and_names_may_be_subscribed_together(group: Consumers) -> None:
    one = group.joined("one", "internal", regex="orders")
    assert group.settled(one) == [{"internal": TWO, "orders": TWO}]
    two = group.joined("two", "orders")
    assert [sum(map(len, has.values())) for has in group.settled(one, two)] == [2, 2]


def test_an_expression_is_forgotten_with_the_last_member_that_has_it(group: Consumers) -> None:
    one, two = group.joined("one", regex="orders"), group.joined("two", regex="orders")
    group.settled(one, two)
    group.gone(one)
    assert list(group.group.resolved) == ["orders"]
    group.later(SESSION_MS)
    assert (group.group.resolved, group.group.subscribed) == ({}, frozenset())
    group.started()
    assert group.group.resolved == {}


def test_an_expression_is_found_again_after_a_restart(group: Consumers) -> None:
    one = group.joined("one", regex="orders")
    group.settled(one)
    group.started()
    assert group.settled(one) == [{"orders": TWO}]
    assert group.group.epoch == 2


def test_a_static_member_may_come_back_with_another_expression(group: Consumers) -> None:
    one = group.joined("one", regex="orders", instance_id="i")
    group.settled(one)
    group.gone(one, -2, instance_id="i")
    group.later(10_001)
    back = group.joined("two", regex="payments", instance_id="i")
    assert back.code == 0
    for _ in range(3):
        group.beat(back, instance_id="i")
    assert back.has == {"payments": TWO}
    assert list(group.group.resolved) == ["payments"]
