"""A real broker, running, beside us on its own log directory: what it answers and what we answer are the same."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from asked_endpoint import Endpoint
from click.testing import CliRunner
from confluent_kafka import Consumer, IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from live_broker_records import CODECS, T0, fill, keys_again_and_again, transactions, wait_for_cleaner, wait_for_high_watermarks
from served_endpoint import served

from remote.archive import manifests
from remote.manifest.gaps import COMPACTED
from remote.store.open import open_store
from tiering.cli import main

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

IDS = {"earliest": OffsetSpec.earliest(), "latest": OffsetSpec.latest(), "max-timestamp": OffsetSpec.max_timestamp()}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path, Path]]:
    """Address, log directory and archive of a broker that has been filled, archived while it runs, and runs on."""
    folder = tmp_path_factory.mktemp("live")
    settings = {"log_cleaner_backoff_ms": "100", "replica_high_watermark_checkpoint_interval_ms": "500"}
    with real_kafka.broker(folder, log_segment_bytes="1048576", **settings) as address:
        admin = AdminClient({"bootstrap.servers": address})
        topics = [NewTopic(name, 2, 1, config={"retention.ms": "-1"}) for name in ("events", "payments")]
        topics.append(NewTopic("latest", 1, 1, config={"retention.ms": "-1", "min.cleanable.dirty.ratio": "0.001"}))
        for future in admin.create_topics(topics).values():
            future.result()
        for codec in CODECS:
            fill(address, codec)
        transactions(address)
        keys_again_and_again(address, admin)
        data = folder / "data"
        wait_for_high_watermarks(data)
        wait_for_cleaner(data)
        before = listing(data)
        answer = tiering("offload", "--log-dir", data, "--archive", folder / "archive", "--topic", "[!_]*", "--output", "json")
        assert listing(data) == before
        assert {(r["topic"], r["partition"]) for r in answer if r["action"] == "copied"} == {
            ("latest", 0),
            *((t, p) for t in ("events", "payments") for p in (0, 1)),
        }
        yield address, data, folder / "archive"


def listing(data: Path) -> dict[str, str]:
    """Every segment's file with a hash of its bytes; what the broker writes by itself meanwhile is left out."""
    files = (f for t in ("events", "payments") for p in range(2) for f in sorted((data / f"{t}-{p}").iterdir()))
    return {str(f.relative_to(data)): hashlib.sha256(f.read_bytes()).hexdigest() for f in files}


