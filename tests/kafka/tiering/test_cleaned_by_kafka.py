"""Random keyed logs that Kafka writes and its own cleaner compacts: archived before and after, the archive reads as the log."""

import random  # noqa: TID251  # seeded
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest
import real_kafka
from archive_fakes import CountingIds, FixedClock, MemoryStore, verbs
from hand_made import GZIP, LZ4, TRANSACTIONAL, ZSTD, batch, record
from kafka_log import NOW, KafkaLog, kafka_log
from logs_to_archive import path_of
from made_manifests import assert_sound_chain
from small_logs import marker

from local_log.formats.checkpoints import write_offsets
from local_log.formats.filenames import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    PARTITION_METADATA,
    TopicPartition,
)
from local_log.formats.partition_metadata import write_topic_id
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from local_log.os_disk import OsDisk
from remote.manifest.gaps import COMPACTED
from remote.read.log import ArchivedLog
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="Kafka's own classes are brought by Maven, which is not here"),
]

LOGS, ROUNDS = 4, 4
SEGMENT_BYTES = (1_500, 4_000)
PARTITION = TopicPartition("t", 0)
Rows = list[tuple[int, bytes | None, bytes | None]]


@pytest.fixture(scope="module")
def kafka() -> Iterator[KafkaLog]:
    with kafka_log() as kafka:
        yield kafka


class KafkasLog:
    """A log that Kafka has open, in the log directory `root`."""

    def __init__(self, kafka: KafkaLog, root: Path, r: random.Random) -> None:
        self.kafka, self.root, self.r = kafka, root, r
        self.now, self.dirty, self.end = NOW, 0, 0
        self.sequences: dict[int, int] = {}
        given = {
            "internal.segment.bytes": str(r.choice(SEGMENT_BYTES)),
            "segment.index.bytes": "1200",
            "index.interval.bytes": "200",
        }
        kafka.ask("clock", self.now)
        settings = {**given, "delete.retention.ms": str(r.choice([0, 100_000]))}
        kafka.ask("open", root / "t-0", 0, 0, "clean", *(f"{name}={value}" for name, value in settings.items()))
        (root / "t-0" / PARTITION_METADATA).write_bytes(write_topic_id("K" * 22))

    def append(self, made: bytes, origin: str) -> None:
        answer = self.kafka.ask("leader", 0, origin, b64encode(made).decode())
        assert "error" not in answer, answer

    def write(self) -> None:
        r, producer = self.r, self.r.choice([-1, -1, 1, 2])
        keys = [b"key-%d" % i for i in range(12)]
        values = [None, b"", b"v" * 20, b"w" * 60]
        made = [record(i, key=r.choice(keys), value=r.choice(values)) for i in range(r.choice([1, 2, 5]))]
        data = batch(
            *made,
            attributes=r.choice([0, 0, GZIP, LZ4, ZSTD]) | (TRANSACTIONAL if producer > 0 else 0),
            base_timestamp=self.now,
            max_timestamp=self.now,
            producer_id=producer,
            producer_epoch=0 if producer > 0 else -1,
            base_sequence=self.sequences.get(producer, 0) if producer > 0 else -1,
        )
        self.sequences[producer] = self.sequences.get(producer, 0) + len(made)
        self.append(data, "CLIENT")

    def live(self, writes: int) -> None:
        for n in range(writes):
            self.write()
            self.now += 50
            if n % 12 == 11:
                for producer in (1, 2):
                    self.append(marker(0, producer, commit=self.r.random() < 0.5, epoch=0, time=self.now), "COORDINATOR")
        for producer in (1, 2):
            self.append(marker(0, producer, commit=True, epoch=0, time=self.now), "COORDINATOR")
        self.kafka.ask("roll")
        self.kafka.ask("clock", self.now)
        self.end = self.kafka.ask("state")["log_end_offset"]
        self.kafka.ask("watermark", self.end)
        self.checkpoint(HIGH_WATERMARK_CHECKPOINT, self.end)

    def clean(self) -> None:
        self.now += 200_000
        self.kafka.ask("clock", self.now)
        answer = self.kafka.ask("clean", self.dirty, self.end, 24 * self.r.choice([9, 1000]), 0.9)
        assert "error" not in answer, answer
        self.dirty = answer["end_offset"]
        self.checkpoint(CLEANER_OFFSET_CHECKPOINT, self.dirty)

    def checkpoint(self, name: str, offset: int) -> None:
        (self.root / name).write_bytes(write_offsets({PARTITION: offset}))

    def reader(self) -> LogReader:
        (found,) = LogDir(OsDisk(), str(self.root)).logs()
        return found


