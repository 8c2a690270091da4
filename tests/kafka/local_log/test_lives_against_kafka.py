"""Random lives of a log, ours beside Kafka's own: the same answers and the same state at every step, the same files at last."""

import random  # noqa: TID251  # seeded
from base64 import b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from hand_made import GZIP, LZ4, ZSTD, message
from kafka_log import NOW, Answer, KafkaLog, files, kafka_log
from logs_at_work import batch_of
from producers_at_work import DAY_MS
from small_logs import Clock, marker

from local_log.engine.append.analyze import AppendInfo
from local_log.engine.config import read_config
from local_log.engine.manager.retention import delete_old_segments
from local_log.engine.offsets import Isolation
from local_log.engine.producers.state import Origin
from local_log.engine.published import locate
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import LogError
from local_log.os_disk import OsWritableDisk
from tiering.log_tools.partition import describe

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="Kafka's own classes are brought by Maven, which is not here"),
]

LIVES, STEPS = 16, 150
PRODUCERS = (1, 2, 3)


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaLog]:
    with kafka_log() as kafka:
        yield kafka


def appended(info: AppendInfo) -> Answer:
    names = ("first_offset", "last_offset", "max_timestamp", "log_append_time")
    return {name: getattr(info, name) for name in names}


def drawn_settings(r: random.Random) -> dict[str, str]:
    given = {
        "internal.segment.bytes": r.choice([400, 1000, 3000, 20_000]),
        "segment.index.bytes": r.choice([120, 400, 1200]),
        "index.interval.bytes": r.choice([1, 100, 500]),
    }
    rare: list[tuple[str, list[object]]] = [
        ("message.timestamp.type", ["LogAppendTime"]),
        ("segment.ms", [60_000]),
        ("flush.messages", [7]),
        ("max.message.bytes", [300]),
        ("retention.ms", [0, 5000, 500_000]),
        ("retention.bytes", [0, 500, 2000]),
        ("compression.type", ["gzip", "lz4", "zstd", "uncompressed"]),
    ]
    given |= {name: r.choice(values) for name, values in rare if r.random() < 0.25}
    return {name: str(value) for name, value in given.items()}


