"""Random keyed logs that Kafka's own cleaner and ours compact: the same end and logs after each round, the same files at last."""

import os
import random  # noqa: TID251  # seeded
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest
import real_kafka
from hand_made import GZIP, LZ4, SNAPPY, TRANSACTIONAL, ZSTD, batch, decoded, record
from kafka_log import NOW, KafkaLog, files, kafka_log
from small_logs import Clock, marker

from local_log.engine.cleaner import CleaningAborted, OffsetMap, clean, dirty_part
from local_log.engine.config import read_config
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import LogError
from local_log.formats.batches import scan
from local_log.formats.messages.writer import NewMessages, write_messages
from local_log.formats.primitives import INT32_MAX
from local_log.formats.record import Codec
from local_log.formats.record_batch.writer import RECORDS
from local_log.os_disk import OsWritableDisk

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="Kafka's own classes are brought by Maven, which is not here"),
]

LOGS, OLD_LOGS, SNAPPY_LOGS, STEPS = 12, 6, 3, 120
EQUAL_CODECS = (0, 0, 0, GZIP, LZ4, ZSTD)
"""Those whose libraries compress such small batches to the bytes of Kafka's."""
PRODUCERS = (1, 2, 3, 4)
KEYS = [b"", *(b"key-%d" % i for i in range(14)), b"long" * 14, b"longer" * 30]


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaLog]:
    with kafka_log() as kafka:
        yield kafka


