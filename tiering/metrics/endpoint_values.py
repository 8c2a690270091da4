"""Computes the value of each metric of the endpoint. Pure."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from remote.store.instrumented import Counted
from tiering.endpoint.broker_server import BrokerServer
from tiering.endpoint.coordinator.describing import CLASSIC, CONSUMER
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroupState
from tiering.endpoint.fetch_sessions.cache import FetchSessionCache
from tiering.endpoint.metrics import ApiMetrics, EndpointMetrics, RequestTimes
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest
from tiering.endpoint.server_status import ServerStatus
from tiering.metrics import endpoint_series as of
from tiering.metrics.series import FETCH_BYTES, FETCH_ERRORS, FETCH_REQUESTS, Series
from tiering.metrics.values import Samples


@dataclass(frozen=True, slots=True)
class EndpointView:
    """What the metrics are made of."""

    metrics: EndpointMetrics
    sessions: FetchSessionCache
    status: ServerStatus
    config: SocketServerConfig
    started_ms: int
    counted: Mapping[str, Counted]
    """Requests to the archive's store, by verb."""
    groups: GroupCoordinator

    @classmethod
    def of(cls, of: BrokerServer) -> "EndpointView":
        """As it is now."""
        server = of.server
        return cls(
            of.context.metrics, of.sessions, server.status, server.config, of.started_ms, of.meter.snapshot(), of.context.groups
        )


def endpoint_values(view: EndpointView) -> dict[Series, Samples]:
    """The samples of every series in `endpoint_series.OF_ENDPOINT`."""
    apis, topics = dict(view.metrics.apis), view.metrics.topics()
    reads = [view.counted[verb] for verb in ("get", "get_range") if verb in view.counted]
    return {
        of.REQUESTS: {(name, str(version)): n for name, api in apis.items() for version, n in dict(api.requests).items()},
        of.ERRORS: view.metrics.errors.all(),
        of.DENIED: view.metrics.denied.all(),
        of.TOTAL_TIME: _quantiles(apis, lambda one: one.total_ms),
        of.SEND_TIME: _quantiles(apis, lambda one: one.send_ms),
        of.REQUEST_BYTES: _quantiles(apis, lambda one: one.size),
        of.BYTES_IN: {(name,): topic.bytes_in for name, topic in topics.items()},
        of.MESSAGES_IN: {(name,): topic.messages_in for name, topic in topics.items()},
        of.PRODUCES: {(name,): topic.produces for name, topic in topics.items()},
        of.FAILED_PRODUCES: {(name,): topic.failed_produces for name, topic in topics.items()},
        of.BYTES_OUT: {(name,): topic.bytes_out for name, topic in topics.items()},
        of.FETCHES: {(name,): topic.fetches for name, topic in topics.items()},
        of.FAILED_FETCHES: {(name,): topic.failed_fetches for name, topic in topics.items()},
        of.SESSIONS: {(): len(view.sessions)},
        of.SESSION_PARTITIONS: {(): view.sessions.partitions},
        of.SESSION_EVICTIONS: {(): view.sessions.evictions},
        of.CONNECTIONS: {(): view.status.connections},
        of.CONNECTIONS_MAX: {(): view.config.connections_max},
        of.MEMORY: {(): view.status.memory_bytes},
        of.MEMORY_MAX: {(): view.config.queued_bytes_max},
        of.START_TIME: {(): view.started_ms / 1000},
        **_of_groups(view.groups),
        FETCH_BYTES: {(): sum(c.bytes for c in reads)},
        FETCH_REQUESTS: {(): sum(c.calls for c in reads)},
        FETCH_ERRORS: {(): sum(c.failures for c in reads)},
    }


def _of_groups(coordinator: GroupCoordinator) -> dict[Series, Samples]:
    groups = coordinator.list_groups(ListGroupsRequest()).groups
    types = Counter(one.group_type for one in groups)
    states = Counter((one.group_type, one.group_state) for one in groups)
    classic: dict[Series, Samples] = {series: {(): states[CLASSIC, state]} for state, series in of.CLASSIC_BY_STATE.items()}
    return {
        **classic,
        of.GROUPS: {(kind,): types[kind] for kind in (CLASSIC, CONSUMER)},
        of.CONSUMER_GROUPS: {(state,): states[CONSUMER, state] for state in ConsumerGroupState},
        of.CLASSIC_GROUPS: {(): types[CLASSIC]},
        of.GROUP_OFFSETS: {(): coordinator.committed_offsets},
    }


def _quantiles(apis: Mapping[str, ApiMetrics], value_of: Callable[[RequestTimes], float]) -> Samples:
    found = {name: api.quantiles(value_of, *of.QUANTILES) for name, api in apis.items()}
    return {
        (name, str(quantile)): value
        for name, values in found.items()
        for quantile, value in zip(of.QUANTILES, values, strict=True)
    }
