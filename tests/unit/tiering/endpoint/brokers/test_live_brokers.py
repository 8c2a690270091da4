"""Which broker leads a partition."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tiering.endpoint.brokers.live_brokers import Broker, LiveBrokers

PARTITIONS = [("orders", number) for number in range(3_000)]


def brokers(*ids: int) -> tuple[Broker, ...]:
    return tuple(Broker(node_id, f"host-{node_id}", 9092) for node_id in ids)


def leaders(node_id: int, *ids: int) -> dict[tuple[str, int], int]:
    live = LiveBrokers(node_id, brokers(*ids))
    return {one: live.leader_of(*one) for one in PARTITIONS}


@given(st.permutations([1, 2, 7]))
def test_every_broker_names_the_same_leaders_whatever_the_order_in_which_it_met_the_others(order: list[int]) -> None:
    one, other = LiveBrokers(order[0], brokers(*order)), LiveBrokers(1, brokers(1, 2, 7))
    assert [one.leader_of("orders", n) for n in range(50)] == [other.leader_of("orders", n) for n in range(50)]


def test_partitions_are_spread_evenly() -> None:
    counts = Counter(leaders(1, 1, 2, 3).values())
    assert counts.keys() == {1, 2, 3}
    assert min(counts.values()) > 900


def test_a_broker_that_goes_gives_its_partitions_to_the_others_and_moves_no_other_partition() -> None:
    before, after = leaders(1, 1, 2, 3), leaders(1, 1, 3)
    assert {before[one] for one in PARTITIONS if before[one] != after[one]} == {2}
    assert 2 not in after.values()


def test_one_broker_leads_everything() -> None:
    assert all(LiveBrokers(5, brokers(5)).leads(*one) for one in PARTITIONS[:10])
