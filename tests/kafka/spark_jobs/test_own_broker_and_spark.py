"""Spark's own Kafka source and sink at an endpoint of its own log directory, which is killed in the middle of their queries.

What Spark promises is held: each record once in a sink of files, at least once in Kafka's.
"""

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import logs_to_archive
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from own_broker import OwnBroker
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from remote.store.folder.store import FolderStore

pytestmark = [pytest.mark.oracle, pytest.mark.slow, pytest.mark.spark]

PARTITIONS, ROWS, PATIENCE_S = 2, 1_000, 90
COLUMNS = ["partition", "offset", "timestamp", "timestampType", "key", "value", "headers"]


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OwnBroker]:
    own = OwnBroker(tmp_path)
    try:
        admin = AdminClient({"bootstrap.servers": own.address, "log_level": 0})
        for made in admin.create_topics([NewTopic(name, PARTITIONS) for name in ("rows", "copied")]).values():
            made.result(PATIENCE_S)
        yield own
    finally:
        own.close()


def write(spark: SparkSession, broker: OwnBroker, first: int) -> None:
    """So many rows more, each with a key, a header and a partition."""
    rows = spark.range(first, first + ROWS, numPartitions=2).selectExpr(
        "'rows' AS topic", "CAST(id AS STRING) AS key", "CONCAT('value ', id) AS value",
        f"CAST(id % {PARTITIONS} AS INT) AS partition",
        "ARRAY(NAMED_STRUCT('key', 'of', 'value', ENCODE(CAST(id AS STRING), 'UTF-8'))) AS headers",
    )  # fmt: skip
    rows.write.format("kafka").option("kafka.bootstrap.servers", broker.address).save()


def records(spark: SparkSession, broker: OwnBroker, topic: str) -> DataFrame:
    """All of a topic, by a batch query."""
    of = {"kafka.bootstrap.servers": broker.address, "subscribe": topic, "includeHeaders": "true"}
    return spark.read.format("kafka").options(**of).load()


def queries(spark: SparkSession, broker: OwnBroker, folder: Path, *, to_the_end: bool) -> list[StreamingQuery]:
    """Topic to files and topic to topic, in small batches, from where their checkpoints say."""
    of = {"kafka.bootstrap.servers": broker.address, "subscribe": "rows", "startingOffsets": "earliest"}
    small = {"maxOffsetsPerTrigger": "250"}
    found = []
    for sink, columns, options in (
        ("parquet", ["partition", "offset", "value"], {"path": f"{folder}/files"}),
        ("kafka", ["key", "value"], {"topic": "copied", "kafka.bootstrap.servers": broker.address}),
    ):
        stream = spark.readStream.format("kafka").options(**of, **small).load().select(*columns)
        writer = stream.writeStream.format(sink).options(**options, checkpointLocation=f"{folder}/checkpoint-{sink}")
        found.append((writer.trigger(availableNow=True) if to_the_end else writer).start())
    return found


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def commits(folder: Path) -> list[int]:
    """How many batches each query has ended."""
    return [len(list((folder / f"checkpoint-{sink}" / "commits").glob("[0-9]*"))) for sink in ("parquet", "kafka")]


def test_streams_of_sparks_kafka_source_recover_from_kills_of_the_endpoint_and_restarts_of_their_own(
    spark_and_kafka: SparkSession, broker: OwnBroker, tmp_path: Path
) -> None:
    spark = spark_and_kafka
    write(spark, broker, 0)
    running = queries(spark, broker, tmp_path, to_the_end=False)
    until(lambda: min(commits(tmp_path), default=0) >= 2)
    broker.end(signal.SIGKILL)
    broker.start()
    write(spark, broker, ROWS)
    before = commits(tmp_path)
    until(lambda: all(now > one for now, one in zip(commits(tmp_path), before, strict=True)))
    for one in running:
        assert one.exception() is None
        one.stop()
    write(spark, broker, 2 * ROWS)
    broker.end(signal.SIGKILL)
    broker.start()
    for one in queries(spark, broker, tmp_path, to_the_end=True):
        one.awaitTermination(PATIENCE_S)
        assert (one.isActive, one.exception()) == (False, None)
    read = [(row.partition, row.offset, row.value) for row in records(spark, broker, "rows").collect()]
    values = {b"value %d" % number for number in range(3 * ROWS)}
    assert {value for _, _, value in read} == values
    filed = [(row.partition, row.offset, row.value) for row in spark.read.parquet(f"{tmp_path}/files").collect()]
    assert sorted(filed) == sorted(read), "the sink of files promises each record once"
    copied = [bytes(row.value) for row in records(spark, broker, "copied").select("value").collect()]
    assert set(copied) == values, "the Kafka sink promises each record at least once"


def test_sparks_kafka_source_reads_what_our_source_reads_of_the_archive(
    spark_and_kafka: SparkSession, broker: OwnBroker, tmp_path: Path
) -> None:
    spark, store = spark_and_kafka, FolderStore(str(tmp_path / "archive"))
    write(spark, broker, 0)
    read = records(spark, broker, "rows").select(COLUMNS).collect()
    broker.end(signal.SIGTERM)
    for number in range(PARTITIONS):
        logs_to_archive.roll(broker.logs, f"rows-{number}", ROWS // PARTITIONS)
    logs_to_archive.offload_all(broker.logs, store)
    ours = spark.read.format("tiering").options(archive=f"{tmp_path}/archive", subscribe="rows", includeHeaders="true").load()
    assert sorted(ours.select(COLUMNS).collect()) == sorted(read)
    assert len(read) == ROWS
