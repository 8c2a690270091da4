"""The other brokers, out of options: those that register in the archive, or a list."""

import socket
from collections.abc import Callable, Iterable
from typing import Final

from tiering.endpoint.addresses import host_and_port
from tiering.endpoint.brokers.lifecycle import BrokerLifecycle
from tiering.endpoint.brokers.listed_brokers import ListedBrokers
from tiering.endpoint.brokers.live_brokers import Broker
from tiering.endpoint.brokers.registered_brokers import RegisteredBrokers
from tiering.machine import IDS, open_store

REACHED_S_MAX: Final = 1.0


def read_brokers(texts: Iterable[str]) -> tuple[Broker, ...]:
    """Of ID@HOST:PORT, once each. Raises ValueError."""
    brokers = tuple(dict.fromkeys(map(_broker, texts)))
    if len({one.node_id for one in brokers}) < len(brokers):
        raise ValueError("two brokers have the same id")
    return brokers


def open_brokers(
    me: Broker, listed: Iterable[Broker], register_at: str | None, report: Callable[[str], object]
) -> BrokerLifecycle:
    """This broker, with those of a list, among which it may be, or with those that register in an archive. Raises BadAddress."""
    if register_at is not None:
        return BrokerLifecycle(RegisteredBrokers(open_store(register_at), me, IDS.new_id(), report), report)
    others = [broker for broker in listed if broker.node_id != me.node_id]
    return BrokerLifecycle(ListedBrokers(me, others, is_reached), report)


def is_reached(broker: Broker) -> bool:
    """Whether it accepts connections."""
    try:
        socket.create_connection((broker.host, broker.port), REACHED_S_MAX).close()
    except OSError:
        return False
    return True


def _broker(text: str) -> Broker:
    node_id, _, address = text.partition("@")
    try:
        if node_id.isascii() and node_id.isdigit():
            return Broker(int(node_id), *host_and_port(address))
    except ValueError:
        pass
    raise ValueError(f"{text!r} is not ID@HOST:PORT")
