"""How the archive of some log directories is getting on: as their agent knows, or, where none answers, from both tiers alone."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from local_log.errors import LogError, NotFound
from local_log.folder_hold import FolderHolder
from local_log.log import LocalLog
from local_log.log_dir import LogDir, Unopened
from remote.clock import Clock
from remote.errors import RemoteError, Unavailable
from remote.object_store import ObjectStore
from remote.parallel import in_order
from tiering.agent import http_client
from tiering.agent.memory import Memory
from tiering.agent.outcome import Archived
from tiering.agent.sole import has_agent
from tiering.agent.view import AgentView, PartitionView, Told
from tiering.config.config import Config
from tiering.lag import lag_of
from tiering.offload import plan

NO_AGENT: Final = "no agent"
SILENT: Final = "does not answer"


@dataclass(frozen=True, slots=True)
class Places:
    """What is asked: log directories, their archive, and what the last agent has left. `addresses` are where one may answer."""

    log_dirs: tuple[LogDir, ...]
    store: ObjectStore
    config: Config
    memory: Memory
    addresses: tuple[str, ...]


def status(places: Places, holder: FolderHolder, clock: Clock) -> dict[str, Any]:
    """What `/status` of an agent says, with its `address`; where none answers the same, seen now, and `state` says why.

    Raises NotFound, Unreadable, Corrupt (a log directory). What is wrong with a partition stands in its row.
    """
    paths = [one.path for one in places.log_dirs]
    state = NO_AGENT
    if has_agent(holder, paths):
        state = SILENT
        for address in places.addresses:
            answer = _asked(address, paths)
            if answer is not None:
                return answer | {"address": address}
    partitions = tuple(_seen(places, clock))
    seen = AgentView(
        0, clock.now_ms(), 0, tuple(paths), places.store.url, swept_ms=places.memory.swept_ms, scrub=places.memory.scrub,
        partitions=partitions,
    )  # fmt: skip
    return seen.row() | {"state": state, "started_ms": None, "address": None}


def _asked(address: str, log_dirs: list[str]) -> dict[str, Any] | None:
    """What the agent of these log directories says; None where another one answers there, or nobody."""
    try:
        answer = http_client.ask(address, "GET", "/status")
    except Unavailable:
        return None
    return answer if sorted(answer.get("log_dirs", ())) == sorted(log_dirs) else None


def _seen(places: Places, clock: Clock) -> Iterator[PartitionView]:
    logs = ((one, log) for one in places.log_dirs for log in one.found(places.config.selects))

    def seen(of: tuple[LogDir, LocalLog | Unopened]) -> PartitionView | None:
        return _view(of[0], of[1], places.store, clock.now_ms())

    with in_order(seen, logs, places.config.settings.remote_log_manager_copier_thread_pool_size) as views:
        yield from (view for view in views if view is not None)


def _view(log_dir: LogDir, log: LocalLog | Unopened, store: ObjectStore, now_ms: int) -> PartitionView | None:
    """A partition as it is now; None for one that its broker has just deleted."""
    view = PartitionView(log_dir.path, log.partition)
    if isinstance(log, Unopened):
        return replace(view, error=Told.of(log.error, now_ms))
    try:
        due = plan(log, store)
        return replace(
            view, lag=lag_of(due), archived=Archived.of(due.manifest) if due.manifest.version else None, seen_ms=now_ms
        )
    except NotFound:
        return None
    except (LogError, RemoteError) as e:
        return replace(view, error=Told.of(e, now_ms))


def rows(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The partitions of a status, those that lag most first, then in order."""
    found: list[dict[str, Any]] = list(answer["partitions"])
    return sorted(found, key=lambda row: (-row["lag_ms"], row["topic"], row["partition"]))
