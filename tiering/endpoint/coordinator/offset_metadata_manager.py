"""Commits, fetches and deletions of offsets (Kafka's OffsetMetadataManager). What is written is applied after it is written.

Whoever is no member may commit for a group that has none; a group that is not there is made so.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.coordinator.classic_group import CONSUMER, ClassicGroup
from tiering.endpoint.coordinator.committed_offsets import CommittedOffsets, Partition
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.group_metadata_manager import GroupMetadataManager
from tiering.endpoint.coordinator.group_states import EMPTY, ON_COMMIT, STABLE
from tiering.endpoint.coordinator.journal import Journal
from tiering.endpoint.coordinator.modern.consumer_group import ConsumerGroup
from tiering.endpoint.coordinator.modern.topics import NoTopics, Topics
from tiering.endpoint.coordinator.modern.validation import check_commit, check_fetch, check_transactional_commit
from tiering.endpoint.coordinator.offsets_log import TransactionalProducer, partition_for
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
from tiering.endpoint.coordinator.records import (
    NO_EXPIRY,
    OffsetAndMetadata,
    in_batches,
    offset_commit_record,
    offset_commit_tombstone,
    tombstone_size,
)
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tiering.endpoint.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tiering.endpoint.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)

_NO_LEADER_EPOCH: Final = -1
_NO_OFFSET: Final = -1
_NO_RETENTION_TIME: Final = -1
_UNKNOWN_GROUP_SINCE: Final = 9
"""The version of OffsetCommit since which an unknown group has an error of its own."""

_Lowered = tuple[OffsetCommitKey, OffsetAndMetadata]
_Kept = tuple[OffsetCommitKey, OffsetAndMetadata | None]


class LogEnd(NamedTuple):
    """The log end offset of a partition, and the id of its topic, which is zeros if that is not known."""

    topic_id: str
    offset: int


EndOf = Callable[[str, int], LogEnd | None]
"""Where the log of a topic's partition ends, None if that is not known."""


