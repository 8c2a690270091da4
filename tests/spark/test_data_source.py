"""`spark.read.format("tiering")`: the archive as a table, as users of Spark's Kafka source know it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_logs import broker_logs, live
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from spark_jobs.source.batch_reader import BatchReader
from spark_jobs.source.options import parse

pytestmark = pytest.mark.spark

Row = dict[str, Any]
Expected = Callable[..., list[Row]]
Load = Callable[..., DataFrame]

KAFKA_SCHEMA = "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int"


@pytest.fixture
def load(spark: SparkSession, archive: str) -> Load:
    """`load(topics, option=value, …)`: a DataFrame over the archive."""

    def loaded(topics: str, schema: str | None = None, **options: str) -> DataFrame:
        reader = spark.read.format("tiering").option("archive", archive).option("subscribe", topics).options(**options)
        return (reader.schema(schema) if schema else reader).load()

    return loaded


def rows(frame: DataFrame) -> list[Row]:
    return sorted(frame.toArrow().to_pylist(), key=lambda row: (row.get("topic", ""), row["offset"]))


def without_headers(expected: list[Row]) -> list[Row]:
    return [{name: value for name, value in row.items() if name != "headers"} for row in expected]


@pytest.mark.parametrize(
    "topic",
    [
        "g-codec-gzip", "g-codec-lz4", "g-codec-none", "g-codec-snappy", "g-codec-zstd", "g-mixed", "g-appendtime", "g-big",
        "g-compacted", "g-epochs", "g-trimmed",
    ],
)  # fmt: skip
def test_rows_are_the_golden_records(load: Load, expected: Expected, topic: str) -> None:
    assert rows(load(topic, includeHeaders="true")) == expected(topic)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_transactions_are_seen_as_the_isolation_level_says(load: Load, expected: Expected, isolation: str) -> None:
    only = set(live("g-txn-0")["read_committed_offsets"]) if isolation == "read_committed" else None
    found = rows(load("g-txn", includeHeaders="true", **{"kafka.isolation.level": isolation}))
    assert found == expected("g-txn", only=only)
    assert max(row["offset"] for row in found) < 2744


def test_the_schema_is_that_of_sparks_kafka_source(load: Load) -> None:
    assert load("g-tiny").schema.simpleString() == f"{KAFKA_SCHEMA}>"
    headers = ",headers:array<struct<key:string,value:binary>>>"
    assert load("g-tiny", includeHeaders="true").schema.simpleString() == KAFKA_SCHEMA + headers


def test_collected_rows_have_sparks_types(load: Load) -> None:
    (row,) = load("g-tiny", includeHeaders="true").selectExpr("*", "unix_millis(timestamp) AS ms").collect()
    assert (row.topic, row.partition, row.offset, row.timestampType, row.ms) == ("g-tiny", 0, 0, 0, 1700000000123)


def test_several_topics_are_read_together(load: Load, expected: Expected) -> None:
    found = rows(load("g-txn, g-tiny,g-codec-none"))
    assert found == without_headers([*expected("g-codec-none"), *expected("g-tiny"), *expected("g-txn")])


def test_counting_and_filtering_are_sparks_affair(load: Load, expected: Expected) -> None:
    assert load("g-codec-snappy").count() == 4000
    assert load("g-trimmed").filter("offset < 1240").count() == 6
    counts = load("g-txn,g-mixed").groupBy("topic").count().collect()
    assert {row["topic"]: row["count"] for row in counts} == {t: len(expected(t)) for t in ("g-txn", "g-mixed")}


def test_a_schema_of_the_users_narrows_down_the_columns(load: Load, expected: Expected) -> None:
    frame = load("g-mixed", schema="offset bigint, timestamp timestamp")
    assert frame.columns == ["offset", "timestamp"]
    assert rows(frame) == [{"offset": row["offset"], "timestamp": row["timestamp"]} for row in expected("g-mixed")]


@pytest.mark.parametrize("schema", ["offset int", "offset bigint, colour string"])
def test_a_schema_with_what_is_not_there_is_refused_with_what_is(load: Load, schema: str) -> None:
    column = schema.split(", ")[-1]
    with pytest.raises(PySparkException, match=f"column {column} is none of: key binary"):
        load("g-tiny", schema=schema).collect()


def test_sql_reads_it_too(spark: SparkSession, archive: str) -> None:
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY VIEW tiny USING tiering OPTIONS (archive '{archive}', subscribe 'g-trimmed', "
        "includeHeaders 'true')"
    )
    (row,) = spark.sql("SELECT min(offset) AS low, max(offset) AS high, count(*) AS rows FROM tiny").collect()
    assert (row["low"], row["high"], row["rows"]) == (1234, 2999, 1766)
    assert "headers" in spark.table("tiny").columns


@pytest.mark.parametrize(
    ("topic", "start", "end", "low", "high"),
    [
        ("g-codec-none", "earliest", "latest", 0, 2500),
        ("g-trimmed", "earliest", "latest", 1234, 3000),
        ("g-codec-none", '{"g-codec-none": {"0": 1650}}', '{"g-codec-none": {"0": 1660}}', 1650, 1660),
        ("g-codec-none", '{"g-codec-none": {"0": -2}}', '{"g-codec-none": {"0": 10}}', 0, 10),
        ("g-codec-none", '{"g-codec-none": {"0": 2490}}', '{"g-codec-none": {"0": -1}}', 2490, 2500),
        ("g-codec-none", '{"g-codec-none": {"0": 7}}', '{"g-codec-none": {"0": 7}}', 7, 7),
    ],
)
def test_offsets_bound_the_rows(load: Load, expected: Expected, topic: str, start: str, end: str, low: int, high: int) -> None:
    found = rows(load(topic, startingOffsets=start, endingOffsets=end))
    assert found == without_headers(expected(topic, low, high))
    assert len(found) == high - low


@pytest.mark.parametrize("topic", ["g-codec-lz4", "g-appendtime"])
def test_timestamps_bound_the_rows(load: Load, expected: Expected, topic: str) -> None:
    answers = [answer for answer in live(f"{topic}-0")["offset_for_timestamp"] if answer[1] >= 0]
    (start, low, *_), (end, high, *_) = answers[len(answers) // 3], answers[2 * len(answers) // 3]
    found = rows(load(topic, startingTimestamp=str(start), endingTimestamp=str(end)))
    assert found == without_headers(expected(topic, low, high))
    assert found


def test_min_partitions_divides_the_work_and_gives_each_row_once(load: Load, expected: Expected) -> None:
    frame = load("g-codec-zstd", includeHeaders="true", minPartitions="5")
    assert frame.rdd.getNumPartitions() >= 5
    assert rows(frame) == expected("g-codec-zstd")


def test_an_archive_on_s3_reads_like_one_in_a_folder(
    spark: SparkSession, tiering: Callable[..., str], broker: Path, s3_bucket: str, expected: Expected
) -> None:
    url = f"s3://{s3_bucket}/prefix"
    tiering("offload", "--log-dir", broker, "--archive", url, "--topic", "g-txn")
    frame = spark.read.format("tiering").options(archive=url, subscribe="g-txn", includeHeaders="true").load()
    assert rows(frame) == expected("g-txn")


def test_a_plan_reads_what_it_was_planned_with_whatever_is_committed_meanwhile(
    tiering: Callable[..., str], roll: Callable[[Path, str], None], expected: Expected, tmp_path: Path
) -> None:
    logs, url = broker_logs(tmp_path / "logs", "g-codec-none-0"), str(tmp_path / "archive")
    tiering("offload", "--log-dir", logs, "--archive", url)
    reader = BatchReader(parse({"archive": url, "subscribe": "g-codec-none", "includeHeaders": "true"}), ("offset", "value"))

    def read(partitions: list[Any]) -> list[int]:
        return [offset for p in partitions for batch in reader.read(p) for offset in batch.column("offset").to_pylist()]

    planned = reader.partitions()
    roll(logs, "g-codec-none-0")
    tiering("offload", "--log-dir", logs, "--archive", url)
    assert read(planned) == [row["offset"] for row in expected("g-codec-none", end=1657)]
    assert read(reader.partitions()) == [row["offset"] for row in expected("g-codec-none")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"startingOffset": "earliest"}, "option startingoffset is unknown .*did you mean startingOffsets"),
        ({"subscribe": "g-nowhere"}, "topic g-nowhere is not in the archive .*g-codec-none"),
        ({"minPartitions": "few"}, "option minPartitions is 'few'"),
        ({"startingTimestamp": "4000000000000"}, "startingTimestamp 4000000000000: g-tiny-0 has no record at or after it"),
        ({"startingOffsets": json.dumps({"g-tiny": {"0": 9}})}, r"g-tiny-0: offset 9 is outside \[0, 1\)"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_name_of_the_option(
    spark: SparkSession, archive: str, options: dict[str, str], message: str
) -> None:
    reader = spark.read.format("tiering").options(**{"archive": archive, "subscribe": "g-tiny", **options})
    with pytest.raises(PySparkException, match=message):
        reader.load().collect()


def test_an_archive_of_a_newer_format_asks_for_an_upgrade(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "archive.json").write_text('{"format": {"major": 2, "minor": 0}}')
    reader = spark.read.format("tiering").options(archive=str(tmp_path), subscribe="g-tiny")
    with pytest.raises(PySparkException, match="upgrade"):
        reader.load().collect()