def tiering(*args: object) -> Any:
    done = CliRunner().invoke(main, [*map(str, args)], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def consumed(address: str, topic: str, partition: int, isolation: str) -> list[tuple[Any, ...]]:
    config = {"bootstrap.servers": address, "group.id": "g", "isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer({**config, **real_kafka.AT_ONCE, "enable.auto.commit": False})
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
    from tiering.read.tiered_log import Isolation
    from tiering.wiring import open_tiers

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
    from tiering.read.tiered_log import Isolation
    from tiering.wiring import open_tiers

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
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("topic", ["events", "payments"])
def test_spark_rows_are_those_of_sparks_own_kafka_source(live, spark_and_kafka, topic, isolation):
    address, _, archive = live

    def read(format: str, **options: object) -> Any:
        reader = spark_and_kafka.read.format(format).option("subscribe", topic).option("includeHeaders", "true")
        return reader.option("kafka.isolation.level", isolation).options(**options).load()

    ours = read("tiering", archive=archive)
    ends = {r["partition"]: r["max(offset)"] + 1 for r in ours.groupBy("partition").agg({"offset": "max"}).collect()}
    bound = json.dumps({topic: {str(p): e for p, e in ends.items()}})
    theirs = read("kafka", **{"kafka.bootstrap.servers": address, "endingOffsets": bound})
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    mine = rows_of(ours)
    assert mine.total() > 100
    assert mine == rows_of(theirs)


@pytest.mark.spark
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_sparks_own_kafka_source_reads_the_endpoint_as_it_reads_the_broker(live, spark_and_kafka, isolation):
    broker, data, archive = live
    options = {"subscribe": "events,payments", "includeHeaders": "true", "kafka.isolation.level": isolation}

    def read(address: str, ends: str) -> Any:
        reader = spark_and_kafka.read.format("kafka").options(**options)
        return reader.option("kafka.bootstrap.servers", address).option("endingOffsets", ends).load()

    with served(Endpoint(data, open_store(str(archive)))) as (host, port):
        ours = read(f"{host}:{port}", "latest")
        mine = rows_of(ours)
        found = ours.groupBy("topic", "partition").agg({"offset": "max"}).collect()
    ends: dict[str, dict[str, int]] = {"events": {}, "payments": {}}
    for row in found:
        ends[row["topic"]][str(row["partition"])] = row["max(offset)"] + 1
    assert mine.total() > 10_000
    assert mine == rows_of(read(broker, json.dumps(ends)))


@pytest.fixture(scope="module")
def ends(live, spark_and_kafka):
    """The ends of the archived partitions, as options have them."""
    _, _, archive = live
    found: dict[str, dict[str, int]] = {"events": {}, "payments": {}}
    whole = spark_and_kafka.read.format("tiering").options(archive=archive, subscribe="events,payments").load()
    for row in whole.groupBy("topic", "partition").agg({"offset": "max"}).collect():
        found[row["topic"]][str(row["partition"])] = row["max(offset)"] + 1
    return found


EVENTS_END = "the end of events"
"""In place of an option's text: of what the archive has."""


def times(one: int, other: int) -> str:
    return json.dumps({"events": {"0": T0 + one, "1": T0 + other}})


END = {"endingOffsets": EVENTS_END}
QUESTIONS: list[tuple[dict[str, str], str | None]] = [
    ({"startingOffsets": json.dumps({"events": {"0": 100, "1": 7}}), **END}, None),
    ({"startingOffsets": json.dumps({"events": {"0": -2, "1": 4000}}), **END}, None),
    ({"endingOffsets": json.dumps({"events": {"0": 50, "1": 0}})}, None),
    ({"startingTimestamp": str(T0 + 50_000), **END}, None),
    ({"startingTimestamp": str(T0 + 20_000), "endingTimestamp": str(T0 + 80_000)}, None),
    ({"startingTimestamp": str(T0 + 20_000), "startingOffsets": "nonsense", "endingTimestamp": str(T0 + 80_000)}, None),
    ({"startingOffsetsByTimestamp": times(1_000, 90_000), "endingOffsetsByTimestamp": times(2_000, 95_000)}, None),
    ({"startingOffsetsByTimestamp": times(1_000, 70_000), "startingOffsets": "earliest", **END}, None),
    ({"subscribePattern": "even", **END}, None),
    ({"subscribePattern": "^(events|payments)$", "endingOffsets": "the ends"}, None),
    ({"assign": json.dumps({"events": [1]}), "endingOffsets": "the end of partition 1"}, None),
    ({"minPartitions": "7", **END}, None),
    ({"maxRecordsPerPartition": "999", **END}, None),
    (END, "timestamp >= timestamp_millis(1700000030000) AND timestamp < timestamp_millis(1700000031000)"),
    (END, "offset IN (5, 700, 12345) AND partition = 1"),
]
EMPTY: list[tuple[dict[str, str], str | None]] = [
    (
        {"startingTimestamp": str(T0 * 2), "startingOffsetsByTimestampStrategy": "latest", "endingTimestamp": str(T0 * 2)},
        None,
    ),
    (END, "topic = 'payments' OR offset < 0"),
]


@pytest.mark.spark
@pytest.mark.parametrize(("options", "condition"), QUESTIONS + EMPTY)
def test_bounds_of_every_kind_mean_what_they_mean_to_sparks_own_kafka_source(live, spark_and_kafka, ends, options, condition):
    address, _, archive = live
    of = {
        EVENTS_END: {"events": ends["events"]},
        "the ends": ends,
        "the end of partition 1": {"events": {"1": ends["events"]["1"]}},
    }
    asked = {name: json.dumps(of[text]) if text in of else text for name, text in options.items()}
    if not {"assign", "subscribePattern"} & asked.keys():
        asked["subscribe"] = "events"

    def read(format: str, **more: object) -> Counter[str]:
        frame = spark_and_kafka.read.format(format).options(**asked, **more).load()
        return rows_of(frame.where(condition) if condition else frame)

    ours = read("tiering", archive=archive)
    assert bool(ours) == ((options, condition) not in EMPTY)
    assert ours == read("kafka", **{"kafka.bootstrap.servers": address})


def rows_of(frame: Any) -> "Counter[str]":
    """The rows of a frame as JSON, and how often there is each."""
    return Counter(frame.selectExpr("to_json(struct(*)) AS row").toArrow().column("row").to_pylist())


@pytest.fixture(scope="module")
def emptied(live):
    """The first segment of the compacted topic, of which nothing is left: where it starts and ends."""
    _, data, archive = live
    (manifest,) = manifests(open_store(str(archive)), "latest")
    first, second, *_ = sorted((data / "latest-0").glob("*.log"))
    assert first.stat().st_size == 0
    (gap,) = manifest.gaps
    assert (gap.start, gap.kind) == (0, COMPACTED)
    assert gap.end >= int(second.stem)
    assert manifest.entries[0].base_offset == gap.end
    assert manifest.log_start_offset == 0
    return gap.start, gap.end


@pytest.mark.spark
@pytest.mark.parametrize("more", [{}, {"startingOffsets": json.dumps({"latest": {"0": 3}})}])
def test_what_compaction_has_emptied_is_passed_over_as_by_sparks_own_kafka_source(live, spark_and_kafka, emptied, more):
    address, _, archive = live
    (manifest,) = manifests(open_store(str(archive)), "latest")
    asked = {"subscribe": "latest", "endingOffsets": json.dumps({"latest": {"0": manifest.end_offset}}), **more}

    def read(format: str, **options: object) -> Counter[str]:
        return rows_of(spark_and_kafka.read.format(format).options(**asked, **options).load())

    ours = read("tiering", archive=archive)
    assert ours
    assert ours == read("kafka", **{"kafka.bootstrap.servers": address})


@pytest.mark.spark
def test_a_stream_passes_over_it_too(live, spark_and_kafka, emptied, tmp_path):
    _, _, archive = live
    stream = spark_and_kafka.readStream.format("tiering").options(archive=archive, subscribe="latest", startingOffsets="earliest")
    sink = {"path": str(tmp_path / "rows"), "checkpointLocation": str(tmp_path / "at")}
    query = stream.load().writeStream.format("json").options(**sink)
    query.trigger(availableNow=True).start().awaitTermination()
    written = spark_and_kafka.read.json(str(tmp_path / "rows")).agg({"offset": "min", "*": "count"}).collect()[0]
    whole = spark_and_kafka.read.format("tiering").options(archive=archive, subscribe="latest").load()
    assert whole.agg({"offset": "min", "*": "count"}).collect()[0] == written
    assert written["min(offset)"] >= emptied[1]


def test_who_asks_for_its_first_offset_gets_the_first_record_behind_it(live, emptied):
    address, data, archive = live
    theirs = consumed(address, "latest", 0, "read_uncommitted")
    assert theirs[0][0] >= emptied[1]
    for tiers in (["--archive", archive], ["--archive", archive, "--log-dir", data]):
        of = (*tiers, "--topic", "latest", "--output", "json")
        rows = tiering("fetch", *of, "--partition", 0, "--offset", 0, "--max-records", 3)
        assert [row["offset"] for row in rows] == [message[0] for message in theirs[:3]]
        (earliest,) = tiering("offsets", *of, "--time", "earliest")
        assert earliest["offset"] == 0  # as the broker answers
    admin = AdminClient({"bootstrap.servers": address})
    listed = admin.list_offsets({TopicPartition("latest", 0): OffsetSpec.earliest()})
    assert [future.result().offset for future in listed.values()] == [0]


@pytest.mark.parametrize("option", ["--log-dir", "--metadata-log-dir"])
def test_a_compacted_topic_is_kept_as_its_live_broker_says(live, option):
    _, data, archive = live
    retain = ("expire", "--archive", archive, option, data, "--dry-run", "--output", "json")
    rows = tiering(*retain, "-c", "retention.ms=1")
    assert {row["topic"]: row["action"] for row in rows} == {"events": "expire", "payments": "expire", "latest": "keep"}
    named = tiering(*retain, "-c", "latest:retention.ms=1", "--topic", "latest")
    assert [row["action"] for row in named] == ["expire"]
