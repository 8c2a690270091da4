"""A real broker, running, beside us on its own log directory: what it answers and what we answer are the same."""

import hashlib
import json
import random  # noqa: TID251  # seeded
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from confluent_kafka import Consumer, IsolationLevel, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
T0 = 1_700_000_000_000
IDS = {"earliest": OffsetSpec.earliest(), "latest": OffsetSpec.latest(), "max-timestamp": OffsetSpec.max_timestamp()}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, Path]]:
    """Address, log directory and archive of a broker that has been filled, archived while it runs, and runs on."""
    folder = tmp_path_factory.mktemp("live")
    with real_kafka.broker(folder, log_segment_bytes="1048576") as address:
        admin = AdminClient({"bootstrap.servers": address})
        topics = [NewTopic(name, 2, 1, config={"retention.ms": "-1"}) for name in ("events", "payments")]
        for future in admin.create_topics(topics).values():
            future.result()
        for codec in CODECS:
            fill(address, codec)
        transactions(address)
        data = folder / "data"
        wait_for_high_watermarks(data)
        before = listing(data)
        answer = tiering("offload", "--log-dir", data, "--archive", folder / "archive", "--topic", "[!_]*", "--output", "json")
        assert listing(data) == before
        assert {(r["topic"], r["partition"]) for r in answer if r["action"] == "copied"} == {
            (t, p) for t in ("events", "payments") for p in (0, 1)
        }
        yield address, data, folder / "archive"


def fill(address: str, codec: str) -> None:
    r = random.Random(codec)
    producer = Producer(
        {"bootstrap.servers": address, "log_level": 0, "compression.codec": codec, "linger.ms": 20, "batch.size": 100_000}
    )
    for i in range(10_000):
        key = None if i % 7 == 0 else b"k%d" % r.randrange(100)
        value = None if i % 11 == 0 else r.randbytes(r.randrange(200)) + b"text " * r.randrange(40)
        headers = [("trace", b"%d" % i), ("empty", b""), ("null", None)] if i % 5 == 0 else None
        producer.produce("events", value, key, i % 2, timestamp=T0 + i * 10 - r.randrange(500), headers=headers)
        producer.poll(0)
    producer.flush()


def transactions(address: str) -> None:
    # The broker aborts what stays open longer, which moves the log's end in the middle of a test.
    config = {"bootstrap.servers": address, "log_level": 0, "transaction.timeout.ms": 900_000}
    producers = [Producer({**config, "transactional.id": f"t{i}"}) for i in range(3)]
    for producer in producers:
        producer.init_transactions()
    r = random.Random(3)
    for round_ in range(60):
        for producer in producers:
            producer.begin_transaction()
        for i in range(200):
            producers[i % 3].produce("payments", r.randbytes(600), b"%d" % i, i % 2, timestamp=T0 + round_ * 1000 + i)
        for producer in producers:
            producer.flush()
            producer.abort_transaction() if r.randrange(3) == 0 else producer.commit_transaction()
    producers[0].begin_transaction()  # and one that stays open
    for partition in range(2):
        producers[0].produce("payments", b"undecided", b"", partition, timestamp=T0)
    producers[0].flush()
    transactions.open = producers  # type: ignore[attr-defined]  # alive, so that nobody aborts it


def wait_for_high_watermarks(data: Path) -> None:
    """The broker writes them down every 5 s."""
    file = data / "replication-offset-checkpoint"
    deadline, seen = time.monotonic() + 30, file.read_text()
    while time.monotonic() < deadline:
        time.sleep(5.5)
        if (now := file.read_text()) == seen and "payments" in now:
            return
        seen = now
    raise AssertionError("the broker does not write its high watermarks down")


