"""Answers for consumer groups (Kafka's GroupCoordinator): many threads ask, one at a time is answered.

Without a log a coordinator has its groups in memory, and keeps no offsets: consumers begin where their own settings
say.
"""

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from remote.clock import Ids, Time
from tiering.endpoint.at_hand import NotAtHand
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.describing import GroupOffsets, described, listed, with_offsets
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_configs import GroupConfigs
from tiering.endpoint.coordinator.group_memory import (
    GroupMemory,
    classic_join_size,
    commit_size,
    counted,
    heartbeat_size,
    join_size,
    sync_size,
)
from tiering.endpoint.coordinator.group_metadata_manager import GroupMetadataManager
from tiering.endpoint.coordinator.joining import Client
from tiering.endpoint.coordinator.journal import Journal
from tiering.endpoint.coordinator.loading import replay
from tiering.endpoint.coordinator.modern.classic_protocol import subscribed_by
from tiering.endpoint.coordinator.modern.describing import described as described_consumers
from tiering.endpoint.coordinator.modern.describing import not_found
from tiering.endpoint.coordinator.modern.heartbeats import Heartbeats
from tiering.endpoint.coordinator.modern.member import LEAVE_EPOCH, LEAVE_STATIC_EPOCH
from tiering.endpoint.coordinator.modern.regular_expressions import matching
from tiering.endpoint.coordinator.modern.topics import NoTopics, Topics
from tiering.endpoint.coordinator.modern.validation import check_request
from tiering.endpoint.coordinator.offset_metadata_manager import EndOf, OffsetMetadataManager
from tiering.endpoint.coordinator.offsets_log import OffsetsLog, Transaction, TransactionalProducer, partition_for
from tiering.endpoint.coordinator.rebalancing import Rebalancing
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.consumer_group_describe import DescribedConsumerGroup
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)
from tiering.endpoint.protocol.messages.describe_groups import DescribedGroup
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from tiering.endpoint.protocol.messages.leave_group import MemberIdentity
from tiering.endpoint.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from tiering.endpoint.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from tiering.endpoint.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from tiering.endpoint.protocol.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

if TYPE_CHECKING:  # the engine that writes is loaded only if it is needed
    from local_log.engine.unified_log import UnifiedLog

FULL: Final = "groups take all of the memory that endpoint.groups.max.bytes allows: delete some, or raise it"
"""Without the name of a group: a client can make up as many as hide all other messages of a minute."""
REFUSED: Final = "commits of offsets are refused, since there is no directory for them: start again with --offsets-dir"
_EXPIRY: Final[Hashable] = "expiry of offsets"


