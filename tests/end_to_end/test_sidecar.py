"""Archiving beside a real broker: it produces, rolls, deletes and compacts, and we read its folder again and again meanwhile.

Then its disk is wiped, and a new broker serves every archived record from a restored one.
"""

import hashlib
import json
import random  # noqa: TID251  # seeded
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from click.testing import CliRunner
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from remote import archive as archives
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.store.open import open_store
from tiering.cli import main
from tiering.read.tiered_log import Isolation
from tiering.wiring import open_tiers

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.timeout(600),  # the broker's life is the first test's time
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

MIB = 1 << 20
ROUNDS = 7
RECORDS_A_ROUND = 1_000
"""Of about 1 KiB, in each partition: a segment in a round, and one offload, so that retention deletes only what is archived."""
PLAIN, IDEMPOTENT, TXN, COMPACTED = "plain", "idempotent", "payments", "compacted"
KEPT = {"segment.bytes": str(MIB), "retention.ms": "-1", "retention.bytes": str(4 * MIB), "file.delete.delay.ms": "100"}
COMPACT = {
    "segment.bytes": str(MIB), "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "delete.retention.ms": "100",
    "file.delete.delay.ms": "100",
}  # fmt: skip
TOPICS = {PLAIN: (2, KEPT), IDEMPOTENT: (1, KEPT), TXN: (2, KEPT), COMPACTED: (1, COMPACT)}
PARTITIONS = [(topic, number) for topic, (partitions, _) in TOPICS.items() for number in range(partitions)]
DELETED = [(topic, number) for topic, number in PARTITIONS if topic != COMPACTED]
BROKER = {
    "log.retention.check.interval.ms": "100",
    "log.initial.task.delay.ms": "100",
    "log.cleaner.backoff.ms": "100",
    "replica.high.watermark.checkpoint.interval.ms": "100",
    "log.flush.start.offset.checkpoint.interval.ms": "100",
}
ISOLATIONS = ("read_uncommitted", "read_committed")

