"""Brokers of a fixed list, of which those are alive that accept connections. Nothing is written anywhere."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from tiering.endpoint.brokers.live_brokers import Broker, LiveBrokers

FAILURES_MAX: Final = 2
"""A broker that could not be reached so many times in a row is taken for dead."""


@dataclass(slots=True)
class ListedBrokers:
    """This broker, the others, and whether each could be reached of late; none is taken for alive before it was reached."""

    me: Broker
    others: Sequence[Broker]
    is_reached: Callable[[Broker], bool]
    _failures: dict[int, int] = field(default_factory=dict)

    def join(self, sleep: Callable[[float], object]) -> LiveBrokers:
        """See Brokers."""
        return self.heartbeat()

    def heartbeat(self) -> LiveBrokers:
        """See Brokers. All others are tried at once."""
        if self.others:
            with ThreadPoolExecutor(len(self.others)) as pool:
                reached = pool.map(self.is_reached, self.others)
            for broker, now in zip(self.others, reached, strict=True):
                self._failures[broker.node_id] = 0 if now else self._failures.get(broker.node_id, FAILURES_MAX - 1) + 1
        alive = (one for one in self.others if self._failures[one.node_id] < FAILURES_MAX)
        return LiveBrokers(self.me.node_id, tuple(sorted([self.me, *alive])))

    def leave(self) -> None:
        """See Brokers. The others notice that the listener is closed."""
