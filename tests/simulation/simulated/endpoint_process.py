"""The endpoint of a process that owns its log directory, without sockets and threads: its state machines and what they answer.

A request is answered in the greenlet of the actor that asks. Others run while it waits, and between the markers of a transaction.
"""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Final, Protocol

from archive_fakes import CountingIds
from asked_endpoint import bytes_of, response_of

from local_log.disk import Disk
from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition
from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from remote.read.context import ReadContext
from remote.store.api import ObjectStore
from simulated.network import ANSWER_MS_MAX, Asked, Gone, NoAnswer
from simulated.readers import decoded
from simulated.schedule import Actor, Schedule
from tiering.endpoint.apis.context import Context
from tiering.endpoint.apis.kafka_apis import Later, Throttled, handle, handle_at_once
from tiering.endpoint.appends.group_commit import GroupCommit
from tiering.endpoint.brokers.live_brokers import Broker, alone
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.offset_metadata_manager import LogEnd
from tiering.endpoint.coordinator.offsets_topic import OffsetsTopic
from tiering.endpoint.fetch_sessions.cache import FetchSessionCache
from tiering.endpoint.fetch_sessions.manager import FetchManager
from tiering.endpoint.hosted_topics import HostedTopics
from tiering.endpoint.network.actions import Close
from tiering.endpoint.network.config import SocketServerConfig
from tiering.endpoint.network.socket_server import SocketServer
from tiering.endpoint.own_logs import OwnLogs
from tiering.endpoint.protocol.api_keys import FETCH, OFFSET_COMMIT, PRODUCE, TXN_OFFSET_COMMIT, Api
from tiering.endpoint.protocol.errors import ErrorCode, InvalidRequest
from tiering.endpoint.reads import Reads
from tiering.endpoint.request_context import ConnectionContext
from tiering.endpoint.transactions import opening
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.markers import Markers
from tiering.endpoint.transactions.transaction_log import Marker
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.reads import TierReads

CLIENT: Final = ConnectionContext("0", "192.0.2.1", 50_000)
SESSION_MS, REBALANCE_MS = 30_000, 60_000
YEAR_MS: Final = 365 * 24 * 3_600_000
GROUPS: Final = GroupCoordinatorConfig(
    offsets_topic_partitions=1, offsets_topic_segment_bytes=1 << 20, consumer_group_session_timeout_ms=SESSION_MS,
    offsets_retention_ms=YEAR_MS, offsets_retention_check_interval_ms=YEAR_MS,
)  # fmt: skip
"""Groups stay: their generations go on from each other for as long as a schedule takes."""
TRANSACTIONS: Final = TransactionConfig(
    state_partitions=1, state_segment_bytes=1 << 20, id_expiration_ms=YEAR_MS, remove_interval_ms=YEAR_MS
)
BY_GROUP_COMMIT: Final = (PRODUCE, OFFSET_COMMIT, TXN_OFFSET_COMMIT)


class SyncsLater(Executor):
    """Does what it is given when others have run."""

    def __init__(self) -> None:
        self._due: list[Callable[[], object]] = []

    def submit(self, fn: Callable[..., Any], /, *args: Any, **options: Any) -> Future[Any]:
        self._due.append(lambda: fn(*args, **options))
        return Future()

    def run(self) -> None:
        due, self._due = self._due, []
        for one in due:
            one()


class Judged(Protocol):
    """Who is told what a process does. None of it fails but by a Violation."""

    def observes(self) -> None:
        """Something may have been appended."""

    def answers(self, api: Api, asked: Any, found: Any) -> None:
        """An answer is given."""

    def takes_up(self, api: Api, asked: Any) -> None:
        """An answer will be given when what is appended is synced."""

    def is_synced(self, api: Api, asked: Any, found: Any) -> None:
        """Such an answer is given."""

    def marked(self, partition: TopicPartition, marker: Marker) -> None:
        """A partition has a transaction's marker."""

    def store(self, actor: Actor) -> ObjectStore:
        """The archive, as a request of an actor reads it."""


@dataclass(eq=False)
class Clock:
    """The true time, for coordinators; and the process that they are of."""

    schedule: Schedule
    process: "EndpointProcess"

    def now_ms(self) -> int:
        return self.schedule.now

    def hi_res_clock_ms(self) -> int:
        return self.schedule.now

    def sleep(self, seconds: float) -> None:
        raise AssertionError(seconds)


class WatchedMarkers(Markers):
    """Others run before each marker, as they do before a real one: no lock is held then."""

    def write(self, partition: TopicPartition, marker: Marker) -> ErrorCode:
        assert isinstance(self.clock, Clock)
        process = self.clock.process
        process.lets_others_run()
        code = super().write(partition, marker)
        process.judge.observes()
        if code is ErrorCode.NONE:
            process.judge.marked(partition, marker)
        return code


