"""Brokers that know of each other by the objects that they write to the archive."""

import pytest
from archive_fakes import CallNumber, CountingIds, FailsBefore, MemoryStore

from local_log.errors import Invalid, Unavailable
from remote.keys import BROKERS
from tiering.endpoint.brokers import registered_brokers
from tiering.endpoint.brokers.live_brokers import Broker
from tiering.endpoint.brokers.registered_brokers import FORGET_HEARTBEATS, OWN_MAX, SESSION_HEARTBEATS, RegisteredBrokers


class DeniesDeletions(MemoryStore):
    """As a bucket does whose policy allows none."""

    is_denying = True

    def delete(self, key: str) -> None:
        if self.is_denying:
            raise Invalid(f"{key}: AccessDenied")
        super().delete(key)


class Machines:
    """Brokers on one store, and what they reported."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        self.said: list[str] = []
        self.slept: list[float] = []
        self._ids = CountingIds()

    def broker(self, node_id: int, host: str = "") -> RegisteredBrokers:
        me = Broker(node_id, host or f"host-{node_id}", 9092)
        return RegisteredBrokers(self.store, me, self._ids.new_id(), self.said.append)

    def joined(self, node_id: int, host: str = "") -> RegisteredBrokers:
        broker = self.broker(node_id, host)
        broker.join(self.slept.append)
        return broker

    def keys(self) -> list[str]:
        return [meta.key for meta in self.store.list(BROKERS)]


def alive(broker: RegisteredBrokers) -> list[int]:
    return [one.node_id for one in broker.heartbeat().brokers]


@pytest.fixture
def machines() -> Machines:
    return Machines()


def test_a_broker_alone_sees_itself_and_keeps_one_object(machines: Machines) -> None:
    one = machines.joined(1)
    assert [alive(one) for _ in range(3)] == [[1]] * 3
    assert len(machines.keys()) == 1


def test_a_broker_that_comes_is_seen_by_the_next_heartbeat_of_each(machines: Machines) -> None:
    one, two = machines.joined(1), machines.joined(2)
    assert alive(one) == [1, 2]
    assert alive(two) == [1, 2]  # the other one's number has changed since the first look
    assert two.heartbeat().brokers[0] == Broker(1, "host-1", 9092)


def test_a_broker_that_leaves_is_gone_at_once(machines: Machines) -> None:
    one, two = machines.joined(1), machines.joined(2)
    assert alive(one) == [1, 2]
    two.leave()
    assert alive(one) == [1]
    assert len(machines.keys()) == 1


def test_a_broker_that_dies_is_gone_after_its_session_and_its_object_later(machines: Machines) -> None:
    one, _ = machines.joined(1), machines.joined(2)
    seen = [alive(one) for _ in range(FORGET_HEARTBEATS + 2)]
    assert seen.index([1]) == SESSION_HEARTBEATS
    assert len(machines.keys()) == 1


def test_a_broker_that_was_paused_comes_back_with_its_next_heartbeat(machines: Machines) -> None:
    one, two = machines.joined(1), machines.joined(2)
    for _ in range(FORGET_HEARTBEATS + 2):
        one.heartbeat()
    assert alive(two) == [1, 2]
    assert alive(one) == [1, 2]


def test_what_dead_brokers_have_left_is_not_taken_for_alive_at_a_start(machines: Machines) -> None:
    machines.joined(2)
    assert alive(machines.joined(1)) == [1]


def test_a_broker_that_is_started_anew_takes_its_own_place_without_a_wait(machines: Machines) -> None:
    machines.joined(1)
    one = machines.joined(1)
    assert alive(one) == [1]
    assert len(machines.keys()) == 1
    assert not machines.slept


def test_an_id_that_another_broker_uses_is_refused(machines: Machines) -> None:
    one = machines.joined(1)
    other = machines.broker(1, "elsewhere")
    with pytest.raises(Invalid, match="host-1:9092 has the id 1, too; give each broker another --broker-id"):
        other.join(lambda _: one.heartbeat())


def test_an_id_of_a_dead_broker_at_another_address_is_free_after_its_session(machines: Machines) -> None:
    machines.joined(1)
    assert alive(machines.joined(1, "elsewhere")) == [1]
    assert len(machines.slept) == SESSION_HEARTBEATS


def test_no_failure_of_the_store_leaves_more_than_one_object_for_good(machines: Machines) -> None:
    one = machines.joined(1)
    for call in range(1, 8):
        one.store = FailsBefore(machines.store, Unavailable("no answer"), CallNumber(call))
        failed = 0
        for _ in range(8):
            try:
                one.heartbeat()
            except Unavailable:
                failed += 1
        assert failed == 1
        one.store = machines.store
        assert alive(one) == [1]
        assert len(machines.keys()) == 1


def test_a_registration_that_cannot_be_read_is_reported_and_no_broker(machines: Machines) -> None:
    one, two = machines.joined(1), machines.joined(2)
    two.leave()
    machines.store.put_if_absent(f"{BROKERS}3-{'a' * 32}-{0:020d}.json", b"{}")
    machines.store.put_if_absent(f"{BROKERS}notes.txt", b"")
    assert alive(one) == [1]
    assert "!brokers/3-" in machines.said[0]


def test_a_broker_that_may_not_delete_does_not_join_and_leaves_nothing(machines: Machines) -> None:
    machines.store = DeniesDeletions()
    for _ in range(3):
        with pytest.raises(Invalid, match="needs the right to delete objects below !brokers/"):
            machines.joined(1)
    assert machines.keys() == []


def test_a_broker_that_may_delete_no_longer_writes_no_more_than_a_few_objects(machines: Machines) -> None:
    machines.store = store = DeniesDeletions()
    store.is_denying = False
    one = machines.joined(1)
    store.is_denying = True
    for _ in range(3 * OWN_MAX):
        with pytest.raises(Invalid, match="needs the right to delete objects below !brokers/"):
            one.heartbeat()
    assert len(machines.keys()) == OWN_MAX
    store.is_denying = False
    assert alive(one) == [1]
    assert len(machines.keys()) == 1


def test_more_registrations_than_are_listed_are_not_passed_over_in_silence(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registered_brokers, "REGISTRATIONS_MAX", 3)
    one = machines.joined(1)
    for heartbeat in range(3):
        machines.store.put_if_absent(f"{BROKERS}0-{'a' * 32}-{heartbeat:020d}.json", b"{}")
    with pytest.raises(Invalid, match=r"more than 3 objects below !brokers/.*delete those of brokers that are gone"):
        one.heartbeat()
    assert len(machines.keys()) == 4  # its own former one is deleted