def rows(log: LogReader | ArchivedLog, end: int) -> Rows:
    found = [row for chunk in log.chunks(0, end) for _, some in chunk.records() for row in some.to_pylist()]
    return [(row["offset"], row["key"], row["value"]) for row in found if row["offset"] < end]


@pytest.mark.parametrize("seed", range(LOGS))
def test_the_archive_of_a_log_that_kafka_has_cleaned_reads_as_the_log(kafka: KafkaLog, tmp_path: Path, seed: int) -> None:
    (tmp_path / "t-0").mkdir()
    log, store = KafkasLog(kafka, tmp_path, random.Random(seed)), MemoryStore()
    replaced = 0
    for number in range(ROUNDS):
        for step, change in enumerate((lambda: log.live(40), log.clean, lambda: None)):
            change()
            run = OffloadRun(store, FixedClock(), CountingIds(f"{number}{step}"), "source", lambda _: None)
            done = list(offload(plan(log.reader(), store, replaces=True), run))
            assert [d.error for d in done if d.error] == []
            replaced += sum(d.action == "replaced" for d in done)
        manifest = assert_sound_chain(store, path_of(log.reader()))
        assert manifest.holes == ()
        assert rows(ArchivedLog(store, manifest), manifest.end_offset) == rows(log.reader(), manifest.end_offset)
        committed = [
            row
            for some in ArchivedLog(store, manifest).records(0, manifest.end_offset, committed=True)
            for row in some.column("offset").to_pylist()
        ]
        assert set(committed) <= {offset for offset, *_ in rows(log.reader(), manifest.end_offset)}
    assert replaced > ROUNDS // 2
    store.calls.clear()
    list(offload(plan(log.reader(), store, replaces=True), run))
    assert verbs(store.calls) == ["list", "get"]
    log.kafka.ask("close")


def test_segments_that_kafka_empties_after_they_were_planned_are_no_damage(kafka: KafkaLog, tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    small = next(seed for seed in range(9) if random.Random(seed).choice(SEGMENT_BYTES) == SEGMENT_BYTES[0])
    log, store = KafkasLog(kafka, tmp_path, random.Random(small)), MemoryStore()
    for key in (b"first", b"again", b"again", b"again", b"last"):
        log.append(batch(record(0, key=key, value=b"v" * 1_200), base_timestamp=NOW, max_timestamp=NOW), "CLIENT")
        kafka.ask("roll")
    log.live(0)
    due = plan(log.reader(), store)
    log.clean()
    (tmp_path / CLEANER_OFFSET_CHECKPOINT).unlink()  # the round may still go on: the files that it replaced say who it was
    assert [s.base_offset for s in log.reader().segments if s.next_base_offset and not s.size()] == [1, 2]
    done = list(offload(due, OffloadRun(store, FixedClock(), CountingIds(), "source", lambda _: None)))
    assert [d.error for d in done if d.error] == []
    manifest = assert_sound_chain(store, path_of(log.reader()))
    assert [(g.start, g.end, g.kind) for g in manifest.gaps] == [(1, 3, COMPACTED)]
    log.checkpoint(CLEANER_OFFSET_CHECKPOINT, log.dirty)
    for file in (tmp_path / "t-0").glob("*.deleted"):
        file.unlink()
    run = OffloadRun(store, FixedClock(), CountingIds("b"), "source", lambda _: None)
    assert [d.error for d in offload(plan(log.reader(), store), run) if d.error] == []
    manifest = assert_sound_chain(store, path_of(log.reader()))
    assert (manifest.end_offset, manifest.holes) == (log.end, ())
    assert rows(ArchivedLog(store, manifest), log.end) == rows(log.reader(), log.end)
    kafka.ask("close")
