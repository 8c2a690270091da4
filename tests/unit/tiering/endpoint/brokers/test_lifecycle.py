"""Heartbeats, as a thread sends them."""

import pytest

from local_log.errors import LogError, Unavailable
from tiering.endpoint.brokers.lifecycle import TOLD_AGAIN_HEARTBEATS, BrokerLifecycle
from tiering.endpoint.brokers.live_brokers import Broker, LiveBrokers, alone

ME, OTHER = Broker(1, "here", 9092), Broker(2, "there", 9092)


class Heartbeats:
    """Brokers that are found alive one heartbeat after the other, or what goes wrong."""

    def __init__(self, *found: LiveBrokers | Exception) -> None:
        self._found = list(found)
        self.left = 0
        self.refusal: LogError | None = None

    def join(self, sleep: object) -> LiveBrokers:
        if self.refusal is not None:
            raise self.refusal
        return LiveBrokers(1, (ME,))

    def heartbeat(self) -> LiveBrokers:
        found = self._found.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    def leave(self) -> None:
        self.left += 1


@pytest.mark.parametrize("error", [Unavailable("no answer"), KeyError("a bug")])
def test_a_heartbeat_that_fails_is_reported_and_the_next_one_counts(error: Exception) -> None:
    both, said, cluster = LiveBrokers(1, (ME, OTHER)), list[str](), alone(ME)
    lifecycle = BrokerLifecycle(Heartbeats(error, both), said.append)
    lifecycle.beat(cluster)
    assert cluster.live.brokers == (ME,)
    assert "brokers that come or go are not noticed" in said[0]
    lifecycle.beat(cluster)
    assert cluster.live is both


def test_heartbeats_that_go_on_failing_are_told_once_a_minute_and_when_that_is_over() -> None:
    said, cluster = list[str](), alone(ME)
    failures = [Unavailable(f"no answer to request {number}") for number in range(TOLD_AGAIN_HEARTBEATS + 1)]
    lifecycle = BrokerLifecycle(Heartbeats(*failures, alone(ME).live, alone(ME).live), said.append)
    for _ in range(len(failures) + 2):
        lifecycle.beat(cluster)
    assert said == [
        "brokers that come or go are not noticed: no answer to request 0",
        f"brokers that come or go are not noticed: no answer to request {TOLD_AGAIN_HEARTBEATS}",
        "brokers that come or go are noticed again",
    ]


def test_a_broker_that_stops_leaves_once_it_has_joined_and_only_once() -> None:
    brokers = Heartbeats()
    lifecycle = BrokerLifecycle(brokers, print)
    lifecycle.stop()
    assert not brokers.left
    assert lifecycle.start(lambda _: None).live.brokers == (ME,)
    lifecycle.stop()
    lifecycle.stop()
    assert brokers.left == 1


def test_a_broker_that_cannot_join_leaves_nothing_behind() -> None:
    brokers = Heartbeats()
    brokers.refusal = Unavailable("no answer to the listing")
    lifecycle = BrokerLifecycle(brokers, print)
    with pytest.raises(Unavailable):
        lifecycle.start(lambda _: None)
    assert brokers.left == 1