@dataclass
class KeyedLog:
    """One log, kept twice. `dirty` is where the next round of cleaning begins."""

    kafka: KafkaLog
    r: random.Random
    folder: Path
    codecs: tuple[int, ...] = EQUAL_CODECS
    clock: Clock = field(default_factory=lambda: Clock(NOW))
    magic: int = 2
    dirty: int = 0
    is_over: bool = False
    given: dict[str, str] = field(init=False)
    memory: int = field(init=False)
    log: UnifiedLog = field(init=False)

    def __post_init__(self) -> None:
        r = self.r
        self.given = {
            "internal.segment.bytes": str(r.choice([1500, 3000, 6000])),
            "segment.index.bytes": str(r.choice([240, 1200])),
            "index.interval.bytes": str(r.choice([1, 200, 1000])),
            "max.compaction.lag.ms": str(r.choice([1, 1000, 70_000, 10**12])),
            "message.timestamp.type": r.choice(["CreateTime", "CreateTime", "LogAppendTime"]),
        }
        self.given["delete.retention.ms"] = str(r.choice([0, 1000, 100_000]))
        self.given["min.compaction.lag.ms"] = str(min(r.choice([0, 0, 400, 60_000]), int(self.given["max.compaction.lag.ms"])))
        self.memory = r.choice([24 * 3, 24 * 9, 24 * 1000])
        self.kafka.ask("clock", self.clock())
        self.kafka.ask("open", self.folders[0], 0, 0, "clean", *(f"{name}={value}" for name, value in self.given.items()))
        self.log = open_log(OsWritableDisk(), str(self.folders[1]), read_config(self.given), self.clock, lambda: 0.0, clean=True)

    @property
    def folders(self) -> tuple[Path, Path]:
        return self.folder / "theirs" / "t-0", self.folder / "ours" / "t-0"

    def write(self) -> None:
        if self.magic < 2:
            self.write_old()
            return
        r, producer = self.r, self.r.choice((-1, -1, *PRODUCERS))
        known = self.log.producers.producers.get(producer)
        is_open = known is not None and known.txn_first_offset is not None
        records = [
            record(
                delta,
                timestamp_delta=r.randrange(-50, 50),
                key=None if r.random() < 0.03 else r.choice(KEYS),
                value=None if r.random() < 0.2 else b"v" * r.randrange(40),
                headers=[(b"h", r.choice([None, b"data"]))] * r.choice([0, 0, 0, 2]),
            )
            for delta in range(r.choice([1, 1, 2, 3, 8]))
        ]
        made = batch(
            *records,
            attributes=r.choice(self.codecs) | (TRANSACTIONAL if is_open or (producer > 1 and r.random() < 0.5) else 0),
            base_timestamp=self.clock(),
            max_timestamp=self.clock() + 50,
            producer_id=producer,
            producer_epoch=known.epoch if known else 0 if producer > 0 else -1,
            base_sequence=known.last_sequence + 1 if known else 0 if producer > 0 else -1,
        )
        self._append(made, Origin.CLIENT)

    def write_old(self) -> None:
        """A message of magic 0 or 1, or a wrapper of several, as from a leader that keeps the message format of old."""
        r, end = self.r, self.log.log_end_offset
        offsets = sorted(r.sample(range(end, end + 12), r.choice([1, 1, 2, 5])))
        records = pa.RecordBatch.from_pylist(
            [
                {
                    "offset": offset,
                    "timestamp": self.clock() + r.randrange(50),
                    "key": None if r.random() < 0.03 else r.choice(KEYS),
                    "value": None if r.random() < 0.2 else b"v" * r.randrange(40),
                    "headers": [],
                }
                for offset in offsets
            ],
            RECORDS,
        )
        codec = Codec(r.choice([codec for codec in self.codecs if codec != ZSTD]))
        made = write_messages(NewMessages(self.magic, codec, is_append_time=r.random() < 0.3), records)
        if "error" in self.kafka.ask("follower", 0, b64encode(made).decode()):  # as of an index that several messages fill
            self.is_over = True
            with pytest.raises(LogError):
                self.log.append_as_follower(made, 0)
            return
        self.log.append_as_follower(made, 0)
        self._date()

    def upgrade(self) -> None:
        """The next records are in the current message format."""
        self.magic = 2

    def _date(self) -> None:
        """The log's last segment was written now, for both."""
        active = self.log.local.segments.active.base_offset
        for folder in self.folders:
            os.utime(folder / f"{active:020}.log", times=(self.clock() / 1000,) * 2)

    def end_transaction(self) -> None:
        if self.magic < 2:
            return
        producer = self.r.choice(PRODUCERS[1:])
        known = self.log.producers.producers.get(producer)
        epoch = (known.epoch if known else 0) + self.r.choice([0, 0, 0, 1])
        self._append(marker(0, producer, commit=self.r.random() < 0.5, epoch=epoch, time=self.clock()), Origin.COORDINATOR)

    def _append(self, made: bytes, origin: Origin) -> None:
        theirs = self.kafka.ask("leader", 0, origin.name, b64encode(made).decode())
        assert "error" not in theirs, theirs
        assert self.log.append_as_leader(made, 0, origin).first_offset == theirs["first_offset"]
        self._date()

    def roll(self) -> None:
        self.kafka.ask("roll")
        self.log.roll()

    def wait(self) -> None:
        self.clock.sleep(self.r.choice([1, 500, 60_000]))
        self.kafka.ask("clock", self.clock())

    def clean(self) -> None:
        self.kafka.ask("watermark", self.log.log_end_offset)
        self.log.update_high_watermark(self.log.log_end_offset)
        stable = self.log.last_stable_offset
        if max(base for base in self.log.local.segments.base_offsets if base <= stable) <= self.dirty:
            return  # nothing is dirty: Kafka's manager does not ask its cleaner then
        offsets = OffsetMap(self.memory)
        theirs = self.kafka.ask("clean", self.dirty, stable, self.memory, 0.9)
        if "error" in theirs:  # as of an index without room for the entries of several segments
            self.is_over = True
            if "Empty batches" in theirs["message"]:  # a last message of magic 0 or 1 without records, which we keep
                return
            with pytest.raises(LogError):
                clean(self.log, self.dirty, stable, offsets)
            return
        self.dirty = clean(self.log, self.dirty, stable, offsets)
        assert self.dirty == theirs["end_offset"]
        if self.codecs == EQUAL_CODECS and self._logs(1) == self._logs(0):
            return
        assert self._contents(1) == self._contents(0)
        # zstd of another release than Kafka's compresses a few batches to another size, on which the next rounds depend
        self.is_over = self.codecs == EQUAL_CODECS

    def _logs(self, whose: int) -> dict[str, bytes]:
        return {file.name: file.read_bytes() for file in sorted(self.folders[whose].glob("*.log"))}

    def _contents(self, whose: int) -> list[object]:
        """The batches: the bytes, or if other libraries may compress them to others the header without size and checksum, and
        the records."""
        found: list[object] = []
        for data in self._logs(whose).values():
            start = 0
            while start < len(data):
                batches, start = scan(data, start)
                names = [name for name in batches.header.dtype.names or () if name not in ("batch_length", "crc")]
                for row in range(len(batches)):
                    one = batches[row : row + 1]
                    if one.codec[0] in (SNAPPY, ZSTD):
                        found.append((one.header[names].tolist(), decoded(data, one).to_pylist()))
                    else:
                        found.append(data[int(one.positions[0]) : int(one.end[0])])
        return found

    def trim(self) -> None:
        """Deletes records, up to no more than what is replicated."""
        offset = self.r.randint(self.log.log_start_offset, self.log.high_watermark)
        moved = self.kafka.ask("delete", offset)["moved"]
        assert self.log.maybe_increment_log_start_offset(offset) == moved
        self.dirty = max(self.dirty, self.log.log_start_offset)

    def ask_dirty(self) -> None:
        if self.codecs != EQUAL_CODECS:
            return  # the sizes differ
        end = self.log.log_end_offset
        checkpointed = self.r.choice([None, self.dirty, self.dirty, self.r.randrange(end + 1), end + 1])
        found = asdict(dirty_part(self.log, checkpointed, self.clock()))
        assert found == self.kafka.ask("dirty", "-" if checkpointed is None else checkpointed)

    def live(self) -> None:
        """Takes random steps up to the end of what both cleaners can do."""
        steps = {
            self.write: 30,
            self.end_transaction: 8,
            self.roll: 2,
            self.wait: 4,
            self.clean: 3,
            self.ask_dirty: 3,
            self.trim: 1,
        }
        if self.magic < 2:
            steps[self.upgrade] = 1
        for step in self.r.choices(list(steps), list(steps.values()), k=STEPS):
            step()
            if self.is_over:
                return

    def close(self) -> None:
        self.kafka.ask("close")
        self.log.close()


