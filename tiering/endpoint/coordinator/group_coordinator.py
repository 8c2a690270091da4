"""Answers for consumer groups (Kafka's GroupCoordinator): many threads ask, one at a time is answered.

Without a log for its records a coordinator keeps no offsets: the consumers of its groups begin where their own settings say.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from remote.clock import Clock
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.errors import GroupError
from tiering.endpoint.coordinator.journal import Journal
from tiering.endpoint.coordinator.offset_metadata_manager import OffsetMetadataManager
from tiering.endpoint.coordinator.offsets_log import EndOfTransaction, Loaded, OffsetsLog, partition_for
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey, OffsetCommitValue
from tiering.endpoint.coordinator.records import committed, read_key, read_value
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from tiering.endpoint.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchResponseGroup

REFUSED: Final = "commits of offsets are refused, since there is no directory for them: start again with --offsets-dir"


@dataclass(slots=True)
class GroupCoordinator:
    """All groups. `report` is told what whoever runs the endpoint should know."""

    config: GroupCoordinatorConfig
    log: OffsetsLog | None
    clock: Clock
    report: Callable[[str], object]
    _offsets: OffsetMetadataManager = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _expiry_checked_ms: int = field(init=False)
    _has_said_refused: bool = False

    def __post_init__(self) -> None:
        journal = None if self.log is None else Journal(self.log, self.clock, self.report)
        self._offsets = OffsetMetadataManager(self.config, journal)
        self._expiry_checked_ms = self.clock.now_ms()

    def partition_for(self, group: str) -> int:
        """The partition of `__consumer_offsets` that a group belongs to."""
        return partition_for(group, self.config.offsets_topic_partitions if self.log is None else self.log.partitions)

    def load(self) -> None:
        """Takes up what the log has. Raises LogError."""
        for found in () if self.log is None else self.log.load():
            if isinstance(found, EndOfTransaction):
                self._offsets.offsets.end_transaction(found.producer_id, is_committed=found.is_committed)
            else:
                self._replay(found)

    def _replay(self, found: Loaded) -> None:
        key = read_key(found.record.key)
        if isinstance(key, OffsetCommitKey):
            value = None if found.record.value is None else read_value(key, found.record.value)
            assert value is None or isinstance(value, OffsetCommitValue)
            offset = None if value is None else committed(value, found.offset)
            self._offsets.offsets.replay(key, offset, found.producer_id)

    def tick(self) -> None:
        """Forgets offsets whose retention has passed; to be called every second."""
        now_ms = self.clock.now_ms()
        if now_ms - self._expiry_checked_ms < self.config.offsets_retention_check_interval_ms:
            return
        self._expiry_checked_ms = now_ms
        with self._lock:
            try:
                self._offsets.expire(now_ms)
            except GroupError:
                return  # the journal has said why; the next time will do

    def commit_offsets(self, request: OffsetCommitRequest, version: int) -> OffsetCommitResponse:
        """Keeps offsets of a group. Raises GroupError."""
        if self.log is None and not self._has_said_refused:
            self._has_said_refused = True
            self.report(f"group {request.group_id}: {REFUSED}")
        with self._lock:
            return self._offsets.commit(request, version, self.clock.now_ms())

    def fetch_offsets(self, request: OffsetFetchRequestGroup, *, require_stable: bool) -> OffsetFetchResponseGroup:
        """The offsets of a group."""
        with self._lock:
            return self._offsets.fetch(request, require_stable=require_stable)

    def delete_offsets(self, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        """Forgets offsets of a group. Raises GroupError."""
        if not request.group_id:
            raise GroupError(ErrorCode.INVALID_GROUP_ID)
        with self._lock:
            return self._offsets.delete(request)
