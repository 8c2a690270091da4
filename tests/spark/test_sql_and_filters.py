"""Filters of queries as Spark hands them out, tables in SQL, and what a schema of the user's spares."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from shutil import copytree
from typing import Any

import pytest
from golden_logs import live
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

Row = dict[str, Any]
Expected = Callable[..., list[Row]]
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def without_second_halves(archive: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The archive without the log objects of the last segment of each partition: who reads them fails."""
    holey = copytree(archive, tmp_path_factory.mktemp("holey") / "archive")
    for folder in holey.glob("*/*/0/segments"):
        sorted(folder.glob("*.log"))[-1].unlink()
    return str(holey)


@pytest.fixture
def load(spark: SparkSession, without_second_halves: str) -> Callable[..., DataFrame]:
    def loaded(topics: str, **options: str) -> DataFrame:
        return spark.read.format("tiering").options(archive=without_second_halves, subscribe=topics, **options).load()

    return loaded


@pytest.fixture
def no_pushdown(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(PUSHDOWN, "false")
    yield
    spark.conf.set(PUSHDOWN, "true")


def ms(row: Row) -> int:
    return round(row["timestamp"].timestamp() * 1000)


@pytest.mark.parametrize(
    "condition",
    [
        "offset < 1657", "offset <= 1656 AND offset >= 100", "offset = 5", "offset IN (5, 700)", "offset <=> 5",
        "partition = 7", "topic = 'g-nowhere'", "offset < 100 AND key IS NOT NULL",
    ],
)  # fmt: skip
def test_what_a_filter_excludes_is_not_read(load: Callable[..., DataFrame], expected: Expected, condition: str) -> None:
    """What would be read beside that is not there."""
    frame = load("g-codec-none", pushdown="true").where(condition)
    python = condition.replace("<=>", "==").replace(" = ", " == ").replace("AND", "and").replace("IN", "in")
    python = python.replace("key IS NOT NULL", "key is not None")
    wanted = [row["offset"] for row in expected("g-codec-none") if eval(python, {}, row)]  # ours, above
    assert sorted(row["offset"] for row in frame.collect()) == wanted


def test_a_window_of_time_is_read_alone(load: Callable[..., DataFrame], expected: Expected) -> None:
    rows = expected("g-codec-none")
    high = min(ms(row) for row in rows if row["offset"] >= 1657)
    wanted = [row["offset"] for row in rows if ms(row) < high]
    assert wanted
    end = datetime.fromtimestamp(high / 1000, UTC)
    frame = load("g-codec-none", pushdown="true").where(f"timestamp < timestamp'{end.isoformat()}'")
    assert sorted(row["offset"] for row in frame.collect()) == wanted


def test_without_filters_all_is_read(load: Callable[..., DataFrame]) -> None:
    with pytest.raises(PySparkException, match="restore the object from a copy"):
        load("g-codec-none").collect()
    with pytest.raises(PySparkException, match="restore the object from a copy"):
        load("g-codec-none").where("offset < 100").collect()


def test_a_frame_gives_each_of_its_queries_all_that_they_ask_for(spark: SparkSession, archive: str, expected: Expected) -> None:
    """Spark would take what it has planned for the first of them for the others, too."""
    frame = spark.read.format("tiering").options(archive=archive, subscribe="g-codec-none").load()
    offsets = [row["offset"] for row in expected("g-codec-none")]
    assert frame.where("offset < 100").count() == sum(offset < 100 for offset in offsets)
    assert frame.count() == len(offsets)
    (row,) = frame.selectExpr("min(offset) AS low", "max(offset) AS high").collect()
    assert (row["low"], row["high"]) == (offsets[0], offsets[-1])
    both = frame.where("offset < 100").alias("a").join(frame.where("offset >= 50").alias("b"), "offset")
    assert both.count() == sum(50 <= offset < 100 for offset in offsets)


@pytest.mark.usefixtures("no_pushdown")
def test_a_session_that_hands_out_no_filters_reads_all_and_filters_itself(
    spark: SparkSession, archive: str, load: Callable[..., DataFrame]
) -> None:
    reader = spark.read.format("tiering").options(archive=archive, subscribe="g-codec-none")
    assert reader.load().where("offset < 100").count() == 100
    with pytest.raises(PySparkException, match=PUSHDOWN):
        load("g-codec-none", pushdown="true").where("offset < 100").collect()


def test_a_table_in_sql(spark: SparkSession, archive: str, expected: Expected) -> None:
    spark.sql(f"CREATE TABLE txn USING tiering OPTIONS (archive '{archive}', subscribe 'g-txn', includeHeaders 'true')")
    try:
        (row,) = spark.sql("SELECT count(*) AS rows, max(offset) AS high FROM txn WHERE offset >= 100").collect()
        wanted = [r["offset"] for r in expected("g-txn", start=100)]
        assert (row["rows"], row["high"]) == (len(wanted), wanted[-1])
        assert "headers" in spark.table("txn").columns
    finally:
        spark.sql("DROP TABLE txn")


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("topic", ["g-txn", "g-compacted", "g-mixed", "g-codec-zstd", "g-trimmed"])
def test_rows_are_counted_without_being_decoded(
    spark: SparkSession, archive: str, expected: Expected, topic: str, isolation: str
) -> None:
    only = set(live(f"{topic}-0")["read_committed_offsets"]) if isolation == "read_committed" else None
    reader = spark.read.format("tiering").options(archive=archive, subscribe=topic, minPartitions="5")
    frame = reader.option("kafka.isolation.level", isolation).schema("partition int, topic string, timestampType int").load()
    wanted = expected(topic, only=only)
    assert frame.count() == len(wanted)
    assert {tuple(row) for row in frame.distinct().collect()} == {(0, topic, row["timestampType"]) for row in wanted}


def test_topics_are_found_by_pattern_and_partitions_assigned(spark: SparkSession, archive: str) -> None:
    def topics(**options: str) -> set[str]:
        frame = spark.read.format("tiering").options(archive=archive, **options).schema("topic string").load()
        return {row["topic"] for row in frame.distinct().collect()}

    assert topics(subscribePattern="codec-(lz4|gzip)") == {"g-codec-lz4", "g-codec-gzip"}
    assert topics(subscribePattern="^g-t", failOnDataLoss="true") == {"g-tiny", "g-trimmed", "g-txn"}
    assert topics(assign='{"g-tiny": [0]}') == {"g-tiny"}
    with pytest.raises(PySparkException, match=r"g-tiny-1 is assigned and not in the archive .*of g-tiny there are: 0"):
        topics(assign='{"g-tiny": [0, 1]}')
    with pytest.raises(PySparkException, match="matches subscribePattern 'nothing'; there are: g-appendtime"):
        topics(subscribePattern="nothing")
