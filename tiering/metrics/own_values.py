"""Computes the value of each metric of an endpoint with log directories of its own: its own, the logs', the agent's."""

from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from local_log.errors import LogError
from remote.store.instrumented import Counted
from tiering.agent.own_dirs import OwnDirs
from tiering.agent.view import AgentView
from tiering.endpoint.broker_server import BrokerServer
from tiering.endpoint.settings import STORAGE_MIN_FREE_BYTES
from tiering.endpoint.transactions.errors import TransactionError
from tiering.endpoint.transactions.transaction_states import TransactionState
from tiering.local_tier.service import TierStatus
from tiering.metrics import endpoint_series as of
from tiering.metrics.endpoint_values import EndpointView, endpoint_values
from tiering.metrics.series import Series
from tiering.metrics.values import Samples, of_local_tier, values


@dataclass(frozen=True, slots=True)
class OwnView:
    """What the metrics are made of. `agent` is None without an archive; `counted` are its requests to the store."""

    endpoint: EndpointView
    tier: TierStatus
    agent: AgentView | None
    counted: Mapping[str, Counted]
    transactions: Mapping[str, int]
    """How many transactional ids there are in each state."""
    usable: Mapping[str, int]
    """Free bytes by log directory."""
    min_free: int

    @classmethod
    def of(cls, server: BrokerServer, dirs: OwnDirs) -> "OwnView":
        """As it is now."""
        context, agent = server.context, dirs.agent
        states: Counter[str] = Counter({state.title: 0 for state in TransactionState})
        if context.transactions is not None:
            with suppress(TransactionError):  # it is stopping
                states.update(one.state.title for one in context.transactions.all())
        usable: dict[str, int] = {}
        for path, disk in context.logs.directories():
            with suppress(LogError):  # its disk has failed, which another series tells
                usable |= {} if disk is None else {path: disk.space(path).usable}
        return cls(
            EndpointView.of(server),
            dirs.service.status(),
            None if agent is None else agent.agent.view(),
            {} if agent is None else agent.meter.snapshot(),
            states,
            usable,
            context.settings[STORAGE_MIN_FREE_BYTES],
        )


def own_values(view: OwnView) -> dict[Series, Samples]:
    """The samples of every series that there is. Those that an agent and an endpoint both have count for both."""
    counted = {**view.counted}
    for verb, more in view.endpoint.counted.items():
        counted[verb] = counted[verb].plus(more) if verb in counted else more
    found = endpoint_values(view.endpoint)
    found |= of_local_tier(view.tier) if view.agent is None else values(view.agent, counted)
    return found | {
        of.TRANSACTIONS: {(state,): count for state, count in view.transactions.items()},
        of.USABLE_BYTES: {(path,): size for path, size in view.usable.items()},
        of.MIN_FREE_BYTES: {(): view.min_free},
    }