Message = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key and value."""
Given = dict[tuple[str, int, str], list[Message]]


class Tail:
    """A consumer that is never far behind: what it has been given, by isolation and partition."""

    def __init__(self, address: str) -> None:
        self.given: Given = {(*p, isolation): [] for p in PARTITIONS for isolation in ISOLATIONS}
        self._consumers = {}
        for isolation in ISOLATIONS:
            config = {"bootstrap.servers": address, "group.id": "g", "isolation.level": isolation, "log_level": 0}
            config |= {"enable.auto.commit": False, "auto.offset.reset": "error", "enable.partition.eof": True}
            consumer = Consumer({**config, **real_kafka.AT_ONCE})
            consumer.assign([TopicPartition(topic, number, 0) for topic, number in PARTITIONS])
            self._consumers[isolation] = consumer

    def catch_up(self, quiet_s: float = 0.1) -> None:
        """Takes what comes until nothing has come for a while."""
        for isolation, consumer in self._consumers.items():
            while (message := consumer.poll(quiet_s)) is not None:
                if message.error() is None:
                    found = message.offset(), message.timestamp()[1], message.key(), message.value()
                    self.given[(message.topic(), message.partition(), isolation)].append(found)
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()

    def close(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()


class Writers:
    """Producers of each kind; a round writes a segment's worth to each partition."""

    def __init__(self, address: str) -> None:
        config = {"bootstrap.servers": address, "log_level": 0, "linger.ms": 5, "compression.codec": "none"}
        self._random = random.Random(5)
        self._numbers = count()
        self._plain = Producer(config)
        self._idempotent = Producer({**config, "enable.idempotence": True})
        timeout = {"transaction.timeout.ms": 900_000}
        self._transactional = [Producer({**config, **timeout, "transactional.id": f"t{i}"}) for i in range(3)]
        for producer in self._transactional:
            producer.init_transactions()
            producer.begin_transaction()

    def value(self) -> bytes:
        return b"%d " % next(self._numbers) + self._random.randbytes(1_000)

    def round(self, number: int) -> None:
        for i in range(2 * RECORDS_A_ROUND):
            self._plain.produce(PLAIN, self.value(), None, i % 2)
            self._transactional[i % 3].produce(TXN, self.value(), None, (i // 3) % 2)
            if i % 2:
                self._idempotent.produce(IDEMPOTENT, self.value(), None, 0)
                self._idempotent.produce(COMPACTED, self.value(), b"k%d" % self._random.randrange(300), 0)
            if i % 100 == 99:
                self.flush()
        for at, producer in enumerate(self._transactional):
            producer.flush()
            if number % (at + 1) == 0:  # some last for several rounds, and so for several segments
                self._end(producer)
                producer.begin_transaction()

    def _end(self, producer: Producer) -> None:
        producer.abort_transaction() if self._random.randrange(2) else producer.commit_transaction()

    def flush(self) -> None:
        for producer in (self._plain, self._idempotent, *self._transactional):
            producer.flush()

    def end(self) -> None:
        self.flush()
        for producer in self._transactional:
            self._end(producer)


@dataclass
class Life:
    """What came of a broker's life and of archiving beside it."""

    folder: Path
    archive: Path
    given: Given
    rows: list[dict[str, Any]] = field(default_factory=list)
    sealed: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    """SHA-256 of each inactive segment's log as it was seen lying in the folder; of a compacted one, several."""
    local_starts: dict[tuple[str, int], int] = field(default_factory=dict)

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def manifests(self) -> dict[tuple[str, int], Manifest]:
        store = open_store(str(self.archive))
        return {(m.topic, m.partition): m for topic in TOPICS for m in archives.manifests(store, topic)}


def offloaded(life: Life) -> list[dict[str, Any]]:
    command = ["offload", "--log-dir", life.data, "--archive", life.archive, "--topic", "[!_]*", "--output", "json"]
    done = CliRunner().invoke(main, [*map(str, command)], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows


def seal(life: Life) -> None:
    """Notes the inactive segments that lie in the folder now."""
    for topic, number in PARTITIONS:
        files = sorted((life.data / f"{topic}-{number}").glob("*.log"))
        for file in files[:-1]:
            try:
                digest = hashlib.sha256(file.read_bytes()).hexdigest()
            except FileNotFoundError:
                continue  # retention was faster
            life.sealed.setdefault((f"{topic}-{number}", file.stem), set()).add(digest)


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    folder = tmp_path_factory.mktemp("sidecar")
    given: Given = {}
    life = Life(folder, tmp_path_factory.mktemp("archive"), given)
    with real_kafka.broker(folder, **{name.replace(".", "_"): value for name, value in BROKER.items()}) as address:
        admin = AdminClient({"bootstrap.servers": address})
        topics = [NewTopic(name, partitions, 1, config=config) for name, (partitions, config) in TOPICS.items()]
        for future in admin.create_topics(topics).values():
            future.result()
        tail, writers = Tail(address), Writers(address)
        with ThreadPoolExecutor(1) as beside:
            for number in range(ROUNDS):
                offload = beside.submit(offloaded, life)
                writers.round(number)
                tail.catch_up()
                seal(life)
                life.rows += offload.result()
        writers.end()
        tail.catch_up(quiet_s=1)
        time.sleep(1)  # until the high watermarks are written down, and retention has had its say
        seal(life)
        life.rows += offloaded(life)
        life.local_starts = {p: min(int(f.stem) for f in (life.data / f"{p[0]}-{p[1]}").glob("*.log")) for p in PARTITIONS}
        given.update(tail.given)
        tail.close()
        keep = ConfigEntry("retention.bytes", "-1", incremental_operation=AlterConfigOpType.SET)
        resources = [
            ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[keep]) for topic in TOPICS if topic != COMPACTED
        ]
        for future in admin.incremental_alter_configs(resources).values():
            future.result()
    yield life
    shutil.rmtree(folder)
    shutil.rmtree(life.archive)


def test_the_broker_has_rolled_deleted_and_compacted_meanwhile(life: Life) -> None:
    for p in DELETED:
        assert life.local_starts[p] > 0, p
    assert any(len(digests) > 1 for (partition, _), digests in life.sealed.items() if partition.startswith(COMPACTED))
    assert {row["action"] for row in life.rows} >= {"copied", "archived", "keep"}


def test_everything_is_archived_from_its_first_offset_on_without_a_hole(life: Life) -> None:
    store = open_store(str(life.archive))
    for p, manifest in life.manifests().items():
        assert manifest.log_start_offset == 0
        assert manifest.gaps == ()
        entries = list(Entries.of(store, manifest))
        assert len(entries) >= ROUNDS // 2
        assert manifest.local_log_start_offsets.keys() != set()
        copied = [r["segment"] for r in life.rows if (r["topic"], r["partition"], r["action"]) == (*p, "copied")]
        assert sorted(copied) == [e.base_offset for e in entries]
        if p[0] != COMPACTED:
            assert len(set(copied)) == len(copied), "nothing twice"
            assert manifest.end_offset > life.local_starts[p]


def test_archived_segments_are_the_broker_s_files_byte_for_byte(life: Life) -> None:
    store = open_store(str(life.archive))
    checked = 0
    for (topic, number), manifest in life.manifests().items():
        for entry in Entries.of(store, manifest):
            digests = life.sealed.get((f"{topic}-{number}", f"{entry.base_offset:020d}"))
            if digests is not None and topic != COMPACTED:
                body = store.get(manifest.path.segment(entry.log_name))
                assert hashlib.sha256(body).hexdigest() in digests
                checked += 1
    assert checked >= len(DELETED) * ROUNDS // 2


@pytest.mark.parametrize("isolation", ISOLATIONS)
def test_the_archive_gives_what_consumers_were_given(life: Life, isolation: str) -> None:
    """Of the compacted topic consumers and archive may each have seen what the cleaner had not removed yet."""
    for topic in TOPICS:
        for number, log in open_tiers(None, str(life.archive)).partitions(topic).items():
            batches = (b.to_pylist() for b in log.read(0, isolation=Isolation(isolation)))
            ours = [(r["offset"], r["timestamp"], r["key"], r["value"]) for batch in batches for r in batch]
            theirs = [m for m in life.given[topic, number, isolation] if m[0] < log.end_offset()]
            assert ours
            if topic == COMPACTED:
                assert {m[0]: m for m in theirs} | {m[0]: m for m in ours} == {m[0]: m for m in ours} | {m[0]: m for m in theirs}
                assert {m[2]: m for m in ours} == {m[2]: m for m in theirs}
            else:
                assert ours == theirs


def test_a_new_broker_on_a_restored_disk_serves_every_archived_record(life: Life, tmp_path: Path) -> None:
    after = tmp_path / "after"
    shutil.copytree(life.folder, after)
    for path in (after / "data").iterdir():
        if path.name not in ("__cluster_metadata-0", "meta.properties", "bootstrap.checkpoint"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = CliRunner().invoke(main, ["restore", "--archive", str(life.archive), "--to", str(after / "data"), "--output", "json"])
    assert done.exit_code == 0, done.stderr
    ends = {p: manifest.end_offset for p, manifest in life.manifests().items()}
    with real_kafka.broker(after) as address:
        tail = Tail(address)
        tail.catch_up(quiet_s=1)
        tail.close()
    for topic, number in DELETED:
        for isolation in ISOLATIONS:
            theirs = [m for m in life.given[topic, number, isolation] if m[0] < ends[topic, number]]
            assert theirs[0][0] < life.local_starts[topic, number], "what the first broker had deleted is there again"
            assert tail.given[topic, number, isolation] == theirs, (topic, number, isolation)
    latest = {m[2]: m for m in tail.given[COMPACTED, 0, "read_committed"]}
    assert latest == {m[2]: m for m in life.given[COMPACTED, 0, "read_committed"] if m[0] < ends[COMPACTED, 0]}
