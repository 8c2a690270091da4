"""What the page for people shows of an endpoint: clients, groups with their lag, open transactions, and bytes by topic."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local_log.errors import LogError
from tiering.endpoint.apis.context import Context
from tiering.endpoint.broker_server import BrokerServer
from tiering.endpoint.coordinator.committed_offsets import Partition
from tiering.endpoint.coordinator.describing import GroupOffsets
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.server_status import ConnectedClient, ServerStatus
from tiering.metrics.open_transactions import OpenTransaction, open_transactions

ROWS_MAX: Final = 1_000
"""So many clients, groups and transactions are told, those first that need attention."""
TOPICS_MAX: Final = 10_000
STALE_MS_MAX: Final = 60_000
"""Older ends of logs are looked at again for the lag of groups, in the background."""
LOOKED_AT_ONCE_MAX: Final = 100
"""So many topics at a time."""
PARTITIONS_MAX: Final = 3
"""So many partitions of a transaction are named."""


@dataclass(frozen=True, slots=True)
class EndpointOverview:
    """What it is made of."""

    context: Context
    status: ServerStatus
    config: SocketServerConfig
    clients: tuple[ConnectedClient, ...]
    started_ms: int

    @classmethod
    def of(cls, server: BrokerServer) -> "EndpointOverview":
        """As it is now."""
        return cls(server.context, server.server.status, server.server.config, server.server.clients, server.started_ms)

    def row(self) -> dict[str, Any]:
        """For JSON."""
        context, status, now_ms = self.context, self.status, self.context.clock.now_ms()
        state = "stopping" if status.is_stopping else "running" if status.moved_s else "starting"
        return {
            "state": state,
            "started_ms": self.started_ms,
            "now_ms": now_ms,
            "connections": status.connections,
            "connections_max": self.config.connections_max,
            "memory_bytes": status.memory_bytes,
            "memory_bytes_max": self.config.queued_bytes_max,
            "is_written": context.local_tier is not None,
            "clients": _clients(self.clients),
            "groups": _groups(context),
            "transactions": _transactions(open_transactions(context, now_ms)),
            "topics": _topics(context),
        }


def _table(columns: Sequence[str], rows: Sequence[Sequence[Any]], rows_max: int = ROWS_MAX) -> dict[str, Any]:
    return {"columns": columns, "rows": rows[:rows_max], "count": len(rows)}


def _clients(clients: Iterable[ConnectedClient]) -> dict[str, Any]:
    """Connections of one client together, most first."""
    connections = Counter(clients)
    rows = [(one.client_id, one.address, one.principal, n) for one, n in connections.most_common()]
    return _table(("client_id", "address", "principal", "connections"), rows)


def _groups(context: Context) -> dict[str, Any]:
    """Groups, the largest lag first. `unknown` counts partitions whose end is not known, `worst` is that with the largest lag."""
    columns = (
        "group", "type", "state", "members", "lag", "partitions", "unknown", "worst", "worst_lag", "committed_ms",
    )  # fmt: skip
    ends = _Ends(context)
    rows = [_group(one, ends) for one in context.groups.groups_with_offsets()]
    return _table(columns, sorted(rows, key=lambda row: (-row[4], row[0])))


def _group(group: GroupOffsets, ends: "_Ends") -> tuple[Any, ...]:
    lag = unknown = 0
    worst: tuple[int, Partition | None] = (-1, None)
    for partition, committed in group.offsets.items():
        end = ends.of(partition)
        if end is None:
            unknown += 1
            continue
        behind = max(0, end - committed.committed_offset)
        lag += behind
        if behind > worst[0]:
            worst = behind, partition
    name = None if worst[1] is None else f"{worst[1][0]}-{worst[1][1]}"
    committed_ms = max((one.commit_timestamp_ms for one in group.offsets.values()), default=None)
    return (
        group.group_id, group.group_type, group.state, group.members, lag, len(group.offsets), unknown, name, max(0, worst[0]),
        committed_ms,
    )  # fmt: skip


class _Ends:
    """Where logs end, as they were last seen: a store that hangs must not hold up the page."""

    def __init__(self, context: Context) -> None:
        self._logs, self._now_ms = context.logs, context.clock.hi_res_clock_ms()
        self._partitions: dict[str, Any] = {}
        self._ends: dict[Partition, int | None] = {}
        self._looked = 0

    def of(self, partition: Partition) -> int | None:
        """Up to where a partition can be read; None if that is not known, or there is no such partition."""
        if partition not in self._ends:
            self._ends[partition] = self._end(*partition)
        return self._ends[partition]

    def _end(self, topic: str, number: int) -> int | None:
        if topic not in self._partitions:
            self._partitions[topic] = self._partitions_of(topic)
        log = self._partitions[topic].get(number)
        try:
            return None if log is None or isinstance(log, LogError) else int(log.end_offset())
        except LogError:
            return None

    def _partitions_of(self, topic: str) -> Any:
        found = self._logs.recent(topic)
        if found is not None:
            return found.partitions
        found = self._logs.known().get(topic)
        if self._looked < LOOKED_AT_ONCE_MAX and (found is None or self._now_ms - found.looked_ms > STALE_MS_MAX):
            self._looked += 1
            self._logs.open_soon(topic)
        return {} if found is None else found.partitions


def _transactions(found: Sequence[OpenTransaction]) -> dict[str, Any]:
    columns = ("transactional_id", "producer_id", "state", "since_ms", "timeout_ms", "partitions", "partition_count", "hangs")
    rows = [
        (
            one.transactional_id, one.producer_id, one.state, one.since_ms, one.timeout_ms,
            [*map(str, one.partitions[:PARTITIONS_MAX])], len(one.partitions), one.hangs,
        )
        for one in found
    ]  # fmt: skip
    return _table(columns, rows)


def _topics(context: Context) -> dict[str, Any]:
    """Bytes and records since the start; whoever asks twice knows how many a second."""
    found = sorted(context.metrics.topics().items(), key=lambda item: -item[1].bytes_in - item[1].bytes_out)
    rows = [(name, one.bytes_in, one.bytes_out, one.messages_in) for name, one in found]
    return _table(("topic", "bytes_in", "bytes_out", "messages_in"), rows, TOPICS_MAX)