def listing(data: Path) -> dict[str, str]:
    """Every segment's file with a hash of its bytes; what the broker writes by itself meanwhile is left out."""
    files = (f for t in ("events", "payments") for p in range(2) for f in sorted((data / f"{t}-{p}").iterdir()))
    return {str(f.relative_to(data)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def tiering(*args: object) -> Any:
    done = subprocess.run([sys.executable, "-m", "tiering", *map(str, args)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def consumed(address: str, topic: str, partition: int, isolation: str) -> list[tuple[Any, ...]]:
    config = {"bootstrap.servers": address, "group.id": "g", "isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer({**config, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, 0)])
    found = []
    while True:
        message = consumer.poll(10)
        assert message is not None
        if message.error():
            break
        headers = [(k.encode(), v) for k, v in message.headers() or []]
        found.append((message.offset(), message.timestamp()[1], message.key(), message.value(), headers))
    consumer.close()
    return found


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("topic", ["events", "payments"])
def test_both_tiers_give_what_a_consumer_of_the_broker_is_given(live, topic, isolation):
    from tiering.service import open_tiers
    from tiering.tiered_log import Isolation

    address, data, archive = live
    for number, log in open_tiers(str(data), str(archive)).partitions(topic).items():
        batches = [b.to_pylist() for b in log.read(0, isolation=Isolation(isolation))]
        ours = [
            (r["offset"], r["timestamp"], r["key"], r["value"], [(h["key"], h["value"]) for h in r["headers"]])
            for batch in batches
            for r in batch
        ]
        assert ours == consumed(address, topic, number, isolation)


@pytest.mark.parametrize("topic", ["events", "payments"])
def test_the_archive_alone_gives_the_beginning_of_what_a_consumer_is_given(live, topic):
    from tiering.service import open_tiers
    from tiering.tiered_log import Isolation

    address, _, archive = live
    for number, log in open_tiers(None, str(archive)).partitions(topic).items():
        ours = [o for b in log.read(0, isolation=Isolation.read_committed) for o in b.column("offset").to_pylist()]
        theirs = [m[0] for m in consumed(address, topic, number, "read_committed") if m[0] < log.end_offset()]
        assert ours == theirs
        assert ours


@pytest.mark.parametrize("topic", ["events", "payments"])
def test_offsets_are_those_that_the_broker_lists(live, topic):
    address, data, archive = live
    admin = AdminClient({"bootstrap.servers": address})
    asked = [T0 - 1, T0, T0 + 12_345, T0 + 20_000, T0 + 39_990, T0 + 29_199, T0 + 10**9]
    for time_word, spec in IDS.items() | {(str(t), OffsetSpec.for_timestamp(t)) for t in asked}:
        partitions = {TopicPartition(topic, p): spec for p in range(2)}
        futures = admin.list_offsets(partitions, isolation_level=IsolationLevel.READ_UNCOMMITTED)
        theirs = sorted((tp.partition, f.result().offset, f.result().timestamp) for tp, f in futures.items())
        rows = tiering(
            "offsets", "--log-dir", data, "--archive", archive, "--topic", topic, "--time", time_word, "--output", "json"
        )
        none = -1
        ours = [
            (r["partition"], none, none) if r["offset"] is None else (r["partition"], r["offset"], r["timestamp"]) for r in rows
        ]
        assert ours == theirs, time_word


@pytest.mark.spark
def test_spark_rows_are_those_of_sparks_own_kafka_source(live, tmp_path):
    address, _, archive = live
    script = tmp_path / "rows.py"
    script.write_text(SPARK_SCRIPT)
    jars = ",".join(map(str, real_kafka.jars(real_kafka.SPARK_SOURCE)))
    done = subprocess.run([sys.executable, script, address, archive, jars], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-20000:]
    answers = json.loads(done.stdout)
    assert answers
    assert all(a["schemas_equal"] and a["rows"] > 100 and a["only_ours"] == a["only_theirs"] == 0 for a in answers), answers


@pytest.mark.spark
def test_bounds_of_every_kind_mean_what_they_mean_to_sparks_own_kafka_source(live, tmp_path):
    address, _, archive = live
    script = tmp_path / "bounds.py"
    script.write_text(BOUNDS_SCRIPT)
    jars = ",".join(map(str, real_kafka.jars(real_kafka.SPARK_SOURCE)))
    done = subprocess.run([sys.executable, script, address, archive, jars], capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr[-20000:]
    answers = json.loads(done.stdout)
    assert len(answers) == 17
    assert all(a["only_ours"] == a["only_theirs"] == 0 for a in answers), answers
    assert all((a["rows"] > 0) == a["some"] for a in answers), answers


BOUNDS_SCRIPT = """
import json, sys
from collections import Counter
from spark_jobs.session import session

address, archive, jars = sys.argv[1:]
spark = session("bounds", master="local[2]", conf={"spark.jars": jars, "spark.sql.shuffle.partitions": "2"})
T0 = 1_700_000_000_000


def read(format, options):
    defaults = {} if {"assign", "subscribePattern"} & options.keys() else {"subscribe": "events"}
    return spark.read.format(format).options(**{**defaults, **options}).load()


ends = {"events": {}, "payments": {}}
whole = read("tiering", {"archive": archive, "subscribe": "events,payments"})
for row in whole.groupBy("topic", "partition").agg({"offset": "max"}).collect():
    ends[row["topic"]][str(row["partition"])] = row["max(offset)"] + 1
end = {"endingOffsets": json.dumps({"events": ends["events"]})}
times = lambda one, other: json.dumps({"events": {"0": T0 + one, "1": T0 + other}})
questions = [
    ({"startingOffsets": json.dumps({"events": {"0": 100, "1": 7}}), **end}, None, True),
    ({"startingOffsets": json.dumps({"events": {"0": -2, "1": 4000}}), **end}, None, True),
    ({"endingOffsets": json.dumps({"events": {"0": 50, "1": 0}})}, None, True),
    ({"startingTimestamp": str(T0 + 50_000), **end}, None, True),
    ({"startingTimestamp": str(T0 + 20_000), "endingTimestamp": str(T0 + 80_000)}, None, True),
    ({"startingTimestamp": str(T0 + 20_000), "startingOffsets": "nonsense", "endingTimestamp": str(T0 + 80_000)}, None, True),
    ({"startingOffsetsByTimestamp": times(1_000, 90_000), "endingOffsetsByTimestamp": times(2_000, 95_000)}, None, True),
    ({"startingOffsetsByTimestamp": times(1_000, 70_000), "startingOffsets": "earliest", **end}, None, True),
    ({"startingTimestamp": str(T0 * 2), "startingOffsetsByTimestampStrategy": "latest",
      "endingTimestamp": str(T0 * 2)}, None, False),
    ({"subscribePattern": "even", **end}, None, True),
    ({"subscribePattern": "^(events|payments)$", "endingOffsets": json.dumps(ends)}, None, True),
    ({"assign": json.dumps({"events": [1]}), "endingOffsets": json.dumps({"events": {"1": ends["events"]["1"]}})}, None, True),
    ({"minPartitions": "7", **end}, None, True),
    ({"maxRecordsPerPartition": "999", **end}, None, True),
    (end, "timestamp >= timestamp_millis(1700000030000) AND timestamp < timestamp_millis(1700000031000)", True),
    (end, "offset IN (5, 700, 12345) AND partition = 1", True),
    (end, "topic = 'payments' OR offset < 0", False),
]
answers = []
for options, condition, some in questions:
    ours = read("tiering", {**options, "archive": archive})
    theirs = read("kafka", {**options, "kafka.bootstrap.servers": address})
    if condition:
        ours, theirs = ours.where(condition), theirs.where(condition)
    one, other = (Counter(row[0] for row in f.selectExpr("to_json(struct(*))").collect()) for f in (ours, theirs))
    answers.append({
        "options": options,
        "condition": condition,
        "some": some,
        "rows": one.total(),
        "only_ours": (one - other).total(),
        "only_theirs": (other - one).total(),
    })
print(json.dumps(answers))
"""

SPARK_SCRIPT = """
import json, sys
from spark_jobs.session import session

address, archive, jars = sys.argv[1:]
spark = session("rows", master="local[2]", conf={"spark.jars": jars})
answers = []
for topic in ("events", "payments"):
    for isolation in ("read_uncommitted", "read_committed"):
        def read(format, **options):
            reader = spark.read.format(format).option("subscribe", topic).option("includeHeaders", "true")
            return reader.option("kafka.isolation.level", isolation).options(**options).load()

        ours = read("tiering", archive=archive).cache()
        ends = {r["partition"]: r["max(offset)"] + 1 for r in ours.groupBy("partition").agg({"offset": "max"}).collect()}
        bound = json.dumps({topic: {str(p): e for p, e in ends.items()}})
        theirs = read("kafka", **{"kafka.bootstrap.servers": address, "endingOffsets": bound}).cache()
        answers.append({
            "topic": topic,
            "isolation": isolation,
            "rows": ours.count(),
            "only_ours": ours.exceptAll(theirs).count(),
            "only_theirs": theirs.exceptAll(ours).count(),
            "schemas_equal": [(f.name, f.dataType.simpleString()) for f in ours.schema]
            == [(f.name, f.dataType.simpleString()) for f in theirs.schema],
        })
print(json.dumps(answers))
"""
