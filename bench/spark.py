"""Spark over the archive beside Spark over the broker: the same records, the same session, two cores."""

import json
import os
import shutil
import time
from pathlib import Path

import real_kafka  # beside the tests
from figures import Figure, compare  # beside this file
from filled_broker import CODECS, Filled  # beside this file
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.common.target import Target
from spark_jobs.jobs import backfill
from spark_jobs.session import session
from spark_jobs.source.options import parse

TWO_COLUMNS = "offset bigint, timestamp timestamp"
CORES = os.cpu_count() or 2
PARTITIONS = 4 * CORES
"""Of ours: segments are few here, and a last round of tasks that leaves cores idle would count."""
WARM_UPS = 6
"""Rounds after which the JVM has compiled what both sources run."""


def run(filled: Filled, out: Path, rounds: int) -> None:
    """Prints M records/s of each, and how many times faster than Spark's Kafka source ours is."""
    jars = ",".join(map(str, real_kafka.jars(real_kafka.SPARK_SOURCE)))
    spark = session("bench", master="local[2]", conf={"spark.jars": jars, "spark.driver.memory": "4g"})
    try:
        for codec in CODECS:
            print(f"Spark on two cores, {filled.archived[codec]:,} records, {codec}")
            of_codec(spark, filled, codec, out, rounds)
    finally:
        spark.stop()


def of_codec(spark: SparkSession, filled: Filled, codec: str, out: Path, rounds: int) -> None:
    """The contests over one topic."""
    rows = filled.archived[codec]
    all_columns = {
        "format tiering, rows dropped": lambda: dropped(archived(spark, filled, codec), rows),
        "Spark's Kafka source, rows dropped": lambda: dropped(consumed(spark, filled, codec), rows),
    }
    two_columns = {
        "two columns: format tiering": lambda: dropped(archived(spark, filled, codec, TWO_COLUMNS), rows),
        "two columns: Spark's Kafka source": lambda: dropped(consumed(spark, filled, codec).select("offset", "timestamp"), rows),
    }
    to_parquet = {
        "backfill to Parquet": lambda: backfilled(filled, codec, out / "parquet-ours"),
        "Spark's Kafka source to Parquet": lambda: written(spark, filled, codec, out / "parquet-spark"),
    }
    compare(all_columns, rounds + WARM_UPS)
    compare(two_columns, rounds + WARM_UPS)
    compare(to_parquet, rounds + WARM_UPS)


def archived(spark: SparkSession, filled: Filled, codec: str, schema: str | None = None) -> DataFrame:
    """A topic by the format `tiering`."""
    options = {"archive": filled.archive, "subscribe": filled.topic(codec), "minPartitions": PARTITIONS}
    reader = spark.read.format("tiering").options(**options)
    return (reader.schema(schema) if schema else reader).load()


def consumed(spark: SparkSession, filled: Filled, codec: str) -> DataFrame:
    """The same offsets by Spark's Kafka source, with a task for each core and large fetches."""
    topic = filled.topic(codec)
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", filled.address)
        .option("subscribe", topic)
        .option("endingOffsets", json.dumps({topic: {"0": filled.archived[codec]}}))
        .option("minPartitions", CORES)
        .option("kafka.max.partition.fetch.bytes", 10 << 20)
        .load()
    )


def dropped(frame: DataFrame, rows: int) -> Figure:
    """Every row is made, and kept by nobody."""
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return Figure(rows, 0, time.perf_counter() - started)


def written(spark: SparkSession, filled: Filled, codec: str, target: Path) -> Figure:
    """Rows of Spark's Kafka source, written by Spark."""
    frame = consumed(spark, filled, codec)
    nothing_there(target)
    started = time.perf_counter()
    frame.write.parquet(str(target))
    seconds = time.perf_counter() - started
    return checked(spark.read.parquet(str(target)).count(), filled.archived[codec], seconds)


def backfilled(filled: Filled, codec: str, target: Path) -> Figure:
    """The job `backfill`."""
    nothing_there(target)
    options = parse({"archive": filled.archive, "subscribe": filled.topic(codec)})
    started = time.perf_counter()
    report = backfill.run(options, Target(str(target)), "snappy")
    return checked(report["rows"], filled.archived[codec], time.perf_counter() - started)


def nothing_there(target: Path) -> None:
    """Deletes what the last round left, and has the disk done with it: ours syncs what it writes, and would wait for Spark's."""
    shutil.rmtree(target, ignore_errors=True)
    os.sync()


def checked(rows: int, expected: int, seconds: float) -> Figure:
    """A figure of a run that read what it should."""
    if rows != expected:
        raise AssertionError(f"{rows} rows of {expected}")
    return Figure(rows, 0, seconds)
