"""Brokers that find each other by what they write to the archive (Kafka's BrokerLifecycleManager and BrokerHeartbeatManager).

Each has one small object there, and with every heartbeat replaces it by one with the next number. A broker whose number stays as
it is for `SESSION_HEARTBEATS` heartbeats of ours is taken for dead: no clock is compared, and where the store is slow all wait
longer. What was there before our first look is taken for alive once its number has changed.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from local_log.errors import AlreadyExists, Corrupt, Invalid, Newer, NotFound
from remote.broker_registration import BrokerRegistration, decode, encode
from remote.keys import BROKERS, RegistrationPath, registration_of
from remote.store.api import ObjectStore
from tiering.endpoint.brokers.live_brokers import HEARTBEAT_S, Broker, LiveBrokers

SESSION_HEARTBEATS: Final = 5
"""Of 2 s each: Kafka's `broker.session.timeout.ms` is 9 s."""
FORGET_HEARTBEATS: Final = 150
"""After five minutes the objects of a dead broker are deleted."""
REGISTRATIONS_MAX: Final = 10_000
OWN_MAX: Final = 4
"""Registrations of this broker that may be there while the store lets none be deleted; then no further one is written."""


@dataclass(slots=True)
class _Incarnation:
    """What the heartbeats of one start of a broker have told so far."""

    broker: Broker
    heartbeat: int
    has_changed: bool
    unchanged: int = 0

    @property
    def is_alive(self) -> bool:
        return self.has_changed and self.unchanged < SESSION_HEARTBEATS

    def look(self, heartbeat: int) -> None:
        """Notes the newest number, at each heartbeat of ours."""
        if heartbeat == self.heartbeat:
            self.unchanged += 1
        else:
            self.heartbeat, self.unchanged, self.has_changed = heartbeat, 0, True


@dataclass(slots=True)
class RegisteredBrokers:
    """This broker's registration, and what it knows of the others. For one thread."""

    store: ObjectStore
    me: Broker
    incarnation_id: str
    report: Callable[[str], object]
    _heartbeat: int = -1
    _own: list[str] = field(default_factory=list)
    """Keys of this broker's registrations that may be there, the newest last."""
    _others: dict[str, _Incarnation] = field(default_factory=dict)
    _has_looked: bool = False

    def join(self, sleep: Callable[[float], object]) -> LiveBrokers:
        """Waits until no other broker that may be alive has this one's id, and registers. Raises Invalid if one is; Unavailable.

        It raises Invalid, too, if the store lets nothing be deleted: before anything is written.

        One with the same address is this broker before it was started anew: nobody waits for it.
        """
        for _ in range(SESSION_HEARTBEATS + 1):
            self._look()
            same = {name: one for name, one in self._others.items() if one.broker.node_id == self.me.node_id}
            for name, one in same.items():
                if one.broker == self.me:
                    self._delete(name)
            rivals = [one for one in same.values() if one.broker != self.me and one.unchanged < SESSION_HEARTBEATS]
            if not rivals:
                self._delete_key(RegistrationPath(self.me.node_id, self.incarnation_id, 0).key)
                return self.heartbeat()
            if rivals[0].is_alive:
                break
            sleep(HEARTBEAT_S)
        raise Invalid(
            f"a broker at {rivals[0].broker.host}:{rivals[0].broker.port} has the id {self.me.node_id}, too; "
            "give each broker another --broker-id"
        )

    def heartbeat(self) -> LiveBrokers:
        """Writes the next registration, deletes the one before, and returns the brokers that are alive.

        Raises Unavailable, Unknown, Invalid (the store denies it): try again with the next heartbeat.
        """
        self._delete_own(leave=OWN_MAX - 1)
        self._heartbeat += 1
        key = RegistrationPath(self.me.node_id, self.incarnation_id, self._heartbeat).key
        self._own.append(key)
        with suppress(AlreadyExists):  # this very write, of which no answer had come
            self.store.put_if_absent(key, encode(BrokerRegistration(self.me.host, self.me.port)))
        self._delete_own(leave=1)
        self._look()
        alive = {one.broker.node_id: one.broker for one in self._others.values() if one.is_alive}
        return LiveBrokers(self.me.node_id, tuple(sorted((alive | {self.me.node_id: self.me}).values())))

    def leave(self) -> None:
        """Deletes the registration, so that the others take over at once. Raises Unavailable."""
        self._delete_own(leave=0)

    def _delete_own(self, leave: int) -> None:
        while len(self._own) > leave:
            self._delete_key(self._own[0])
            del self._own[0]

    def _delete_key(self, key: str) -> None:
        try:
            self.store.delete(key)
        except Invalid as e:
            raise Invalid(f"{e}; a broker that registers needs the right to delete objects below {BROKERS}") from e

    def _listed(self) -> dict[str, list[RegistrationPath]]:
        """All registrations by incarnation, the newest last. Raises Invalid if there are too many."""
        found: dict[str, list[RegistrationPath]] = {}
        for number, meta in enumerate(self.store.list(BROKERS, limit=REGISTRATIONS_MAX + 1)):
            if number == REGISTRATIONS_MAX:
                raise Invalid(f"more than {REGISTRATIONS_MAX} objects below {BROKERS}: delete those of brokers that are gone")
            path = registration_of(meta.key)
            if path is not None:
                found.setdefault(path.incarnation_id, []).append(path)
        return found

    def _look(self) -> None:
        listed = self._listed()
        listed.pop(self.incarnation_id, None)
        for name, paths in listed.items():
            known = self._others.get(name)
            if known is not None:
                known.look(paths[-1].heartbeat)
            elif (broker := self._read(paths[-1])) is not None:
                self._others[name] = _Incarnation(broker, paths[-1].heartbeat, has_changed=self._has_looked)
        for name in self._others.keys() - listed.keys():
            del self._others[name]  # it has left
        for name in [name for name, one in self._others.items() if one.unchanged >= FORGET_HEARTBEATS]:
            self._delete(name)
        self._has_looked = True

    def _read(self, path: RegistrationPath) -> Broker | None:
        """Where the broker is reached; None if its next registration has taken this one's place, or it cannot be read."""
        try:
            found = decode(self.store.get(path.key), path.key)
        except NotFound:
            return None
        except (Corrupt, Newer) as e:
            self.report(str(e))
            return None
        return Broker(path.node_id, found.host, found.port)

    def _delete(self, incarnation_id: str) -> None:
        for path in self._listed().get(incarnation_id, ()):
            self._delete_key(path.key)
        self._others.pop(incarnation_id, None)
