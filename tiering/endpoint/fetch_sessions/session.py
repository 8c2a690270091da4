"""A fetch session: the partitions of one consumer, what it asked of each, and what it was last told (Kafka's FetchSession).

Session 0 is none. Epoch 0 asks for a new session, -1 for none; then the epoch grows by one with each request, from 1 on.
"""

import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from local_log.formats.partition_metadata import ZERO_TOPIC_ID
from local_log.formats.primitives import INT32_MAX
from tiering.endpoint.protocol.messages.fetch import FetchPartition, PartitionData

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1

Key = tuple[str, int]
"""Of a partition in a session: the topic's id, or its name in a session without ids, and the number."""


def next_epoch(epoch: int) -> int:
    """The epoch of the request after one with `epoch`."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == INT32_MAX else epoch + 1


def key_of(topic: str | None, topic_id: str, number: int) -> Key:
    """By the id where there is one."""
    return topic_id if topic_id != ZERO_TOPIC_ID else topic or "", number


@dataclass(frozen=True, slots=True)
class Wanted:
    """A partition that is to be read: `topic` is None if its id is that of no topic that is known."""

    topic: str | None
    topic_id: str
    asked: FetchPartition

    @property
    def key(self) -> Key:
        """Tells partitions of a session apart."""
        return key_of(self.topic, self.topic_id, self.asked.partition)


@dataclass(slots=True)
class CachedPartition:
    """A partition of a session, with the offsets that the consumer was last told."""

    wanted: Wanted
    high_watermark: int = -1
    log_start_offset: int = -1

    def must_respond(self, answer: PartitionData) -> bool:
        """Whether the answer has anything new; the offsets that it tells are kept."""
        is_new = (
            any(answer.records or ())
            or self.high_watermark != answer.high_watermark
            or self.log_start_offset != answer.log_start_offset
            or answer.error_code != 0
            or answer.diverging_epoch.epoch >= 0
        )
        # After an error the partition is told again, also if its offsets are as they were before.
        self.high_watermark = -1 if answer.error_code else answer.high_watermark
        self.log_start_offset = answer.log_start_offset
        return is_new


@dataclass(slots=True, eq=False)
class FetchSession:
    """The partitions by key, those whose records were sent last at the end, so that each has its turn.

    Several connections may use one session at once: whoever reads or changes its partitions or its epoch holds `lock`.
    """

    id: int
    is_privileged: bool
    """Whether a follower has it, not a consumer."""
    uses_topic_ids: bool
    partitions: dict[Key, CachedPartition]
    created_ms: int
    last_used_ms: int
    epoch: int = INITIAL_EPOCH + 1
    cached_size: int = 0
    """How many partitions the cache counts for it."""
    is_old: bool = False
    """Whether it was created long before it was last used."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def update(self, wanted: Iterable[Wanted], forgotten: Iterable[Key]) -> None:
        """Adds and changes what a request names, and removes what it forgets."""
        for one in wanted:
            known = self.partitions.get(one.key)
            if known is None:
                self.partitions[one.key] = CachedPartition(one)
            else:
                known.wanted = Wanted(known.wanted.topic, one.topic_id, one.asked)
        for key in forgotten:
            self.partitions.pop(key, None)

    def move_to_end(self, key: Key) -> None:
        """Others are read before this partition next time."""
        self.partitions[key] = self.partitions.pop(key)
