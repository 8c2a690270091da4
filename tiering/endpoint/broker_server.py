"""One endpoint in this process, from its settings to its end (Kafka's BrokerServer): what it opens, in order, and closes."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from local_log.errors import Invalid, LogError
from local_log.formats.filenames import TopicPartition
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from remote.read.read_ahead import AheadBytes
from remote.read.shared_reads import SharedReads
from remote.read.window_cache import WindowCache, window_bytes_for
from remote.store.instrumented import Meter
from tiering.endpoint.apis.context import CLUSTER_ID, Context
from tiering.endpoint.appends.free_room import CoordinatorsRoom
from tiering.endpoint.appends.group_commit import GroupCommit
from tiering.endpoint.authentication.opening import open_listener
from tiering.endpoint.authorization.opening import open_acls
from tiering.endpoint.brokers.live_brokers import Broker
from tiering.endpoint.brokers.opening import open_brokers
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.group_configs import GroupConfigs
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.offset_metadata_manager import EndOf, LogEnd
from tiering.endpoint.coordinator.offsets_log import OffsetsLog
from tiering.endpoint.ending import left_behind, pools
from tiering.endpoint.event_loop import run
from tiering.endpoint.fetch_loop.loading import answer_ready
from tiering.endpoint.fetch_sessions.cache import FetchSessionCache
from tiering.endpoint.fetch_sessions.manager import FetchManager
from tiering.endpoint.hosted_logs import HostedLogs
from tiering.endpoint.hosted_topics import HostedTopics
from tiering.endpoint.logs import Logs
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.quotas.opening import open_quotas
from tiering.endpoint.reads import Reads
from tiering.endpoint.reports import Reports
from tiering.endpoint.request_context import SecurityProtocol
from tiering.endpoint.server import Server
from tiering.endpoint.settings import (
    CHUNK_CACHE_SIZE,
    FETCH_SESSION_SLOTS,
    NODE_ID,
    STORAGE_MIN_FREE_BYTES,
    WRITE_CACHING,
    Settings,
)
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.transaction_coordinator import TransactionCoordinator
from tiering.endpoint.transport import listen
from tiering.log_dirs import log_dir
from tiering.machine import CLOCK, IDS, allow_open_files, collect_seldom, local_disk
from tiering.wiring import CACHE_BYTES_MAX, Tiers, open_reading, open_tiers

if TYPE_CHECKING:  # the engine that writes is loaded only if it is needed
    from tiering.local_tier.local_tier import LocalTier

OWN_THREADS: Final = 4
"""To look at logs that fetches wait for, for what is due in groups, to load the compiled loop, and to stop: a store that hangs
holds up none but itself."""
READ_AHEAD_THREADS: Final = 4
AHEAD_BYTES_MAX: Final = 32 << 20
"""What all look-ups by time together have requested ahead; fetches have the chunk cache."""


@dataclass(frozen=True, slots=True)
class BrokerServerConfig:
    """What is served, where, and to whom. `register` and `listed` say with which other brokers: not both."""

    settings: Settings
    protocol: SecurityProtocol
    host: str
    port: int
    advertised: tuple[str, int] | None = None
    archive_url: str | None = None
    log_dir_path: str | None = None
    keys_address: str | None = None
    cache_dir: str | None = None
    offsets_dir: str | None = None
    users_path: str | None = None
    acls_path: str | None = None
    quotas_path: str | None = None
    register: bool = False
    listed: tuple[Broker, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerServer:
    """An endpoint that listens. `meter` has its requests to the store, and `topics` is their number when it began."""

    context: Context
    server: Server
    sessions: FetchSessionCache
    meter: Meter
    listener: socket.socket
    topics: int
    started_ms: int
    hung: list[str]
    """After the end, the threads that wait for something yet: Python itself would wait for them at the end of the process."""
    _loops: list[asyncio.AbstractEventLoop] = field(default_factory=list)
    """The one that serves, once it does."""

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        host, port = self.listener.getsockname()[:2]
        return host, port

    def stop(self) -> None:
        """Begins to stop it, from any thread, also before it serves, and after: a signal may come while the rest is closed."""
        for loop in self._loops:
            with suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(self.server.stop)
        if not self._loops:
            self.server.stop()

    def serve(self) -> None:
        """Answers until `stop`. Once only."""
        collect_seldom()
        run(self._serve())

    async def _serve(self) -> None:
        self._loops.append(asyncio.get_running_loop())
        await self.server.serve(self.listener)


@contextmanager
def broker_server(  # what it opens, in order, reads best in one place
    config: BrokerServerConfig, say: Callable[[str], object], local_tier: "LocalTier | None" = None
) -> Iterator[BrokerServer]:
    """Opens it, and closes it after the block, however that ends. `say` takes messages for whoever runs it. Raises LogError.

    `local_tier` has the log directories that this process owns, which somebody else opens and closes.
    """
    settings, reports, meter = config.settings, Reports(say, CLOCK), Meter()
    allow_open_files()
    of = open_listener(config.protocol, settings, config.users_path, reports)
    rules = (open_acls(config.acls_path, settings, reports), *open_quotas(config.quotas_path, reports))
    group_config, network = GroupCoordinatorConfig.of(settings), SocketServerConfig.of(settings)
    threads = {"request": network.threads + OWN_THREADS, "topics": 1, "read-ahead": READ_AHEAD_THREADS, "sync": 1}
    hung = list[str]()
    with (
        _offsets_log(config, local_tier, group_config, reports) as offsets,
        pools(threads, CLOCK, hung) as (pool, background, ahead, sync),
    ):
        tiers = _tiers(config, ahead, meter, say, looks=local_tier is None)
        logs = _logs(tiers, local_tier, background, reports)
        cache_bytes = settings[CHUNK_CACHE_SIZE]
        reads = Reads(shared=SharedReads(WindowCache(cache_bytes, tiers.reading.ahead.pool, window_bytes_for(cache_bytes))))
        topics = len(logs.names())
        listener = _listening(config)
        configs = GroupConfigs(settings) if local_tier is None else GroupConfigs.of(settings, local_tier)
        groups = GroupCoordinator(group_config, offsets, CLOCK, IDS, reports, HostedTopics(logs), configs)
        groups.load()
        me = Broker(settings[NODE_ID], *(config.advertised or (config.host, listener.getsockname()[1])))
        lifecycle = open_brokers(me, config.listed, config.archive_url if config.register else None, reports)
        try:
            cluster = lifecycle.start(CLOCK.sleep)
            sessions = FetchSessionCache(IDS, settings[FETCH_SESSION_SLOTS])
            cluster_id = _cluster_id(tiers, local_tier) or CLUSTER_ID
            context = Context(logs, reads, FetchManager(sessions), CLOCK, cluster, reports, groups, settings, cluster_id, *rules)
            # These have limits of their own, so that who is denied much, or sends what is no request, hides nothing else.
            closings, audit = Reports(say, CLOCK), Reports(say, CLOCK)
            commit = None if settings[WRITE_CACHING] else GroupCommit(sync)
            context = replace(context, users=of.users, audit=audit, local_tier=local_tier, group_commit=commit)
            transactions = None if local_tier is None else _transactions(local_tier, settings, groups, reports)
            if local_tier is not None:
                _forget_former(groups, local_tier)
                groups.lower_offsets(_ends(local_tier))
            context = replace(context, transactions=transactions)
            server = Server(context, network, pool, closings, of, lifecycle.stop, partial(answer_ready, reports))
            yield BrokerServer(context, server, sessions, meter, listener, topics, CLOCK.now_ms(), hung)
        finally:
            listener.close()
            logs.close()
            hung += left_behind({"heartbeat": lifecycle.stop, "reads": reads.close}, CLOCK)


def _listening(config: BrokerServerConfig) -> socket.socket:
    try:
        return listen(config.host, config.port)
    except OSError as e:
        raise Invalid(f"cannot listen on {config.host}:{config.port}: {e}; choose another address with --listen") from e


def _offsets_log(
    server: BrokerServerConfig, tier: "LocalTier | None", config: GroupCoordinatorConfig, report: Reports
) -> "AbstractContextManager[OffsetsLog | None]":
    if tier is not None:
        from tiering.endpoint.coordinator.offsets_topic import OffsetsTopic

        return nullcontext(OffsetsTopic.of(tier, config, _room(server.settings)))
    if server.offsets_dir is None:
        return nullcontext()
    from tiering.endpoint.coordinator.opening import offsets_topic  # the engine that writes is loaded only if it is needed

    return offsets_topic(server.offsets_dir, config, report)


def _logs(tiers: Tiers, tier: "LocalTier | None", background: Executor, report: Reports) -> Logs:
    if tier is None:
        return HostedLogs(tiers, CLOCK, background=background, report=report)
    from tiering.endpoint.own_logs import OwnLogs
    from tiering.local_tier.reads import TierReads

    return OwnLogs(TierReads(tier, tiers.store, tiers.reading), local_disk())


def _ends(tier: "LocalTier") -> EndOf:
    """Where logs end that may have lost records: after a crash, or when the directory was restored.

    Also if all were cleanly shut down since: another command, or a start that failed, may have recovered them.
    """

    def end_of(topic: str, partition: int) -> LogEnd | None:
        with suppress(LogError):
            log = tier.log(TopicPartition(topic, partition))
            return LogEnd(tier.topic(topic).topic_id or ZERO_TOPIC_ID, log.log_end_offset)
        return None

    return end_of


def _forget_former(groups: GroupCoordinator, tier: "LocalTier") -> None:
    """Of topics that another command has deleted, or this one before it was killed.

    Not while a directory is offline, which may have topics that no other one knows.
    """
    if not tier.offline:
        groups.forget_former({name: topic.topic_id or ZERO_TOPIC_ID for name, topic in tier.topics().items()})


def _transactions(tier: "LocalTier", settings: Settings, groups: GroupCoordinator, report: Reports) -> TransactionCoordinator:
    from tiering.endpoint.transactions.opening import open_transactions

    config = TransactionConfig.of(settings, tier.manager_config.transaction_max_timeout_ms)
    return open_transactions(tier, config, groups, CLOCK, report, _room(settings))


def _room(settings: Settings) -> CoordinatorsRoom:
    return CoordinatorsRoom(settings[STORAGE_MIN_FREE_BYTES], CLOCK)


def _cluster_id(tiers: Tiers, tier: "LocalTier | None") -> str:
    """The id of the cluster whose log directory it is, or that a directory of our own was given; "" if that is not known."""
    return tiers.cluster_id if tier is None else log_dir(tier.directories[0]).properties().get("cluster.id", "")


def _tiers(config: BrokerServerConfig, ahead: Executor, meter: Meter, warn: Callable[[str], object], *, looks: bool) -> Tiers:
    return open_tiers(
        config.log_dir_path,
        config.archive_url,
        open_reading(config.cache_dir, CACHE_BYTES_MAX, ahead, config.keys_address, AheadBytes(AHEAD_BYTES_MAX)),
        warn=warn,
        keys_address=config.keys_address,
        cache_dir=config.cache_dir,
        meter=meter,
        looks=looks,
    )
