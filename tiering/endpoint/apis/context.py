"""What the answers are made of: the logs, their readers, the clock, and the brokers that clients reach."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from local_log.errors import Corrupt, LogError, Missing, NotFound, OffsetOutOfRange, UnsupportedCompressionType
from local_log.formats.filenames import is_topic_name
from remote.clock import Time
from remote.read.plan import MissingRange
from tiering.endpoint.appends.at_once import AppendsAtOnce
from tiering.endpoint.appends.free_room import FreeRoom
from tiering.endpoint.appends.group_commit import GroupCommit
from tiering.endpoint.at_hand import NotAtHand
from tiering.endpoint.authorization.acl_file import AclFile
from tiering.endpoint.authorization.authorizer import Authorizer
from tiering.endpoint.brokers.live_brokers import Cluster, LiveBrokers
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.fetch_sessions.manager import FetchManager
from tiering.endpoint.hosted_logs import RETRY_MS, HostedTopic
from tiering.endpoint.logs import Logs
from tiering.endpoint.metrics import EndpointMetrics
from tiering.endpoint.protocol.api_keys import APIS, READING_APIS, Api
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.scram_credentials import ScramCredentialDeletion, ScramCredentialUpsertion
from tiering.endpoint.protocol.reading import ELEMENT_BYTES, ELEMENTS_MAX
from tiering.endpoint.quotas.client_quotas import ClientQuotas
from tiering.endpoint.quotas.quota_file import QuotaFile
from tiering.endpoint.reads import Reads
from tiering.endpoint.settings import DEFAULTS, QUEUED_MAX_REQUEST_BYTES, Settings
from tiering.endpoint.transactions.transaction_coordinator import TransactionCoordinator
from tiering.read.tiered_log import Isolation, TieredLog

if TYPE_CHECKING:  # the engine that writes is loaded only if it is needed
    from tiering.local_tier.local_tier import LocalTier

CLUSTER_ID: Final = "kafka-tiering"
"""What a cluster is called whose own id nobody knows."""

INTERNAL_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})

COORDINATORS_TOPICS: Final = frozenset({"__consumer_offsets", "__transaction_state"})
"""What the coordinators of this process write: they live as long as it does, and with as many partitions."""

NO_EPOCH = -1
ISOLATION_LEVELS = (0, 1)


class ScramUsers(Protocol):
    """What is kept of passwords."""

    def iterations(self) -> Mapping[str, Mapping[str, int]]:
        """How often passwords were hashed, by user and mechanism. Raises LogError."""

    def change(self, deletions: Iterable[ScramCredentialDeletion], upsertions: Iterable[ScramCredentialUpsertion]) -> None:
        """All of it, or nothing. Raises LogError, OSError."""


@dataclass(frozen=True, slots=True)
class Context:
    """`report` is told of every error that a client is answered for our reasons."""

    logs: Logs
    reads: Reads
    fetches: FetchManager
    clock: Time
    cluster: Cluster
    report: Callable[[str], object]
    groups: GroupCoordinator
    settings: Settings = DEFAULTS
    cluster_id: str = CLUSTER_ID
    acls: AclFile | None = None
    """Says who may do what; without it everybody may read all."""
    quotas: ClientQuotas | None = None
    """Says how much clients may fetch; without it as much as they like."""
    quota_file: QuotaFile | None = None
    """Where the quotas are kept, if they are in a file."""
    users: ScramUsers | None = None
    """Those that authenticate with passwords; without it there are none."""
    metrics: EndpointMetrics = field(default_factory=EndpointMetrics)
    audit: Callable[[str], object] = lambda _: None
    """Is told of every operation that a client asked for and is denied (Kafka's `kafka.authorizer.logger`)."""
    local_tier: "LocalTier | None" = None
    """The log directories that this process owns; without it nothing is written."""
    group_commit: GroupCommit | None = None
    """Syncs what is appended with `acks=all` before it is acknowledged; without it nothing is synced for that."""
    room: FreeRoom = field(default_factory=FreeRoom)
    """How much the volumes of these directories still take."""
    at_once: AppendsAtOnce = field(default_factory=AppendsAtOnce)
    """Whether appends may be made where answers may not wait."""
    transactions: TransactionCoordinator | None = None
    """Where there is a local tier."""
    may_wait: bool = True
    """Whether an answer may wait for a store, a disk or another thread; if not, NotAtHand is raised instead."""

    def look(self) -> None:
        """Looks whether files of rules have changed."""
        if self.acls is not None:
            self.acls.look()
        if self.quota_file is not None:
            self.quota_file.look()

    @property
    def coordinators(self) -> tuple[GroupCoordinator | TransactionCoordinator, ...]:
        """Those that there are, which have things to do from time to time."""
        return (self.groups,) if self.transactions is None else (self.groups, self.transactions)

    @property
    def apis(self) -> Mapping[int, Api]:
        """Those that are offered and answered, by key."""
        return READING_APIS if self.local_tier is None else APIS

    @property
    def elements_max(self) -> int:
        """Of a request: what is made of one must fit into the memory of all."""
        return min(ELEMENTS_MAX, int(self.settings[QUEUED_MAX_REQUEST_BYTES]) // ELEMENT_BYTES)

    @property
    def authorizer(self) -> Authorizer | None:
        """None where everybody may read all."""
        return None if self.acls is None else self.acls.authorizer


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """A partition is not answered for."""

    code: ErrorCode


def topic_named(context: Context, name: str) -> HostedTopic | LogError | None:
    """A topic, or why it cannot be opened. Raises NotAtHand if the answer may not wait."""
    if not context.may_wait:
        known = context.logs.at_hand(name)
        if known is None:
            raise NotAtHand
        return known
    try:
        return context.logs.topic(name)
    except LogError as e:
        return e


def unknown_topic(name: str) -> ErrorCode:
    """What is told of a topic that there is not: whether there could be one of this name."""
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_topic_name(name) else ErrorCode.INVALID_TOPIC_EXCEPTION


def log_of(topic: HostedTopic | LogError | None, number: int, current_leader_epoch: int, live: LiveBrokers) -> TieredLog:
    """The partition's log. Raises Refused, LogError."""
    if isinstance(topic, LogError):
        raise topic.with_traceback(None)  # it is raised for each request: else it would hold something of all of them
    log = None if topic is None else topic.partitions.get(number)
    if log is None:
        raise Refused(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if topic is not None and not live.leads(topic.name, number):
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    if isinstance(log, LogError):
        raise log.with_traceback(None)
    epoch = leader_epoch_of(log)
    if current_leader_epoch not in (NO_EPOCH, epoch):
        older = current_leader_epoch < epoch
        raise Refused(ErrorCode.FENCED_LEADER_EPOCH if older else ErrorCode.UNKNOWN_LEADER_EPOCH)
    return log


def newest_log_of(topic: HostedTopic, number: int, current_leader_epoch: int, asked_ms: int, context: Context) -> TieredLog:
    """The partition's log with the manifest that the archive has now: another broker, which led it before, may have told of it.

    A topic that was loaded a moment before `asked_ms` is not loaded again: the client is to ask again. Raises Refused, LogError.
    """
    if asked_ms - topic.loaded_ms < RETRY_MS:
        raise Refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)  # of those that make a client wait and retry, the one that all know
    return log_of(context.logs.reloaded(topic.name, asked_ms), number, current_leader_epoch, context.cluster.live)


def leader_epoch_of(log: TieredLog) -> int:
    """The newest leader epoch of either tier, 0 for a log without epochs."""
    local = log.local.leader_epochs if log.local is not None else ()
    archived = log.archived.manifest.leader_epochs if log.archived is not None else ()
    return max((entry.epoch for entry in (*local[-1:], *archived[-1:])), default=0)


def isolation_of(level: int) -> Isolation:
    """Of a request's isolation level."""
    return Isolation.read_committed if level else Isolation.read_uncommitted


def code_of(error: LogError | Refused) -> ErrorCode:
    """What a client is told of an error."""
    if isinstance(error, Refused):
        return error.code
    if isinstance(error, OffsetOutOfRange) and not isinstance(error, MissingRange):
        return ErrorCode.OFFSET_OUT_OF_RANGE
    if isinstance(error, UnsupportedCompressionType):
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    # Clients give up upon the first; retention may have taken what is missing, which the newest manifest tells.
    is_damage = isinstance(error, Corrupt) and not isinstance(error, Missing)
    return ErrorCode.CORRUPT_MESSAGE if is_damage else ErrorCode.KAFKA_STORAGE_ERROR


def is_ours(error: LogError | Refused) -> bool:
    """Whether an error is the logs' or the store's, not the request's."""
    return code_of(error) in (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.CORRUPT_MESSAGE)


def may_be_of_an_old_manifest(error: LogError | Refused) -> bool:
    """Whether the error may be gone with a newer manifest: one that ends later, or that names other objects."""
    if isinstance(error, OffsetOutOfRange):
        return error.offset > error.end
    return isinstance(error, NotFound | Corrupt)
