"""How the archive of some log directories is getting on: as their agent knows, or, where none answers, from both tiers alone."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from local_log.errors import LogError, NoSuchFile, TopicDeleted, Unavailable
from local_log.folder_lock import FolderHolder
from local_log.log_dir import LogDir, Unopened
from local_log.log_reader import LogReader
from remote.clock import Clock
from remote.parallel import as_completed
from remote.store.api import ObjectStore
from remote.store.instrumented import FAILING_S_MAX, Trouble
from tiering.agent.agent_lock import has_agent
from tiering.agent.http import client as http_client
from tiering.agent.memory import Memory, key_of
from tiering.agent.topic_retention import Known
from tiering.agent.view import AgentView, ErrorRecord, PartitionView
from tiering.config.config import Config
from tiering.lag.archived import NOTHING, Archived
from tiering.lag.copy_lag import NO_LAG, waiting_segments
from tiering.lag.local_log import scan_log
from tiering.offload.due import OffloadPlan, plan

NO_AGENT: Final = "no agent"
SILENT: Final = "does not answer"


@dataclass(frozen=True, slots=True)
class Places:
    """What is asked: log directories, their archive, and what the last agent has left. `addresses` are where one may answer.

    `retention` is the topics' on their brokers, `trouble` whether the store answers anybody, by how many
    seconds without an answer count.
    """

    log_dirs: tuple[LogDir, ...]
    store: ObjectStore
    config: Config
    memory: Memory
    addresses: tuple[str, ...]
    retention: Known
    trouble: Callable[[float], Trouble | None]


def status(places: Places, holder: FolderHolder, clock: Clock) -> dict[str, Any]:
    """The answer of an agent's `/status`, with its `address`. If no agent answers, the same computed now, and `state` says why.

    If the store does not respond, the result is what the disk shows, and that error.

    Raises NotFound, Unreadable, Corrupt (a log directory). Errors of a partition are in its row.
    """
    paths = [one.path for one in places.log_dirs]
    state = NO_AGENT
    if has_agent(holder, paths):
        state = SILENT
        for address in places.addresses:
            answer = _asked(address, paths)
            if answer is not None:
                return answer | {"address": address}
    asked, problem = _from_the_store(places, _found(places, clock), clock)
    seen = AgentView(
        0, clock.now_ms(), 0, tuple(paths), places.store.url, swept_ms=places.memory.swept_ms, scrub=places.memory.scrub,
        partitions=tuple(view for view in asked if view is not None), store=problem,
    )  # fmt: skip
    return seen.row() | {"state": state, "started_ms": None, "address": None}


def _asked(address: str, log_dirs: list[str]) -> dict[str, Any] | None:
    """The answer of the agent of these log directories; None if another agent, or none, answers at this address."""
    try:
        answer = http_client.ask(address, "GET", "/status")
    except Unavailable:
        return None
    return answer if sorted(answer.get("log_dirs", ())) == sorted(log_dirs) else None


Found = tuple[LogReader | Unopened, PartitionView]


def _found(places: Places, clock: Clock) -> list[Found]:
    """The partitions of the log directories, and the state of the archive as the last agent knew it. Opens no segment."""
    found: list[Found] = []
    for log_dir in places.log_dirs:
        for log in log_dir.found(places.config.selects):
            archived, retention = _archived(places, log), places.retention(log.partition.topic)
            error = ErrorRecord.of(log.error, clock.now_ms()) if isinstance(log, Unopened) else None
            found.append((log, PartitionView(log_dir.path, log.partition, archived=archived, retention=retention, error=error)))
    return found


def _archived(places: Places, log: LogReader | Unopened) -> Archived | None:
    try:
        return None if isinstance(log, Unopened) else places.memory.archived.get(key_of(log.partition, log.topic_id))
    except LogError:
        return None  # the look at its disk tells


def _on_disk(log: LogReader, view: PartitionView, error: ErrorRecord) -> PartitionView | None:
    """A partition as its log and the last agent show it, where the archive could not be asked; None for one that is gone."""
    try:
        return replace(view.on_disk(scan_log(log, view.archived or NOTHING), view.retention), error=error)
    except NoSuchFile:
        return None  # its broker has just deleted it
    except LogError as e:
        return replace(view, error=ErrorRecord.of(e, error.at_ms))


def _from_the_store(places: Places, found: list[Found], clock: Clock) -> tuple[list[PartitionView | None], ErrorRecord | None]:
    """What the archive says of each, as far as it answers, and what it does not answer with."""
    views: list[PartitionView | None] = [view for _, view in found]
    waiting = {at for at, view in enumerate(views) if view is not None and view.error is None}
    sources = {one.path: cache(one.id) for one in places.log_dirs}

    def asked(at: int) -> tuple[int, PartitionView | None]:
        log, view = found[at]
        assert isinstance(log, LogReader)
        return at, _planned(log, view, places.store, sources[view.log_dir], clock.now_ms())

    threads = places.config.settings.remote_log_manager_copier_thread_pool_size
    for at, view in as_completed(asked, sorted(waiting), threads, lambda: places.trouble(FAILING_S_MAX) is not None):
        views[at] = view
        waiting.discard(at)
    trouble = places.trouble(0)
    if trouble is None:
        return views, None
    problem = ErrorRecord("Unavailable", trouble.problem, clock.now_ms() - round(trouble.seconds * 1000))
    unasked = replace(problem, message=f"{places.store.url} does not respond: only the log directory is shown")
    for at in waiting:  # each with the problem of the one that was asked would name another's manifest
        log, view = found[at]
        views[at] = _on_disk(log, view, unasked) if isinstance(log, LogReader) else view
    return views, problem


def _planned(
    log: LogReader, view: PartitionView, store: ObjectStore, source: Callable[[], str], now_ms: int
) -> PartitionView | None:
    """A partition by what its archive says, too; None for one that its broker has just deleted."""
    try:
        due = plan(log, store)
        archived = Archived.of(due.manifest) if due.manifest.version else None
        seen = scan_log(log, archived or NOTHING)
        error = _loss(due, source, now_ms)
        planned = replace(view, archived=archived, waits=waiting_segments(due), seen_ms=now_ms, error=error)
        return planned.on_disk(seen, view.retention)
    except NoSuchFile:
        return None
    except TopicDeleted as e:
        return replace(view, is_left_alone=True, lag=NO_LAG, error=ErrorRecord.of(e, now_ms))
    except LogError as e:
        return _on_disk(log, view, ErrorRecord.of(e, now_ms))


def _loss(due: OffloadPlan, source: Callable[[], str], now_ms: int) -> ErrorRecord | None:
    """A loss that no manifest has recorded yet, which the next offload will. `source` is the id of the log directory: an offload
    needs it, too, so what is wrong with it is told here."""
    try:
        lost = next((one.reason for one in due.losses(source(), now_ms)), "")
    except LogError as e:
        return ErrorRecord.of(e, now_ms)
    return ErrorRecord("Missing", f"{due.log.partition}: {lost}", now_ms) if lost else None


def rows(answer: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The partitions of a status: those that have lost offsets, then those that lag most, then in order."""
    found = [*answer["partitions"], *answer.get("gone", ())]
    return sorted(found, key=lambda row: (not row["lost_offsets"], -row["lag_ms"], row["topic"], row["partition"]))