@pytest.mark.parametrize("seed", range(LOGS))
def test_a_cleaned_log_has_the_bytes_that_kafkas_cleaner_leaves(kafka: KafkaLog, tmp_path: Path, seed: int) -> None:
    log = KeyedLog(kafka, random.Random(seed), tmp_path)
    log.live()
    log.close()
    assert log.is_over or files(log.folders[1]) == files(log.folders[0])


@pytest.mark.parametrize("seed", range(OLD_LOGS))
def test_a_cleaned_log_that_began_in_an_old_message_format_has_the_bytes_that_kafkas_cleaner_leaves(
    kafka: KafkaLog, tmp_path: Path, seed: int
) -> None:
    log = KeyedLog(kafka, random.Random(seed), tmp_path, magic=seed % 2)
    log.live()
    log.close()
    assert log.is_over or files(log.folders[1]) == files(log.folders[0])


@pytest.mark.parametrize("seed", range(SNAPPY_LOGS))
def test_a_cleaned_log_in_snappy_has_the_headers_and_records_that_kafkas_cleaner_leaves(
    kafka: KafkaLog, tmp_path: Path, seed: int
) -> None:
    log = KeyedLog(kafka, random.Random(seed), tmp_path, (SNAPPY,))
    log.live()
    log.close()


def test_a_segment_with_offsets_too_far_apart_is_split_and_cleaned_as_kafka_does(kafka: KafkaLog, tmp_path: Path) -> None:
    far = INT32_MAX + 5
    rows = [(0, b"a", b"1"), (1, b"a", b"2"), (3, b"c", b"1"), (far, b"b", b"1"), (far + 1, b"a", b"3"), (far + 7, b"c", b"2")]
    made = (
        batch(record(key=key, value=value), base_offset=offset, base_timestamp=NOW, max_timestamp=NOW)
        for offset, key, value in rows
    )
    data, end = b"".join(made), far + 8
    settings = {"segment.index.bytes": "1200", "index.interval.bytes": "1", "internal.segment.bytes": "100000"}
    theirs, ours = tmp_path / "theirs" / "t-0", tmp_path / "ours" / "t-0"
    for folder in (theirs, ours):
        folder.mkdir(parents=True)
        for name, content in (
            (f"{0:020}.log", data),
            (f"{0:020}.index", b""),
            (f"{0:020}.timeindex", b""),
            (f"{end:020}.log", b""),
        ):
            (folder / name).write_bytes(content)
    kafka.ask("clock", NOW)
    kafka.ask("open", theirs, 0, end, "clean", *(f"{name}={value}" for name, value in settings.items()))
    kafka.ask("watermark", end)
    log = open_log(OsWritableDisk(), str(ours), read_config(settings), lambda: NOW, lambda: 0.0, recovery_point=end, clean=True)
    log.update_high_watermark(end)
    offsets = OffsetMap(24 * 100)
    assert kafka.ask("clean", 0, end, 24 * 100, 0.9)["error"] == "LogCleaningAbortedException"
    with pytest.raises(CleaningAborted, match="split"):
        clean(log, 0, end, offsets)
    assert log.local.segments.base_offsets == (0, far, end)
    assert clean(log, 0, end, offsets) == kafka.ask("clean", 0, end, 24 * 100, 0.9)["end_offset"] == end
    kafka.ask("close")
    log.close()
    assert files(ours) == files(theirs)
