"""Archive and live tail, on a real broker with Spark's own Kafka source: each offset once, whatever lies at the boundary."""

import json
import random  # noqa: TID251  # seeded
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import real_kafka
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

from local_log.errors import NotFound
from remote.read.plan import MissingRange
from spark_jobs import live_tail
from spark_jobs.errors import OptionError
from tiering.cli import main

pytestmark = [
    pytest.mark.spark,
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

Offsets = dict[str, dict[str, list[int]]]


@dataclass(frozen=True)
class Live:
    """A broker whose topic `orders` (3 partitions) is archived but for its last segments, and all of its partition 2."""

    address: str
    data: Path
    archive: Path


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """While `orders` was archived, one transaction of it was open, one had ended; both went on afterwards."""
    folder = tmp_path_factory.mktemp("live")
    settings = {"log_segment_bytes": "1048576", "replica_high_watermark_checkpoint_interval_ms": "500"}
    with real_kafka.broker(folder, **settings) as address:
        made = Live(address, folder / "data", folder / "archive")
        create(address, orders=3, holes=1, anew=1, fresh=2)
        open_ones = [transactional(address, name) for name in ("to-be-committed", "to-be-aborted")]
        produce(address, "orders", 3000, (0, 1))
        produce(address, "orders", 10, (2,))
        produce(address, "fresh", 10, (0, 1))
        for producer in open_ones:  # these begin in what will be archived, up to the last stable offset
            producer.begin_transaction()
            fill(producer, "orders", 5, (0, 1))
            producer.flush()
        open_ones[0].commit_transaction()
        produce(address, "orders", 3000, (0, 1))
        for topic in ("holes", "anew"):
            produce(address, topic, 4000, (0,))
        offload(made)
        open_ones[0].begin_transaction()
        for producer in open_ones:
            fill(producer, "orders", 7, (0, 1))
            producer.flush()
        open_ones[0].commit_transaction()
        open_ones[1].abort_transaction()
        produce(address, "orders", 500, (0, 1, 2))
        admin = AdminClient({"bootstrap.servers": address})
        for future in admin.delete_records([TopicPartition("holes", 0, 3990)]).values():
            future.result()
        for future in admin.delete_topics(["anew"]).values():
            future.result()
        time.sleep(2)
        create(address, anew=1)
        yield made


def create(address: str, **partitions: int) -> None:
    admin = AdminClient({"bootstrap.servers": address})
    topics = [NewTopic(name, count, 1, config={"retention.ms": "-1"}) for name, count in partitions.items()]
    for future in admin.create_topics(topics).values():
        future.result()


def transactional(address: str, name: str) -> Producer:
    # The broker aborts what stays open longer.
    producer = Producer(
        {"bootstrap.servers": address, "log_level": 0, "transactional.id": name, "transaction.timeout.ms": 900_000}
    )
    producer.init_transactions()
    return producer


def produce(address: str, topic: str, count: int, partitions: tuple[int, ...]) -> None:
    producer = Producer({"bootstrap.servers": address, "log_level": 0, "linger.ms": 20})
    fill(producer, topic, count, partitions)
    producer.flush()


def fill(producer: Producer, topic: str, count: int, partitions: tuple[int, ...]) -> None:
    r = random.Random(count)
    for i in range(count):
        for partition in partitions:
            producer.produce(topic, r.randbytes(600), b"%d" % i, partition, headers=[("n", b"%d" % i)])
        producer.poll(0)


def offload(live: Live, code: int = 0) -> None:
    time.sleep(3)  # the broker writes its high watermarks down, twice a second here
    words = ["offload", "--log-dir", str(live.data), "--archive", str(live.archive), "--topic", "[!_]*"]
    done = CliRunner().invoke(main, words, catch_exceptions=False)
    assert done.exit_code == code, done.stderr


def consumed(address: str, topic: str, partitions: tuple[int, ...], isolation: str) -> dict[str, list[int]]:
    """The offsets that a consumer gets of each partition."""
    found: dict[str, list[int]] = {}
    for partition in partitions:
        config = {"bootstrap.servers": address, "group.id": "g", "isolation.level": isolation, "enable.partition.eof": True}
        consumer = Consumer({**config, **real_kafka.AT_ONCE, "enable.auto.commit": False})
        consumer.assign([TopicPartition(topic, partition, 0)])
        offsets = []
        while (message := consumer.poll(20)) is not None and not message.error():
            offsets.append(message.offset())
        assert message is not None
        consumer.close()
        found[str(partition)] = offsets
    return found


class Asked:
    """What `live_tail` is asked in the tests' session; `kafka` are the options of Spark's Kafka source."""

    def __init__(self, spark: SparkSession, live: Live) -> None:
        self.spark, self.archive = spark, str(live.archive)
        self.kafka = {"kafka.bootstrap.servers": live.address, "includeHeaders": "true"}

    def read(self, *topics: str, **more: str) -> DataFrame:
        return live_tail.read(self.spark, self.archive, topics, {**self.kafka, **more})

    def read_stream(self, topic: str, boundary: Path) -> DataFrame:
        return live_tail.read_stream(self.spark, self.archive, [topic], self.kafka, boundary=str(boundary))


@pytest.fixture
def asked(spark_and_kafka: SparkSession, live: Live) -> Asked:
    return Asked(spark_and_kafka, live)


def offsets(frame: DataFrame) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    for row in frame.select("topic", "partition", "offset").collect():
        found.setdefault(row["topic"], {}).setdefault(str(row["partition"]), []).append(row["offset"])
    return {topic: {n: sorted(o) for n, o in numbers.items()} for topic, numbers in found.items()}


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_batch_has_each_offset_that_a_consumer_gets_once(asked: Asked, live: Live, isolation: str) -> None:
    frame = asked.read("orders", "fresh", **{"kafka.isolation.level": isolation})
    assert "headers" in frame.columns
    found = offsets(frame)
    assert found["orders"] == consumed(live.address, "orders", (0, 1, 2), isolation)
    assert found["fresh"] == consumed(live.address, "fresh", (0, 1), isolation)
    other = "read_committed" if isolation == "read_uncommitted" else "read_uncommitted"
    assert found["orders"] != consumed(live.address, "orders", (0, 1, 2), other)


def test_the_rows_of_both_together_are_those_of_the_broker_alone(asked: Asked) -> None:
    whole = asked.spark.read.format("kafka").options(**asked.kafka, subscribe="orders,fresh").load()
    joined = asked.read("orders", "fresh")
    assert joined.columns == whole.columns
    of_both, of_the_broker = (
        Counter(f.selectExpr("to_json(struct(*)) AS r").toArrow()["r"].to_pylist()) for f in (joined, whole)
    )
    assert of_both.total() > 12_000
    assert of_both == of_the_broker


def test_the_boundary_is_where_the_archive_ends_of_each_partition(asked: Asked, live: Live) -> None:
    texts = live_tail.boundary_of(asked.spark, asked.archive, ["orders", "fresh"], asked.kafka).starting_offsets()
    boundary = json.loads(texts)
    assert boundary["orders"]["2"] == -2  # never archived
    assert boundary["fresh"] == {"0": -2, "1": -2}
    assert 0 < boundary["orders"]["0"] < consumed(live.address, "orders", (0,), "read_uncommitted")["0"][-1]
    alone = json.loads(live_tail.starting_offsets(asked.archive, ["orders"]))
    assert alone["orders"] == {n: boundary["orders"][n] for n in ("0", "1")}


def test_a_hole_between_archive_and_broker_is_refused_unless_data_loss_is_allowed(asked: Asked) -> None:
    archived = offsets(asked.read("holes", failOnDataLoss="false"))["holes"]["0"]
    assert archived[-1] == 3999
    low = max(o for o in archived if o < 3990)
    assert archived == [*range(low + 1), *range(3990, 4000)]
    with pytest.raises(MissingRange, match=f"^holes-0: the archive lacks offsets \\[{low + 1}, 3990\\): the broker has deleted"):
        asked.read("holes")


def test_topics_and_options_that_do_not_fit_are_refused(asked: Asked) -> None:
    with pytest.raises(Exception, match="deleted and created again"):
        asked.read("anew")
    with pytest.raises(NotFound, match=r"^the broker does not have all of the topics nowhere"):
        asked.read("nowhere")
    with pytest.raises(OptionError, match=r"^option startingOffsets cannot be given"):
        asked.read("orders", startingOffsets="latest")


def test_a_stream_has_each_offset_once_also_when_it_starts_again_and_the_archive_has_grown(
    asked: Asked, live: Live, tmp_path: Path
) -> None:
    def run() -> dict[str, list[int]]:
        frame = asked.read_stream("orders", tmp_path / "boundary")
        writer = frame.writeStream.format("parquet").option("path", f"{tmp_path}/out")
        writer.option("checkpointLocation", f"{tmp_path}/c").trigger(availableNow=True).start().awaitTermination()
        return offsets(asked.spark.read.parquet(f"{tmp_path}/out"))["orders"]

    found = run()
    assert found == consumed(live.address, "orders", (0, 1, 2), "read_uncommitted")
    produce(live.address, "orders", 4000, (0, 1, 2))
    offload(live, 3)  # what was deleted of "holes" and "anew" is lost
    again = run()
    assert again == consumed(live.address, "orders", (0, 1, 2), "read_uncommitted")
    assert len(again["2"]) == len(found["2"]) + 4000
    with pytest.raises(OptionError, match="the boundary that was kept is one of the topics orders"):
        asked.read_stream("fresh", tmp_path / "boundary")


def test_the_checkpoint_of_a_stream_over_the_archive_is_where_sparks_kafka_source_goes_on(
    asked: Asked, live: Live, tmp_path: Path
) -> None:
    options = {"archive": asked.archive, "subscribe": "orders", "startingOffsets": "earliest"}
    frame = asked.spark.readStream.format("tiering").options(**options).load()
    writer = frame.writeStream.format("parquet").option("path", f"{tmp_path}/out").option("checkpointLocation", f"{tmp_path}/c")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    reached = json.loads(query.lastProgress.sources[0].endOffset)
    assert [topic for topic in reached if topic.startswith("orders@")]
    reached["orders"].setdefault("2", -2)  # unless another test has archived it
    rest = asked.spark.read.format("kafka").options(**asked.kafka, subscribe="orders", startingOffsets=json.dumps(reached)).load()
    columns = ("topic", "partition", "offset")
    both = asked.spark.read.parquet(f"{tmp_path}/out").select(*columns).union(rest.select(*columns))
    assert offsets(both)["orders"] == consumed(live.address, "orders", (0, 1, 2), "read_uncommitted")
