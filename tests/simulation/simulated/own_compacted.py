"""A compacted topic of a process that owns its log directory: of each key the latest committed record stays."""

from functools import lru_cache
from random import Random  # noqa: TID251  # seeded
from typing import NamedTuple, Protocol

from logs_at_work import batch_of, values_of
from small_logs import marker

from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Unreadable
from local_log.formats.filenames import TopicPartition
from simulated.schedule import Schedule
from tiering.local_tier.local_tier import LocalTier

PARTITION = TopicPartition("changes", 0)
CONFIG = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "3600000"}
KEYS = 4
_values_of = lru_cache(maxsize=200)(values_of)
"""Most segments are what they were when they were last looked at."""


class Keyed(NamedTuple):
    """A record as it was sent; `producer` is -1 outside of a transaction."""

    key: int
    text: str
    producer: int = -1


class Host(Protocol):
    """The process."""

    schedule: Schedule
    random: Random
    tier: LocalTier
    syncs: str


class CompactedTopic:
    """The records that were acknowledged, by offset, and how transactions ended, by the offsets of their markers."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.sent: dict[int, Keyed] = {}
        self.ended: dict[int, tuple[int, bool]] = {}
        self.unanswered: dict[int, Keyed] = {}
        self.unanswered_ends: dict[int, tuple[int, bool]] = {}
        self.end = self.durable = self.producers = 0

    @property
    def log(self) -> UnifiedLog:
        return self.host.tier.log(PARTITION)

    def produce(self) -> None:
        self._append(-1, 0)

    def transact(self) -> None:
        """Begins a transaction, adds to one that is open, or ends it."""
        random, ongoing = self.host.random, sorted(self.log.producers.ongoing.values())
        if ongoing and random.random() < 0.5:
            self.ends(random.choice(ongoing), is_committed=random.random() < 0.5)
        elif len(ongoing) < 2:
            self.producers += 1
            self._append(self.producers, 0)
        else:
            producer = random.choice(ongoing)
            self._append(producer, self.log.producers.producers[producer].last_sequence + 1)

    def ends(self, producer: int, *, is_committed: bool) -> None:
        """The marker of a coordinator."""
        offset = self.log.log_end_offset
        try:
            self._appended(marker(0, producer, commit=is_committed, time=self.host.schedule.now), Origin.COORDINATOR)
        except Unreadable:
            self.unanswered_ends[offset] = producer, is_committed
            raise
        self.ended[offset] = producer, is_committed
        self._acknowledged()

    def _append(self, producer: int, sequence: int) -> None:
        offset, key = self.log.log_end_offset, self.host.random.randrange(KEYS)
        record = Keyed(key, f"{key}={offset}", producer)
        made = batch_of(
            record.text, time=self.host.schedule.now, keys=(b"%d" % key,), producer=producer,
            sequence=sequence if producer >= 0 else -1, transactional=producer >= 0,
        )  # fmt: skip
        try:
            self._appended(made, Origin.CLIENT)
        except Unreadable:
            self.unanswered[offset] = record
            raise
        self.sent[offset] = record
        self._acknowledged()

    def _appended(self, batch: bytes, origin: Origin) -> None:
        self.log.append_as_leader(batch, 0, origin)
        if self.host.syncs == "each append":
            self.log.sync_appended()

    def _acknowledged(self) -> None:
        self.end = self.log.log_end_offset
        if self.host.syncs != "never":
            self.durable = self.end

    def flushed(self) -> None:
        """What was flushed stays."""
        self.durable = max(self.durable, min(self.end, self.log.recovery_point))

    def recovered(self, *, is_killed: bool) -> None:
        """After a crash: what was not synced may be lost, from some offset on."""
        end, kept = self.log.log_end_offset, self.end if is_killed else self.durable
        if end < kept:
            raise self.host.schedule.violated(
                f"the compacted log ends at {end} after a crash, and {kept} was acknowledged and kept"
            )
        found = self.found()
        self.sent |= {offset: record for offset, record in self.unanswered.items() if found.get(offset) == record.text}
        self.sent = {offset: record for offset, record in self.sent.items() if offset < end}
        self.ended = {offset: how for offset, how in (self.ended | self.unanswered_ends).items() if offset < end}
        self.unanswered, self.unanswered_ends = {}, {}
        self.end = self.durable = end
        self.check()

    def found(self) -> dict[int, str]:
        """The records that the log has."""
        segments = self.log.local.segments
        texts = {offset: text for s in segments for offset, text in _values_of(s.read(0, s.size))}
        return {offset: text for offset, text in texts.items() if "=" in text}

    def check(self) -> None:
        """Nothing is there that was not sent, and of what was sent only that is missing which no reader needs."""
        found, violated = self.found(), self.host.schedule.violated
        for offset, text in found.items():
            if offset not in self.sent or self.sent[offset].text != text:
                raise violated(f"the compacted log has {text} at {offset}, where that was not appended")
        is_committed = {offset: self._fate(offset, record.producer) for offset, record in self.sent.items()}
        for offset, record in self.sent.items():
            if offset not in found and is_committed[offset] is not False:
                later = (other for other in found if other > offset and self.sent[other].key == record.key)
                if not any(is_committed[other] for other in later):
                    raise violated(f"the compacted log lacks {record.text} at {offset}, which is the latest of its key")

    def _fate(self, offset: int, producer: int) -> bool | None:
        """Whether a record is committed; None for one whose transaction is open."""
        if producer < 0:
            return True
        ends = [at for at, (of, _) in self.ended.items() if of == producer and at > offset]
        return self.ended[min(ends)][1] if ends else None