class EndpointProcess:
    """An endpoint on a tier that has started, until `is_dead`."""

    def __init__(self, schedule: Schedule, tier: LocalTier, disk: Disk, judge: Judged, *, syncs: bool) -> None:
        self.schedule, self.tier, self.disk, self.judge = schedule, tier, disk, judge
        self.is_dead = False
        self.clock, self.syncing = Clock(schedule, self), SyncsLater()
        self.core = SocketServer(SocketServerConfig())
        self._numbers, self._taken = count(1), dict[object, bytes]()
        logs, report = OwnLogs(TierReads(tier, None), disk), self._report
        self.groups = GroupCoordinator(
            GROUPS, OffsetsTopic.of(tier, GROUPS), self.clock, schedule_ids(schedule), report, HostedTopics(logs)
        )
        self.groups.load()
        self.transactions = opening.open_transactions(tier, replace(TRANSACTIONS, syncs=syncs), self.groups, self.clock, report)
        if not tier.offline:
            self.groups.forget_former({name: topic.topic_id or ZERO_TOPIC_ID for name, topic in tier.topics().items()})
        self.groups.lower_offsets(self._end_of)
        fetches = FetchManager(FetchSessionCache(CountingIds()))
        self._context = Context(
            logs, Reads(), fetches, self.clock, alone(Broker(1, "broker.test", 9092)), report, self.groups,
            local_tier=tier, group_commit=GroupCommit(self.syncing) if syncs else None, transactions=self.transactions,
        )  # fmt: skip

    def _report(self, text: str) -> None:
        self.schedule.tell("endpoint", text)
        if "a bug" in text:
            raise self.schedule.violated(text)

    def _end_of(self, topic: str, number: int) -> LogEnd | None:
        with suppress(LogError):
            log = self.tier.log(TopicPartition(topic, number))
            return LogEnd(self.tier.topic(topic).topic_id or ZERO_TOPIC_ID, log.log_end_offset)
        return None

    # Time

    def tick(self) -> None:
        """What is due in groups and transactions."""
        for one in (self.groups, self.transactions):
            if one.is_due():
                one.tick()

    def stop(self) -> None:
        """As at a clean stop: who waits is answered."""
        self.syncing.run()
        self.groups.stop()

    def lets_others_run(self) -> None:
        """Raises Gone if the process has ended meanwhile."""
        actor = self.schedule.running
        if actor is not None and not self.is_dead:
            actor.pause()
        if self.is_dead:
            raise Gone

    # Requests

    def connect(self) -> int:
        number = next(self._numbers)
        self.core.accepted(number, CLIENT.client_address, self.schedule.now)
        return number

    def disconnect(self, number: int) -> None:
        self.core.closed(number)

    def take_late(self, asked: Asked) -> None:
        """A request whose connection is gone; nobody hears the answer, which others may not wait for, either."""
        self._answered(asked, handle(asked.frame[4:], CLIENT, self._context))

    def answer(self, actor: Actor, number: int, asked: Asked) -> bytes:
        """The whole frame. Raises NoAnswer if the connection is closed, and Gone."""
        try:
            if any(isinstance(one, Close) for one in self.core.received(number, asked.frame, self.schedule.now)):
                raise NoAnswer  # noqa: TRY301  # its turn ends as with any other that has no answer
            parts = self._parts(actor, asked, self._turn(number))
        except BaseException:
            if not self.is_dead:
                self.core.refuse(number, "")
            raise
        if self.core.answered(number, parts) is None:
            raise NoAnswer
        self.core.sent(number, self.schedule.now)
        return b"".join(map(bytes_of, parts))

    def _turn(self, number: int) -> bytes:
        while number not in self._taken:
            one = self.core.take_request()
            if one is None:
                self.lets_others_run()
            else:
                self._taken[one[0]] = one[1]
        return self._taken.pop(number)

    def _parts(self, actor: Actor, asked: Asked, frame: bytes) -> list[Any]:
        context = self._context
        if asked.api is FETCH:
            logs = OwnLogs(TierReads(self.tier, self.judge.store(actor), ReadContext(decoded)), self.disk)
            context = replace(context, logs=logs, reads=Reads())
        try:
            found: Any = handle_at_once(frame, CLIENT, replace(context, may_wait=False))
            found = found() if callable(found) else found
        except InvalidRequest as e:
            raise self.schedule.violated(f"{asked.api.name} is refused: {e}") from e
        except LogError as e:
            self.schedule.tell("endpoint", f"closes a connection: {e}")
            raise NoAnswer from e
        if self.is_dead:  # it has ended while the archive was asked
            raise Gone
        found = self._answered(asked, found)
        return self._waited_for(actor, found) if isinstance(found, Later) else found

    def _answered(self, asked: Asked, found: Any) -> Any:
        """The parts of an answer, or what is waited for, once the judges know."""
        self.judge.observes()
        if isinstance(found, Later):
            by_sync = asked.api in BY_GROUP_COMMIT
            if by_sync:
                self.judge.takes_up(asked.api, asked.message)
            found.response.add_done_callback(lambda of: self._resolved(asked, of.result(), by_sync=by_sync))
            return found
        parts = found.parts if isinstance(found, Throttled) else found
        response = response_of(asked.api, asked.version, b"".join(map(bytes_of, parts)))
        self.judge.answers(asked.api, asked.message, response)
        return parts

    def _resolved(self, asked: Asked, response: Any, *, by_sync: bool) -> None:
        if by_sync:
            self.judge.is_synced(asked.api, asked.message, response)
        else:
            self.judge.answers(asked.api, asked.message, response)

    def _waited_for(self, actor: Actor, later: Later) -> list[Any]:
        until = self.schedule.now + ANSWER_MS_MAX
        while not later.response.done():
            if self.schedule.now > until:
                raise NoAnswer
            if actor.is_atomic:
                self.schedule.now += 500
                self.tick()
            self.lets_others_run()
            self.syncing.run()
        found = later.parts()
        return found.parts if isinstance(found, Throttled) else found


def schedule_ids(schedule: Schedule) -> CountingIds:
    """Ids of members that no process of the schedule has given before."""
    return CountingIds(f"m{schedule.steps:07}")  # of one length, since zeros follow