@dataclass(slots=True)
class GroupCoordinator:
    """All groups. `report` is told what whoever runs the endpoint should know."""

    config: GroupCoordinatorConfig
    log: OffsetsLog | None
    clock: Time
    ids: Ids
    report: Callable[[str], object]
    topics: Topics = field(default_factory=NoTopics)
    """Those that consumer groups subscribe."""
    configs: GroupConfigs = field(default_factory=GroupConfigs)
    """What single groups have of their own."""
    _groups: GroupMetadataManager = field(init=False)
    _offsets: OffsetMetadataManager = field(init=False)
    _rebalancing: Rebalancing = field(init=False)
    _heartbeats: Heartbeats = field(init=False)
    _memory: GroupMemory = field(init=False)
    _is_active: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ticking: threading.Lock = field(default_factory=threading.Lock)
    _has_said_refused: bool = False

    def __post_init__(self) -> None:
        journal = None if self.log is None else Journal(self.log, self.clock, self.report)
        self._rebalancing = Rebalancing(self.config, journal, self.clock)
        self._groups = GroupMetadataManager.of(self._rebalancing, self.ids.new_id, self.topics, self.configs)
        self._offsets = OffsetMetadataManager(self.config, journal, self._groups, topics=self.topics)
        self._heartbeats = self._groups.heartbeats
        self._memory = GroupMemory(self.config.groups_bytes_max, self._counted, self.clock)
        self._schedule_expiry()

    def _counted(self) -> int:
        return counted(self._groups.groups.values(), self._groups.consumers.values(), self._offsets.offsets)

    def partition_for(self, group: str) -> int:
        """The partition of `__consumer_offsets` that a group belongs to."""
        return partition_for(group, self.config.offsets_topic_partitions if self.log is None else self.log.partitions)

    def log_of(self, group: str) -> "UnifiedLog":
        """Where the records of a group are, if there is a log. Raises LogError."""
        assert self.log is not None
        return self.log.log_of(group)

    def load(self) -> None:
        """Takes up what the log has. Raises LogError."""
        with self._answering():
            for found in () if self.log is None else self.log.load():
                replay(found, self._groups, self._offsets.offsets)
            self._groups.loaded()
            self._memory.recount()

    def lower_offsets(self, end_of: EndOf) -> None:
        """Sets offsets beyond the ends of their logs to these, once the transactions have ended whose outcome is decided."""
        with self._answering():
            self._offsets.lower(end_of, self.report)

    def forget_former(self, topic_ids: Mapping[str, str]) -> None:
        """Forgets the offsets of topics that were deleted while nobody could; `topic_ids` has all topics by name."""
        with self._answering():
            forgotten = self._offsets.forget_former(topic_ids)
        if forgotten:
            of = forgotten[0]
            whose = f"one of them that of group {of.group} for {of.topic}-{of.partition}"
            self.report(f"{len(forgotten)} offsets of topics that were deleted are forgotten, {whose}")

    def is_due(self) -> bool:
        """Whether there is something to do for `tick`. Takes no time."""
        return self._rebalancing.timers.is_due()

    def tick(self) -> None:
        """Does what is due: members that are not heard of are removed, rebalances go on, offsets expire."""
        if not self._ticking.acquire(blocking=False):
            return  # another thread does it, and may wait for a slow disk: a further one had to wait, too
        try:
            with self._answering():
                for task in self._rebalancing.timers.due():
                    self._do(task)
        finally:
            self._ticking.release()

    def _do(self, task: Callable[[], object]) -> None:
        try:
            task()
        except Exception as e:  # a bug of ours with one group must not keep the others from going on
            self.report(f"a bug: {type(e).__name__}: {e}; please report it")

    def stop(self) -> None:
        """Answers all requests that wait, and refuses further ones."""
        with self._answering():
            self._groups.unload()
            self._is_active = False

    def join_group(self, request: JoinGroupRequest, client: Client, *, may_wait: bool = True) -> "Future[JoinGroupResponse]":
        """The answer to a join, which may come when others have joined. Raises NotAtHand if it had to wait and may not."""
        waiter: Future[JoinGroupResponse] = Future()
        code = self._join_error(request)
        self._look(request.group_id, request, may_wait=may_wait)
        with self._answering(may_wait=may_wait):
            if not may_wait and self._may_write_on_join(request):
                raise NotAtHand
            if code or not self._is_active:
                code = code or ErrorCode.COORDINATOR_NOT_AVAILABLE
                self._rebalancing.refuse_join(waiter, code, request.member_id)
            elif not self._memory.takes(self._more_of_join(request, client), may_count=may_wait):
                self.report(FULL)
                self._rebalancing.refuse_join(waiter, ErrorCode.GROUP_MAX_SIZE_REACHED, request.member_id)
            else:
                self._groups.join(request, client, waiter)
        return waiter

    def _look(self, group_id: str, request: JoinGroupRequest | None = None, *, may_wait: bool = True) -> None:
        """Looks at the topics of a consumer group, which classic members name. Raises NotAtHand if that may take no time."""
        group = self._groups.consumers.get(group_id)
        if group is None or not group.members:
            return
        if not may_wait:
            raise NotAtHand
        self.topics.look(group.subscribed if request is None else group.subscribed | subscribed_by(request))

    def _may_write_on_join(self, request: JoinGroupRequest) -> bool:
        """A group that is new, and a static member that starts anew, are kept at once; all else when the leader has assigned."""
        is_known = request.group_id in self._groups.groups and request.group_instance_id is None
        return self.log is not None and not is_known

    def _join_error(self, request: JoinGroupRequest) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        least, most = self.config.group_min_session_timeout_ms, self.config.group_max_session_timeout_ms
        return ErrorCode.NONE if least <= request.session_timeout_ms <= most else ErrorCode.INVALID_SESSION_TIMEOUT

    def sync_group(self, request: SyncGroupRequest, *, may_wait: bool = True) -> "Future[SyncGroupResponse]":
        """The answer to a sync, which may come when the leader has assigned. Raises NotAtHand if it had to wait and may not."""
        waiter: Future[SyncGroupResponse] = Future()
        self._look(request.group_id, may_wait=may_wait)
        with self._answering(may_wait=may_wait):
            if not may_wait and self._may_write_on_sync(request):
                raise NotAtHand
            try:
                self._check(request.group_id)
                self._require(sync_size(request), ErrorCode.UNKNOWN_SERVER_ERROR, may_wait=may_wait)
                self._groups.sync(request, waiter)
            except GroupError as e:
                self._rebalancing.answer(waiter, SyncGroupResponse(error_code=e.code))
        return waiter

    def _may_write_on_sync(self, request: SyncGroupRequest) -> bool:
        group = self._groups.groups.get(request.group_id)
        return self.log is not None and group is not None and request.member_id == group.leader_id

    def heartbeat(self, request: HeartbeatRequest, *, may_wait: bool = True) -> ErrorCode:
        """Whether a member is to join again. Raises GroupError, and NotAtHand if it had to wait and may not."""
        with self._answering(may_wait=may_wait):
            self._check(request.group_id)
            return self._groups.heartbeat(request)

    def leave_group(self, group_id: str, members: Sequence[MemberIdentity]) -> list[ErrorCode]:
        """Whether each member has left. Raises GroupError."""
        self._look(group_id)
        with self._answering():
            self._check(group_id)
            return self._groups.leave(group_id, members)

    def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        """The groups in some states and of some types."""
        with self._answering():
            return listed(self._groups.all_groups(), request)

    def groups_with_offsets(self) -> Iterator[GroupOffsets]:
        """Every group with its committed offsets, those of open transactions aside. Others are answered between two of them."""
        with self._answering():
            groups = self._groups.all_groups()
        for group in groups:
            with self._answering():
                found = with_offsets(group, self._offsets.offsets.of_group(group.group_id))
            yield found

    @property
    def committed_offsets(self) -> int:
        """How many offsets all groups have committed."""
        with self._answering():
            return self._offsets.offsets.count()

    def describe_group(self, group_id: str, version: int) -> DescribedGroup:
        """A group with its members."""
        with self._answering():
            found = self._groups.consumers.get(group_id) or self._groups.groups.get(group_id)
            return described(group_id, found, version)

    def consumer_group_heartbeat(
        self, request: ConsumerGroupHeartbeatRequest, client: Client, may_describe: Callable[[str], bool]
    ) -> ConsumerGroupHeartbeatResponse:
        """The partitions of a member of a consumer group. `may_describe`: which topics its client may know. Raises GroupError."""
        if not self._is_active:
            raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        check_request(request, client.version, self.config.consumer_group_assignors)
        if request.member_epoch in (LEAVE_EPOCH, LEAVE_STATIC_EPOCH):
            with self._answering():
                self._check(request.group_id)
                return self._heartbeats.leave(request)
        wanted = self._heartbeats.topics_to_look_at(request)
        if wanted is not None:
            self.topics.look(wanted)
        with self._answering():
            self._check(request.group_id)
            group = self._groups.consumers.get(request.group_id)
            self._require(heartbeat_size(request, group, self.topics), ErrorCode.GROUP_MAX_SIZE_REACHED)
            is_classic = request.group_id in self._groups.groups
            heard = self._heartbeats.hear(request, client)
            if is_classic:  # its members take other room than before
                self._memory.recount()
        if heard.regexes:
            self._resolve(request.group_id, heard.regexes, may_describe)
        return heard.response

    def _resolve(self, group_id: str, regexes: Sequence[str], may_describe: Callable[[str], bool]) -> None:
        """Looks for the topics that regular expressions name: not while others wait, since there may be many."""
        names = self.topics.names()
        found = {regex: frozenset(filter(may_describe, matching(regex, names))) for regex in regexes}
        self.topics.look(frozenset().union(*found.values()))
        with self._answering(), suppress(GroupError):  # the journal has said why; the next time will do
            self._groups.of_consumers.resolved(group_id, found, names)

    def describe_consumer_group(self, group_id: str) -> DescribedConsumerGroup:
        """A consumer group with its members. Raises GroupError."""
        with self._answering():
            self._check(group_id)
            group = self._groups.consumers.get(group_id)
            if group is None:
                return not_found(group_id, is_classic=group_id in self._groups.groups)
            return described_consumers(group, self._groups.of_consumers.assignor(group), self.topics)

    def delete_group(self, group_id: str) -> None:
        """Forgets a group without members, and its offsets. Raises GroupError."""
        with self._answering():
            self._offsets.delete_group(group_id)

    def forget_topic(self, topic: str, topic_id: str) -> None:
        """Forgets the offsets of a topic that was deleted."""
        with self._answering():
            self._offsets.forget_topic(topic, topic_id)

    def commit_offsets(self, request: OffsetCommitRequest, version: int, *, may_wait: bool = True) -> OffsetCommitResponse:
        """Keeps offsets of a group. Raises GroupError, and NotAtHand, if it had to wait and may not."""
        if self.log is None and not self._has_said_refused:
            self._has_said_refused = True
            self.report(f"group {request.group_id}: {REFUSED}")
        with self._answering(may_wait=may_wait):
            if self.log is not None:
                self._require(self._more_of_commit(request), ErrorCode.POLICY_VIOLATION, may_wait=may_wait)
            return self._offsets.commit(request, version, self.clock.now_ms(), may_wait=may_wait)

    def commit_transactional_offsets(
        self, request: TxnOffsetCommitRequest, topic_ids: Mapping[str, str], producer: TransactionalProducer
    ) -> TxnOffsetCommitResponse:
        """Keeps offsets of a group if the producer's transaction commits. `topic_ids` are by name. Raises GroupError."""
        with self._answering():
            self._check(request.group_id)
            if self.log is not None:
                self._require(self._more_of_commit(request), ErrorCode.POLICY_VIOLATION)
            return self._offsets.commit_transactional(request, topic_ids, producer, self.clock.now_ms())

    def end_transaction(self, transaction: Transaction, append: Callable[[], None], *, is_committed: bool) -> None:
        """Appends a transaction's marker, since which what groups have committed in it counts. Raises what `append` does."""
        with self._answering():
            append()
            self._offsets.offsets.end_transaction(transaction, is_committed=is_committed)

    def fetch_offsets(self, request: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """The offsets of a group. Raises GroupError for who is no member of it."""
        with self._answering():
            return self._offsets.fetch(request, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """Forgets offsets of a group. Raises GroupError."""
        with self._answering():
            self._check(request.group_id)
            return self._offsets.delete(request)

    def _more_of_join(self, request: JoinGroupRequest, client: Client) -> int:
        consumers = self._groups.consumers.get(request.group_id)
        if consumers is not None:
            return classic_join_size(request, client.client_id, consumers, self.topics)
        group = self._groups.groups.get(request.group_id)
        return join_size(request, client.client_id, None if group is None else group.members.get(request.member_id))

    def _more_of_commit(self, request: OffsetCommitRequest | TxnOffsetCommitRequest) -> int:
        is_new = request.group_id not in self._groups.groups and request.group_id not in self._groups.consumers
        return commit_size(request, self._offsets.offsets.of_group(request.group_id), is_new=is_new)

    def _require(self, size: int, code: ErrorCode, *, may_wait: bool = True) -> None:
        """Raises GroupError if there is no memory for so many bytes more, NotAtHand if it takes time to say and may not."""
        if not self._memory.takes(size, may_count=may_wait):
            self.report(FULL)
            raise GroupError(code)

    def _check(self, group_id: str) -> None:
        if not group_id:
            raise GroupError(ErrorCode.INVALID_GROUP_ID)
        if not self._is_active:
            raise GroupError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _schedule_expiry(self) -> None:
        self._rebalancing.timers.schedule(_EXPIRY, self.config.offsets_retention_check_interval_ms, self._expire)

    def _expire(self) -> None:
        self._schedule_expiry()
        self._offsets.expire(self.clock.now_ms())

    @contextmanager
    def _answering(self, *, may_wait: bool = True) -> Iterator[None]:
        """One thread at a time; those who wait are answered after it. Raises NotAtHand for who had to wait and may not."""
        if not self._lock.acquire(may_wait):
            raise NotAtHand
        try:
            yield
        finally:
            try:
                self._tell_who_waits()
            finally:
                self._lock.release()

    def _tell_who_waits(self) -> None:
        answers, self._rebalancing.answers = self._rebalancing.answers, []
        for answer in answers:
            waiter: Any = answer.waiter
            waiter.set_result(answer.response)
