"""Where an agent is built: a configuration in, an agent out. What it is built of is `machine`'s."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, partial
from math import inf
from socket import gethostname
from typing import Final

from local_log.errors import BadAddress, Unavailable, Unknown, Unreadable, listed
from local_log.formats.filenames import META_PROPERTIES
from local_log.log_dir import LogDir, is_new
from remote import archive
from remote.clock import Clock, Ids, jitter, stopwatch
from remote.parallel import as_completed
from remote.read.context import decoder_with
from remote.signed_store import trusted
from remote.store.api import ObjectStore
from remote.store.instrumented import Meter
from tiering.agent.abortable import Abortable
from tiering.agent.agent import Agent
from tiering.agent.agent_lock import agent_lock
from tiering.agent.configured import checked, keys_address, memory_file, state_dir, token
from tiering.agent.controls import AbortableClock, Aborted, Controls
from tiering.agent.http.guard import Guard
from tiering.agent.memory import MemoryFile
from tiering.agent.opening import Opening
from tiering.agent.own_tier import own_tier
from tiering.agent.schedule import Backoff
from tiering.agent.settings import Settings, Source, Surroundings
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.tasks.expire import ExpireTask
from tiering.agent.tasks.local_retention import LocalRetentionTask
from tiering.agent.tasks.lost_partitions import LostPartitionsTask
from tiering.agent.tasks.scrub import ScrubTask
from tiering.agent.tasks.sweep import SweepTask
from tiering.agent.tasks.task import Task
from tiering.agent.topic_retention import known_retention
from tiering.agent.workers import Threads
from tiering.cluster import Cluster
from tiering.config.config import Config
from tiering.local_tier.opening import make_folders, own_log_dirs
from tiering.local_tier.own_topics import OwnTopics
from tiering.local_tier.service import TierService
from tiering.log_dirs import cluster_of
from tiering.machine import CLOCK, IDS, folder_holder, open_store
from tiering.offload.compacted_topics import ReplacedTopics
from tiering.wiring import remembered, shares_a_folder, transforms

_ANY_ADDRESS: Final = frozenset(("0.0.0.0", "::", ""))  # noqa: S104  # no host names, so not valid in a request; not an address to listen on


@dataclass(frozen=True, slots=True)
class Built:
    """An agent, what it is controlled by, and what is counted of its store."""

    agent: Agent
    controls: Controls
    meter: Meter
    opening: Opening
    tier: TierService | None = None
    """The log directories, if they are our own."""

    def open(self, patience_s: float = inf) -> bool:
        """Opens the archive, and says whether it was created. If the store does not respond, the agent's turns retry.

        So they do if it has answered nothing for `patience_s`. Raises what is wrong with the archive, or with its address.
        """

        def is_over() -> bool:
            now_s = stopwatch()
            unanswered = self.meter.unanswered(now_s)
            is_silent = unanswered is not None and unanswered.seconds > patience_s
            return is_silent or self.controls.is_stopping or self.meter.trouble(now_s) is not None

        try:
            return any(as_completed(lambda opening: opening(), [self.opening], 1, is_over))
        except (Aborted, Unavailable, Unknown):
            return False


def guard(config: Config) -> Guard:
    """The guard for the agent of a configuration. Raises Invalid, NotFound, Unreadable for the file with its token."""
    host = config.settings.agent_http_address.rpartition(":")[0].strip("[]").lower()
    own = gethostname().lower()
    names = frozenset((*config.settings.agent_http_names, host, own, own.partition(".")[0]))
    return Guard(names - _ANY_ADDRESS, token(config))


def alone(config: Config) -> AbstractContextManager[None]:
    """Locks the log directories of a configuration for one agent. Raises Invalid if another agent has them, or none is set.

    Those that are our own are created.
    """
    dirs, _ = checked(config)
    if config.settings.own_log_dirs:
        make_folders(config.settings.log_dirs)
    return agent_lock(folder_holder(), [one.path for one in dirs], CLOCK)


def build(
    config: Config,
    environment: Mapping[str, str],
    report: Callable[[str], None],
    tell: Callable[[str, Mapping[str, str | int]], None] = lambda message, fields: None,
) -> Built:
    """The agent of a configuration. It has made no request yet; a missing archive is created when it opens.

    `report` is called with messages for users about problems, each once; `tell` with what went well, and its fields.

    Raises NotFound, Unreadable, Unavailable, BadAddress, and what is wrong with the archive.
    """
    controls, meter = Controls(), Meter()
    tier = own_tier(config, report)
    dirs = checked(config)[0] if tier is None else own_log_dirs(tier.tier)
    for one in dirs:
        one.partitions()
    memory = memory_file(config, environment)
    if tier is not None:
        _refuse_unmounted(dirs, memory)
    clock, ids = AbortableClock(CLOCK, controls), IDS
    store = _store(config, environment, clock, meter, controls)
    for one in dirs:
        if shares_a_folder(one, store):
            raise BadAddress(f"{store.url} and the log directory {one.path} are inside each other; give a folder outside")
    opening = Opening(partial(_open, store, clock, ids, must_exist=config.settings.archive_must_exist))
    cluster = cluster_of((config.settings.metadata_log_dir, *config.settings.log_dirs), clock)
    if tier is not None:
        cluster = OwnTopics(cluster.dirs, clock, tier=tier.tier)
    copied = _copied(config, cluster) if "copy" in config.settings.agent_tasks else None
    source = Source(dirs, store.url, cache(config.selects), copied, known_retention(config, cluster))
    settings = _settings(config)
    around = Surroundings(
        Threads(settings.threads), controls, CLOCK, jitter, report, lambda: meter.trouble(stopwatch()), opening,
        tier.status if tier is not None else lambda: None, tell,
    )  # fmt: skip
    tasks = _tasks(config, store, clock, ids, cluster)
    return Built(Agent(source, tasks, settings, around, memory), controls, meter, opening, tier)


def _refuse_unmounted(dirs: Sequence[LogDir], memory: MemoryFile) -> None:
    """Raises Unreadable if all directories of our own are empty although the agent has seen partitions in them.

    Where another directory has the file of topics, the local tier notices that one is empty.
    """
    archived = memory.load().archived
    if archived and all(is_new(one.disk, one.path) for one in dirs):
        names = listed(
            dict.fromkeys(key.partition(" ")[0] for key in sorted(archived, key=lambda key: (not archived[key].segments, key)))
        )
        raise Unreadable(
            f"{', '.join(one.path for one in dirs)}: empty, although it had logs of {names}; mount the disk, "
            f"or, if it is a new one, create an empty {META_PROPERTIES} there"
        )


def _store(config: Config, environment: Mapping[str, str], clock: Clock, meter: Meter, controls: Controls) -> ObjectStore:
    """The archive's store, which an abort of the agent interrupts. Raises BadAddress, and what is wrong with the keys."""
    is_limited = "remote.log.manager.copy.max.bytes.per.second" in config.places
    limit = config.settings.remote_log_manager_copy_max_bytes_per_second if is_limited else None
    backend = open_store(config.settings.archive_url or "", bytes_per_second=limit, meter=meter, clock=clock)
    return trusted(Abortable(backend, controls), keys_address(config), remembered(state_dir(config, environment)))


