"""Commits, fetches and deletions of offsets (Kafka's OffsetMetadataManager). What is written is applied after it is written.

A group exists as long as it has offsets.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from tiering.endpoint.coordinator.committed_offsets import CommittedOffsets, Partition
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.journal import Journal
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
from tiering.endpoint.coordinator.records import (
    NO_EXPIRY,
    OffsetAndMetadata,
    offset_commit_record,
    offset_commit_tombstone,
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

_NO_OFFSET: Final = -1
_NO_RETENTION_TIME: Final = -1
_UNKNOWN_GROUP_SINCE: Final = 9
"""The version of OffsetCommit since which an unknown group has an error of its own."""

_Kept = tuple[OffsetCommitKey, OffsetAndMetadata | None]


@dataclass(slots=True)
class OffsetMetadataManager:
    """The offsets of all groups. Without a journal there are none, and commits are refused."""

    config: GroupCoordinatorConfig
    journal: Journal | None
    offsets: CommittedOffsets = field(default_factory=CommittedOffsets)

    def commit(self, request: OffsetCommitRequest, version: int, now_ms: int) -> OffsetCommitResponse:
        """Keeps offsets. Topics have their names, and their ids where these are known. Raises GroupError."""
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
        self._write(self.journal, request.group_id, kept)
        return OffsetCommitResponse(topics=tuple(answers))

    def fetch(self, request: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """The offsets of a group, of all partitions if `topics` is null."""
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
        group = request.group_id
        if self.journal is None or not self._exists(group):
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND)
        keys = (OffsetCommitKey(group, topic.name, one.partition_index) for topic in request.topics for one in topic.partitions)
        self._write(self.journal, group, [(key, None) for key in keys if self._has(key)])
        answers = (
            OffsetDeleteResponseTopic(
                topic.name, tuple(OffsetDeleteResponsePartition(one.partition_index) for one in topic.partitions)
            )
            for topic in request.topics
        )
        return OffsetDeleteResponse(topics=tuple(answers))

    def expire(self, now_ms: int) -> None:
        """Forgets the offsets whose retention has passed. Raises GroupError."""
        for group in self.offsets.groups() if self.journal is not None else ():
            assert self.journal is not None
            self._write(self.journal, group, [(key, None) for key in self._expired(group, now_ms)])

    def _expired(self, group: str, now_ms: int) -> Iterable[OffsetCommitKey]:
        for (topic, number), offset in self.offsets.of_group(group).items():
            expires_ms = offset.expire_timestamp_ms
            if expires_ms == NO_EXPIRY:
                expires_ms = offset.commit_timestamp_ms + self.config.offsets_retention_ms
            if now_ms >= expires_ms and not self.offsets.is_pending(group, (topic, number)):
                yield OffsetCommitKey(group, topic, number)

    def _exists(self, group: str) -> bool:
        return bool(self.offsets.of_group(group)) or self.offsets.has_pending(group)

    def _has(self, key: OffsetCommitKey) -> bool:
        partition: Partition = (key.topic, key.partition)
        return partition in self.offsets.of_group(key.group) or self.offsets.is_pending(key.group, partition)

    def _validate_commit(self, request: OffsetCommitRequest, version: int) -> None:
        if self._exists(request.group_id):
            if request.generation_id_or_member_epoch >= 0:
                raise GroupError(ErrorCode.UNKNOWN_MEMBER_ID)
        elif request.generation_id_or_member_epoch >= 0:
            is_known = version >= _UNKNOWN_GROUP_SINCE
            raise GroupError(ErrorCode.GROUP_ID_NOT_FOUND if is_known else ErrorCode.ILLEGAL_GENERATION)

    def _metadata_error(self, partition: OffsetCommitRequestPartition) -> ErrorCode:
        size = len((partition.committed_metadata or "").encode("utf-16-le", "surrogatepass")) // 2
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if size > self.config.offset_metadata_max else ErrorCode.NONE

    def _fetched(
        self, group: str, topic: OffsetFetchRequestTopics, number: int, require_stable: bool
    ) -> OffsetFetchResponsePartitions:
        partition = (topic.name, number)
        if require_stable and self.offsets.is_pending(group, partition):
            return OffsetFetchResponsePartitions(number, _NO_OFFSET, metadata="", error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT)
        offset = self.offsets.of_group(group).get(partition)
        if offset is None or _is_of_another_topic(offset.topic_id, topic.topic_id):
            return OffsetFetchResponsePartitions(number, _NO_OFFSET, metadata="")
        return OffsetFetchResponsePartitions(number, offset.committed_offset, offset.leader_epoch, offset.metadata)

    def _write(self, journal: Journal, group: str, kept: Sequence[_Kept]) -> None:
        if not kept:
            return
        records = [offset_commit_tombstone(key) if offset is None else offset_commit_record(key, offset) for key, offset in kept]
        first = journal.write(group, records)
        for at, (key, offset) in enumerate(kept, first):
            self.offsets.replay(key, None if offset is None else replace(offset, record_offset=at))


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


def _is_of_another_topic(committed: str, asked: str) -> bool:
    return ZERO_TOPIC_ID not in (committed, asked) and committed != asked