@dataclass
class Life:
    """One life. A step asks Kafka's log first, then does the same to ours and compares."""

    kafka: KafkaLog
    r: random.Random
    folder: Path
    clock: Clock = field(default_factory=lambda: Clock(NOW))
    leader_epoch: int = 0
    is_over: bool = False
    done: list[object] = field(default_factory=list)
    given: dict[str, str] = field(init=False)
    log: UnifiedLog = field(init=False)

    def __post_init__(self) -> None:
        self.given = drawn_settings(self.r)
        self.kafka.ask("clock", self.clock())
        self._open(0, 0, clean=True)

    @property
    def _folders(self) -> tuple[Path, Path]:
        return self.folder / "theirs" / "t-0", self.folder / "ours" / "t-0"

    def _open(self, start: int, point: int, *, clean: bool) -> None:
        theirs, ours = self._folders
        words = [f"{name}={value}" for name, value in self.given.items()]
        opened = self.kafka.ask("open", theirs, start, point, "clean" if clean else "unclean", *words)
        if "error" in opened:  # such as a recovery that finds more entries than an index has room for
            self.is_over = True
            with pytest.raises(LogError):
                self._opened(str(ours), start, point, clean=clean)
            return
        self.log = self._opened(str(ours), start, point, clean=clean)
        assert describe(self.log) == self.kafka.ask("state"), self.done[-5:]

    def _opened(self, folder: str, start: int, point: int, *, clean: bool) -> UnifiedLog:
        return open_log(
            OsWritableDisk(),
            folder,
            read_config(self.given),
            self.clock,
            lambda: 0.0,
            log_start_offset=start,
            recovery_point=point,
            clean=clean,
        )

    def _same(self, ours: Callable[[], Answer], *words: object) -> Answer:
        self.done.append(words)
        theirs = self.kafka.ask(*words)
        if "error" in theirs:
            with pytest.raises(LogError):
                ours()
        else:
            assert ours() == theirs, self.done[-5:]
        assert describe(self.log) == self.kafka.ask("state"), self.done[-5:]
        return theirs

    # What a producer knows: mostly the truth

    def _epoch_of(self, producer: int) -> int:
        known = self.log.producers.producers.get(producer)
        return max(0, (0 if known is None else known.epoch) + self.r.choice([0] * 30 + [-1, 1]))

    def _sequence_of(self, producer: int, epoch: int) -> int:
        known = self.log.producers.producers.get(producer)
        following = known.last_sequence + 1 if known is not None and known.epoch == epoch else 0
        return max(0, following + self.r.choice([0] * 28 + [-3, -2, -1, 1]))

    def _is_transactional(self, producer: int) -> bool:
        known = self.log.producers.producers.get(producer)
        is_open = known is not None and known.txn_first_offset is not None
        return producer > 0 and self.r.random() < (0.95 if is_open else 0.4)

    def _values(self) -> list[str]:
        return ["v" * self.r.randrange(60) for _ in range(self.r.randrange(1, 5))]

    # Steps

    def lead(self) -> None:
        producer = self.r.choice((-1, -1, *PRODUCERS))
        epoch = self._epoch_of(producer) if producer > 0 else -1
        records = batch_of(
            *self._values(),
            time=self.clock() + self.r.choice([0, 0, 0, -5, -70_000, self.r.randrange(-100, 100), 3_600_001]),
            producer=producer,
            epoch=epoch,
            sequence=self._sequence_of(producer, epoch) if producer > 0 else -1,
            transactional=self._is_transactional(producer),
            codec=self.r.choice([0, 0, 0, GZIP, LZ4, ZSTD]),
        )
        self._lead(records, Origin.CLIENT)

    def end(self) -> None:
        producer = self.r.choice(PRODUCERS)
        known = self.log.producers.producers.get(producer)
        coordinator = max(0, (-1 if known is None else known.coordinator_epoch) + self.r.choice([0] * 10 + [-1, 1]))
        commits, epoch = self.r.random() < 0.5, self._epoch_of(producer)
        made = marker(0, producer, commit=commits, epoch=epoch, coordinator_epoch=coordinator, time=self.clock())
        self._lead(made, Origin.COORDINATOR)

    def _lead(self, records: bytes, origin: Origin) -> None:
        epoch, encoded = self.leader_epoch, b64encode(records).decode()
        self._same(lambda: appended(self.log.append_as_leader(records, epoch, origin)), "leader", epoch, origin.name, encoded)

    def follow(self) -> None:
        r = self.r
        offset = max(0, self.log.log_end_offset + r.choice([0, 0, 0, 0, 1, 5, -1]))
        leader_epoch = max(0, self.leader_epoch + r.choice([0, 0, 0, 1, -1]))
        parts: list[bytes] = []
        for _ in range(r.randrange(1, 4)):
            made, following = self._followed(offset, max(0, leader_epoch + r.choice([0, 0, 0, 0, 1])))
            parts.append(made)
            offset = following
        records = b"".join(parts) + bytes(r.choice([0] * 20 + [3, 15]))
        self._follow(records, leader_epoch)
        self.leader_epoch = max(self.leader_epoch, self.log.epochs.latest_epoch or 0)

    def _followed(self, offset: int, leader_epoch: int) -> tuple[bytes, int]:
        r, producer = self.r, self.r.choice((-1, -1, *PRODUCERS))
        if producer > 0 and r.random() < 0.3:
            epoch, commits = self._epoch_of(producer), r.random() < 0.5
            made = marker(offset, producer, commit=commits, epoch=epoch, coordinator_epoch=r.randrange(3), time=self.clock())
            return made, offset + 1
        if r.random() < 0.05:
            return message(1, b"older", offset=offset, timestamp=self.clock()), offset + 1
        values = self._values()
        made = batch_of(
            *values,
            offset=offset,
            leader_epoch=leader_epoch,
            time=self.clock() + r.randrange(-9, 9),
            producer=producer,
            epoch=self._epoch_of(producer) if producer > 0 else -1,
            sequence=r.randrange(20) if producer > 0 else -1,
            transactional=self._is_transactional(producer),
        )
        return made, offset + len(values) + r.choice([0, 0, 0, 2])

    def _follow(self, records: bytes, epoch: int) -> None:
        self._same(lambda: appended(self.log.append_as_follower(records, epoch)), "follower", epoch, b64encode(records).decode())

    def follow_damaged(self) -> None:
        records = bytearray(batch_of("a", "b", offset=self.log.log_end_offset))
        records[self.r.randrange(len(records))] ^= 1 << self.r.randrange(8)
        self._follow(bytes(records), self.leader_epoch)

    def roll(self) -> None:
        def ours() -> Answer:
            self.log.roll()
            return {}

        self._same(ours, "roll")

    def truncate(self) -> None:
        end = self.log.log_end_offset
        offset = self.r.choice([self.r.randrange(-1, end + 3), max(0, end - self.r.randrange(12))])
        self._same(lambda: {"truncated": self.log.truncate_to(offset)}, "truncate", offset)

    def restart(self) -> None:
        offset = self.r.randrange(max(0, self.log.log_start_offset - 3), self.log.log_end_offset + 5)

        def ours() -> Answer:
            self.log.truncate_fully_and_start_at(offset)
            return {}

        self._same(ours, "restart", offset)

    def replicate(self) -> None:
        end = self.log.log_end_offset
        offset = self.r.choice([end, end, self.r.randrange(end + 3)])
        self._same(lambda: {"high_watermark": self.log.update_high_watermark(offset)}, "watermark", offset)

    def start_later(self) -> None:
        offset = self.r.randrange(max(0, self.log.log_start_offset - 2), self.log.high_watermark + 2)
        self._same(lambda: {"moved": self.log.maybe_increment_log_start_offset(offset)}, "delete", offset)

    def retain(self) -> None:
        def ours() -> Answer:
            deleted = delete_old_segments(self.log, self.clock())
            return {"deleted": deleted, "local_log_start_offset": self.log.local_log_start_offset}

        self._same(ours, "retain")

    def read(self) -> None:
        r = self.r
        offset = r.randrange(max(0, self.log.log_start_offset - 1), self.log.log_end_offset + 2)
        size_max, isolation, one = r.choice([0, 1, 60, 100, 500, 5000]), r.choice(list(Isolation)), r.random() < 0.5

        def ours() -> Answer:
            found = self.log.read(offset, size_max, isolation, one_batch_at_least=one)
            # A read of Kafka's also moves a high watermark amid a batch to that batch's offset. Ours changes nothing of the log.
            if isolation is not Isolation.LOG_END and self.log._high_watermark.is_offset_only:
                with self.log.lock:
                    self.log._set_high_watermark(locate(self.log.local, self.log.high_watermark))
                    self.log.publish()
            return {
                "offset": found.start.offset,
                "size": len(found.records),
                "sum": b64encode(sha256(found.records).digest()).decode(),
                "cut": found.first_batch_is_cut,
                "aborted": [[txn.producer_id, txn.first_offset] for txn in found.aborted or ()],
            }

        self._same(ours, "read", offset, size_max, isolation.name, "one" if one else "any")

    def ask_time(self) -> None:
        now = self.clock()
        timestamp = self.r.choice([-1, -2, -3, -4, -5, -6, now, now - 100, now + self.r.randrange(-70_000, 100)])

        def ours() -> Answer:
            found = self.log.offset_for(timestamp)
            if found is None:
                return {}
            return {"timestamp": found.timestamp, "offset": found.offset, "epoch": found.leader_epoch}

        self._same(ours, "time", timestamp)

    def ask_epoch(self) -> None:
        epoch = self.r.randrange(-1, self.leader_epoch + 3)

        def ours() -> Answer:
            found = self.log.epochs.end_offset_for(epoch, self.log.log_end_offset)
            return {} if found is None else {"epoch": found.epoch, "offset": found.start_offset}

        self._same(ours, "epoch", epoch)

    def flush(self) -> None:
        def ours() -> Answer:
            self.log.flush()
            return {"recovery_point": self.log.recovery_point}

        self._same(ours, "flush")

    def wait(self) -> None:
        self.clock.sleep(self.r.choice([1, 10, 1000, 61_000, DAY_MS]))
        self.kafka.ask("clock", self.clock())

    def elect(self) -> None:
        self.leader_epoch += 1

    def reopen(self) -> None:
        self.flush()
        start, point = self.log.log_start_offset, self.log.recovery_point
        self.close()
        clean = self.r.random() < 0.4
        self._open(start, point if clean else self.r.choice([0, point, start]), clean=clean)

    def close(self) -> None:
        self.kafka.ask("close")
        self.log.close()
        theirs, ours = self._folders
        assert files(ours) == files(theirs), self.done[-5:]


WEIGHTS: dict[Callable[[Life], Any], float] = {
    Life.lead: 30,
    Life.read: 20,
    Life.replicate: 12,
    Life.follow: 10,
    Life.end: 8,
    Life.ask_time: 6,
    Life.wait: 4,
    Life.roll: 3,
    Life.start_later: 3,
    Life.retain: 3,
    Life.ask_epoch: 3,
    Life.elect: 3,
    Life.follow_damaged: 2,
    Life.reopen: 2.5,
    Life.truncate: 2,
    Life.flush: 2,
    Life.restart: 0.4,
}


@pytest.mark.parametrize("seed", range(LIVES))
def test_a_log_that_lives_as_kafkas_does_is_the_same_all_its_life(kafka: KafkaLog, tmp_path: Path, seed: int) -> None:
    life = Life(kafka, random.Random(seed), tmp_path)
    for step in life.r.choices(list(WEIGHTS), list(WEIGHTS.values()), k=STEPS):
        step(life)
        if life.is_over:
            return
    life.close()