def _settings(config: Config) -> Settings:
    settings = config.settings
    backoff = Backoff(
        settings.remote_log_manager_task_retry_backoff_ms,
        settings.remote_log_manager_task_retry_backoff_max_ms,
        settings.remote_log_manager_task_retry_jitter,
    )
    return Settings(
        threads=settings.remote_log_manager_copier_thread_pool_size,
        backoff=backoff,
        look_ms=settings.remote_log_manager_task_interval_ms,
        shutdown_ms=settings.agent_shutdown_timeout_ms,
    )


def _copied(config: Config, cluster: Cluster) -> Callable[[str], bool]:
    """Which topics are copied: by the configuration, and by the topics' own settings, which may change."""
    configured = cache(config.copies)
    if not isinstance(cluster, OwnTopics):
        return configured
    return lambda topic: configured(topic) and cluster.copies(topic)


def _tasks(config: Config, store: ObjectStore, clock: Clock, ids: Ids, cluster: Cluster) -> list[Task]:
    """The tasks of `agent.tasks`; the task of losses comes with the copy task. Raises the errors of the keys."""
    settings = config.settings
    tasks: list[Task] = []
    if "copy" in settings.agent_tasks:
        how = transforms(
            compress=settings.archive_compression_type != "none",
            encrypt_with=settings.archive_keys if settings.archive_encryption_enable else None,
            chunk_bytes=settings.archive_chunk_bytes,
        )
        replaces = ReplacedTopics(settings.archive_replace_compacted, cluster)
        copy = CopyTask(store, clock, ids, how, _copied(config, cluster), replaces=replaces)
        lost = LostPartitionsTask(store, clock, ids)
        if isinstance(cluster, OwnTopics):
            lost.was_deleted = cluster.tier.deleted.__contains__
        tasks += [copy, lost]
    if "expire" in settings.agent_tasks:
        interval_ms = settings.log_retention_check_interval_ms
        own = cluster if isinstance(cluster, OwnTopics) else None
        tasks.append(ExpireTask(store, clock, ids, config.retention, interval_ms, cluster, own))
    if isinstance(cluster, OwnTopics):
        decoder = decoder_with(keys_address(config))
        tasks.append(LocalRetentionTask(store, clock, cluster.tier, settings.log_retention_check_interval_ms, decoder))
    if "sweep" in settings.agent_tasks:
        tasks.append(SweepTask(store, clock, ids, settings.sweep_grace_ms, settings.sweep_interval_ms))
    if "scrub" in settings.agent_tasks:
        decoder = decoder_with(keys_address(config))
        tasks.append(ScrubTask(store, clock, decoder, settings.scrub_sample_ratio, settings.scrub_interval_ms))
    return tasks


def _open(store: ObjectStore, clock: Clock, ids: Ids, *, must_exist: bool) -> bool:
    if must_exist:
        archive.open_to_write(store, ids)
        return False
    return archive.create_archive(store, clock, ids)
