"""Brokers of a fixed list."""

from tiering.endpoint.brokers.listed_brokers import FAILURES_MAX, ListedBrokers
from tiering.endpoint.brokers.live_brokers import Broker


def test_a_broker_is_alive_from_when_it_is_reached_until_it_was_not_several_times() -> None:
    reached = {2: True, 3: False}
    me, *others = (Broker(node_id, f"host-{node_id}", 9092) for node_id in (1, 2, 3))
    brokers = ListedBrokers(me, others, lambda broker: reached[broker.node_id])

    def alive() -> list[int]:
        return [one.node_id for one in brokers.heartbeat().brokers]

    assert [one.node_id for one in brokers.join(lambda _: None).brokers] == [1, 2]
    reached |= {2: False, 3: True}
    assert [alive() for _ in range(FAILURES_MAX)] == [[1, 2, 3]] * (FAILURES_MAX - 1) + [[1, 3]]
    reached[2] = True
    assert alive() == [1, 2, 3]