@dataclass(slots=True)
class OffsetMetadataManager:
    """The offsets of all groups. Without a journal there are none, and commits are refused."""

    config: GroupCoordinatorConfig
    journal: Journal | None
    groups: GroupMetadataManager
    offsets: CommittedOffsets = field(default_factory=CommittedOffsets)
    topics: Topics = field(default_factory=NoTopics)
    """Those that consumer groups subscribe."""

    def commit(self, request: OffsetCommitRequest, version: int, now_ms: int, *, may_wait: bool = True) -> OffsetCommitResponse:
        """Keeps offsets. Topics have their names, and their ids where these are known. Raises GroupError.

        Also NotAtHand, if it had to wait and may not: it may be asked again then.
        """
        if self.journal is None:
            raise GroupError(ErrorCode.POLICY_VIOLATION)  # an error that clients neither repeat nor take for one of theirs
        self._validate_commit(request, version)
        kept: list[_Kept] = []
        answers = []
        for topic in request.topics:
            codes = [self._metadata_error(one) for one in topic.partitions]
            fit = (one for one, code in zip(topic.partitions, codes, strict=True) if not code)
            kept += (_kept(request, topic, one, now_ms) for one in fit)
            partitions = zip((one.partition_index for one in topic.partitions), codes, strict=True)
            of_topic = tuple(OffsetCommitResponsePartition(number, code) for number, code in partitions)
            answers.append(OffsetCommitResponseTopic(topic.name, topic.topic_id, of_topic))
        self._write(request.group_id, kept, may_wait=may_wait)
        self.groups.ensure(request.group_id)
        return OffsetCommitResponse(topics=tuple(answers))

    def commit_transactional(
        self, request: TxnOffsetCommitRequest, topic_ids: Mapping[str, str], producer: TransactionalProducer, now_ms: int
    ) -> TxnOffsetCommitResponse:
        """Keeps offsets that count if the producer's transaction commits. `topic_ids` are by name. Raises GroupError."""
        if self.journal is None:
            raise GroupError(ErrorCode.POLICY_VIOLATION)
        self._validate_transactional(request)
        kept: list[_Kept] = []
        answers = []
        for topic in request.topics:
            codes, topic_id = [self._metadata_error(one) for one in topic.partitions], topic_ids[topic.name]
            for one, code in zip(topic.partitions, codes, strict=True):
                if not code:
                    committed = one.committed_offset, one.committed_leader_epoch, one.committed_metadata or ""
                    offset = OffsetAndMetadata(*committed, now_ms, topic_id=topic_id)
                    kept.append((OffsetCommitKey(request.group_id, topic.name, one.partition_index), offset))
            numbers = (one.partition_index for one in topic.partitions)
            of_topic = tuple(TxnOffsetCommitResponsePartition(n, code) for n, code in zip(numbers, codes, strict=True))
            answers.append(TxnOffsetCommitResponseTopic(topic.name, of_topic))
        self._write(request.group_id, kept, producer)
        self.groups.ensure(request.group_id)
        return TxnOffsetCommitResponse(topics=tuple(answers))

    def fetch(self, request: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """The offsets of a group, of all partitions if `topics` is null. Raises GroupError for who is no member."""
        consumers = self.groups.consumers.get(request.group_id)
        if consumers is not None:
            check_fetch(consumers, request.member_id, request.member_epoch)
        topics = request.topics
        if topics is None:
            numbers: dict[str, list[int]] = {}
            for name, number in self.offsets.of_group(request.group_id):
                numbers.setdefault(name, []).append(number)
            topics = tuple(OffsetFetchRequestTopics(name, partition_indexes=tuple(of)) for name, of in numbers.items())
        found = (
            OffsetFetchResponseTopics(
                topic.name,
                topic.topic_id,
                tuple(self._fetched(request.group_id, topic, one, require_stable) for one in topic.partition_indexes),
            )
            for topic in topics
        )
        return OffsetFetchResponseGroup(request.group_id, tuple(found))

    def delete(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """Forgets offsets of a group. Raises GroupError."""
        group = self.groups.any_group(request.group_id)
        if group.members and group.protocol_type != CONSUMER:
            raise GroupError(ErrorCode.NON_EMPTY_GROUP)
        codes = {
            topic.name: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if group.is_subscribed(topic.name) else ErrorCode.NONE
            for topic in request.topics
        }
        asked = (
            OffsetCommitKey(request.group_id, topic.name, one.partition_index)
            for topic in request.topics
            for one in topic.partitions
        )
        self._delete(request.group_id, (key for key in asked if not codes[key.topic] and self._has(key)))
        answers = (
            OffsetDeleteResponseTopic(
                topic.name,
                tuple(OffsetDeleteResponsePartition(one.partition_index, codes[topic.name]) for one in topic.partitions),
            )
            for topic in request.topics
        )
        return OffsetDeleteResponse(topics=tuple(answers))

    def delete_group(self, group_id: str) -> None:
        """Forgets a group without members, and its offsets. Raises GroupError."""
        self.groups.validate_delete(group_id)
        self._forget(group_id)

    def expire(self, now_ms: int) -> None:
        """Forgets the offsets whose retention has passed, and groups that have neither offsets nor members.

        What cannot be forgotten is left for the next time.
        """
        for group in self.groups.all_groups():
            with suppress(GroupError):  # the journal has said why
                self._delete(group.group_id, tuple(self._expired(group, now_ms)))
                has_none = not self.offsets.of_group(group.group_id) and not self.offsets.has_pending(group.group_id)
                if has_none and _is_unused(group):
                    self._forget(group.group_id)

    def lower(self, end_of: EndOf, report: Callable[[str], object]) -> None:
        """Sets offsets beyond the ends of their logs to these: what is written next would be skipped up to them.

        Also those of open transactions, which may still be committed. They are synced: when the logs have grown, nothing would
        tell that an offset was beyond the end of one. Not those of a former topic of the same name, which nobody is told. Those
        of a group that cannot be written stay as they are, which the journal reports.
        """
        lowered: dict[tuple[str, int | None], list[_Lowered]] = {}
        for group in self.offsets.groups():
            for (topic, number), offset in self.offsets.of_group(group).items():
                if at_end := _at_end(offset, end_of(topic, number)):
                    lowered.setdefault((group, None), []).append((OffsetCommitKey(group, topic, number), at_end))
        for (_, producer_id), key, offset in self.offsets.pending():
            if at_end := _at_end(offset, end_of(key.topic, key.partition)):
                lowered.setdefault((key.group, producer_id), []).append((key, at_end))
        for (group, producer), of_group in lowered.items():
            with suppress(GroupError):
                self._write_lowered(group, producer, of_group, report)

    def _write_lowered(
        self, group: str, producer_id: int | None, lowered: list[_Lowered], report: Callable[[str], object]
    ) -> None:
        """Writes and syncs offsets of a group, of this producer's open transaction or of none."""
        if self.journal is None:
            return
        producer = None if producer_id is None else self.journal.open_producer(group, producer_id)
        if producer_id is not None and producer is None:
            return  # the log has no transaction of it open, so nothing will be committed
        for batch in in_batches(lowered, _size_of_commit):
            self._write(group, batch, producer)
            key, at_end = batch[0]
            whose = "its offsets" if producer is None else f"its offsets in an open transaction of producer {producer_id}"
            report(
                f"group {group}: {len(batch)} of {whose} were beyond the ends of their logs, which have lost "
                f"records, and are set to these, that of {key.topic}-{key.partition} to {at_end.committed_offset}"
            )
        self.journal.sync(group)

    def forget_topic(self, topic: str, topic_id: str) -> None:
        """Forgets the offsets of a topic that was deleted, also those that are pending: one of its name begins anew.

        Those of another topic of this name are kept. What cannot be forgotten is left.
        """
        self._delete_all(self.offsets.of_topic(topic, topic_id))

    def forget_former(self, topic_ids: Mapping[str, str]) -> list[OffsetCommitKey]:
        """Forgets, for good, what `CommittedOffsets.of_former` tells; the keys. What cannot be forgotten is left."""
        forgotten = self._delete_all(self.offsets.of_former(topic_ids))
        if self.journal is not None:  # a topic that is made later must not get them back
            for group in {partition_for(key.group, self.journal.log.partitions): key.group for key in forgotten}.values():
                self.journal.sync(group)
        return forgotten

    def _delete_all(self, found: Mapping[str, list[OffsetCommitKey]]) -> list[OffsetCommitKey]:
        """Forgets offsets by group; the keys of those that could be forgotten."""
        forgotten: list[OffsetCommitKey] = []
        for group, keys in found.items():
            with suppress(GroupError):  # the journal has said why
                self._delete(group, keys)
                forgotten += keys
        return forgotten

    def _delete(self, group: str, keys: Iterable[OffsetCommitKey]) -> None:
        for batch in in_batches(keys, tombstone_size):
            self._write(group, [(key, None) for key in batch])

    def _forget(self, group_id: str) -> None:
        *former, last = [*in_batches(self.offsets.keys(group_id), tombstone_size)] or [[]]
        for batch in former:
            self._delete(group_id, batch)
        if self.journal is not None:
            tombstones = [offset_commit_tombstone(key) for key in last]
            self.journal.write(group_id, [*tombstones, *self.groups.tombstones(group_id)])
        for key in last:
            self.offsets.replay(key, None)
        self.groups.remove(group_id)

    def _expired(self, group: ClassicGroup | ConsumerGroup, now_ms: int) -> Iterable[OffsetCommitKey]:
        """Of a group that has members only what these do not subscribe, and nothing while they join."""
        emptied_ms: int | None = None
        if isinstance(group, ClassicGroup):
            is_simple, is_stable = group.protocol_type is None, group.state is STABLE and group.topics is not None
            if not (is_simple or group.state is EMPTY or is_stable):
                return
            emptied_ms = group.state_ms if not is_simple and group.state is EMPTY else None
        for (topic, number), offset in self.offsets.of_group(group.group_id).items():
            used_ms = offset.commit_timestamp_ms if emptied_ms is None else emptied_ms
            expires_ms = offset.expire_timestamp_ms
            if expires_ms == NO_EXPIRY:
                expires_ms = used_ms + self.config.offsets_retention_ms
            if now_ms >= expires_ms and not group.is_subscribed(topic):
                key = OffsetCommitKey(group.group_id, topic, number)
                if not self.offsets.is_pending(key.group, (topic, number)):
                    yield key

    def _has(self, key: OffsetCommitKey) -> bool:
        partition: Partition = (key.topic, key.partition)
        return partition in self.offsets.of_group(key.group) or self.offsets.is_pending(key.group, partition)

    def _validate_commit(self, request: OffsetCommitRequest, version: int) -> None:
        group, generation = self.groups.groups.get(request.group_id), request.generation_id_or_member_epoch
        consumers = self.groups.consumers.get(request.group_id)
        if consumers is not None:
            check = check_commit(consumers, request.member_id, generation, version)
            for topic in request.topics:
                for one in topic.partitions:
                    if not self._metadata_error(one):
                        check(topic.topic_id, one.partition_index)
            return
        if group is None and generation >= 0:
            is_known = version >= _UNKNOWN_GROUP_SINCE
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND if is_known else ErrorCode.ILLEGAL_GENERATION)
        if group is None or (generation < 0 and group.state is EMPTY):
            return
        group.validate_member(request.member_id, request.group_instance_id)
        group.validate_generation(generation)
        if ON_COMMIT[group.state]:
            raise GroupError(ON_COMMIT[group.state])
        self.groups.rebalancing.expect_heartbeat(group, group.members[request.member_id])

    def _validate_transactional(self, request: TxnOffsetCommitRequest) -> None:
        """A producer may name no member, as older ones do; one that it names must be of the current generation."""
        group, generation = self.groups.groups.get(request.group_id), request.generation_id
        consumers, is_named = self.groups.consumers.get(request.group_id), generation >= 0 or bool(request.member_id)
        if consumers is not None:
            if is_named or request.group_instance_id is not None:
                check = check_transactional_commit(consumers, request.member_id, generation)
                for one in request.topics:
                    topic = self.topics.topic(one.name)
                    for partition in one.partitions:
                        check(ZERO_TOPIC_ID if topic is None else topic.topic_id, partition.partition_index)
            return
        if group is None and generation >= 0:
            raise GroupError(ErrorCode.ILLEGAL_GENERATION)
        if group is None or (generation < 0 and group.state is EMPTY):
            return
        if is_named or request.group_instance_id is not None:
            group.validate_member(request.member_id, request.group_instance_id)
            group.validate_generation(generation)

    def _metadata_error(self, partition: OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition) -> ErrorCode:
        text = partition.committed_metadata or ""
        size = len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if size > self.config.offset_metadata_max else ErrorCode.NONE

    def _fetched(
        self, group: str, topic: OffsetFetchRequestTopics, number: int, require_stable: bool
    ) -> OffsetFetchResponsePartitions:
        partition = (topic.name, number)
        if require_stable and self.offsets.is_pending(group, partition):
            return OffsetFetchResponsePartitions(number, _NO_OFFSET, metadata="", error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        offset = self.offsets.of_group(group).get(partition)
        if offset is None or offset.is_of_another(topic.topic_id):
            return OffsetFetchResponsePartitions(number, _NO_OFFSET, metadata="")
        return OffsetFetchResponsePartitions(number, offset.committed_offset, offset.leader_epoch, offset.metadata)

    def _write(
        self, group: str, kept: Sequence[_Kept], producer: TransactionalProducer | None = None, *, may_wait: bool = True
    ) -> None:
        if not kept or self.journal is None:
            return
        records = [offset_commit_tombstone(key) if offset is None else offset_commit_record(key, offset) for key, offset in kept]
        first = self.journal.write(group, records, producer) if may_wait else self.journal.write_at_once(group, records)
        transaction = None
        if producer is not None:
            transaction = (partition_for(group, self.journal.log.partitions), producer.producer_id)
        for at, (key, offset) in enumerate(kept, first):
            self.offsets.replay(key, None if offset is None else offset._replace(record_offset=at), transaction)


def _at_end(offset: OffsetAndMetadata, end: LogEnd | None) -> OffsetAndMetadata | None:
    """The offset set to the end of its log, if it is beyond that."""
    if end is None or offset.committed_offset <= end.offset or offset.is_of_another(end.topic_id):
        return None
    return offset._replace(committed_offset=end.offset, leader_epoch=_NO_LEADER_EPOCH)


def _kept(
    request: OffsetCommitRequest, topic: OffsetCommitRequestTopic, partition: OffsetCommitRequestPartition, now_ms: int
) -> _Kept:
    retention_ms = request.retention_time_ms
    return OffsetCommitKey(request.group_id, topic.name, partition.partition_index), OffsetAndMetadata(
        partition.committed_offset,
        partition.committed_leader_epoch,
        partition.committed_metadata or "",
        now_ms,
        NO_EXPIRY if retention_ms == _NO_RETENTION_TIME else now_ms + retention_ms,
        topic.topic_id,
    )


def _size_of_commit(of: _Lowered) -> int:
    """Bytes of the record, at most."""
    return tombstone_size(of[0]) + 3 * len(of[1].metadata)


def _is_unused(group: ClassicGroup | ConsumerGroup) -> bool:
    if isinstance(group, ConsumerGroup):
        return not group.members
    return group.state is EMPTY and not group.pending_join
