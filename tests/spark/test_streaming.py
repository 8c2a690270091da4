"""Streaming queries over an archive that grows: whatever ends a query, each offset arrives once."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_logs import live
from growing import GrowingArchive
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

pytestmark = pytest.mark.spark

TOPIC = "g-codec-none"
Row = dict[str, Any]
Expected = Callable[..., list[Row]]


@pytest.fixture
def growing(tmp_path: Path) -> GrowingArchive:
    """Twelve segments of 2500 records, of which four are archived."""
    made = GrowingArchive(tmp_path, TOPIC)
    made.grow(4)
    return made


@pytest.fixture
def stream(spark: SparkSession, growing: GrowingArchive) -> Callable[..., DataFrame]:
    """`stream(option=value, …)`: the archive as a stream from its first offset on."""

    def loaded(schema: str | None = None, **options: str) -> DataFrame:
        known = {"archive": growing.url, "subscribe": TOPIC, "startingOffsets": "earliest"}
        reader = spark.readStream.format("tiering").options(**{**known, **options})
        return (reader.schema(schema) if schema else reader).load()

    return loaded


@pytest.fixture
def to_parquet(tmp_path: Path) -> Callable[..., DataStreamWriter]:
    """A writer of a stream to the same files and checkpoint whenever it is asked for."""

    def writer(frame: DataFrame) -> DataStreamWriter:
        return frame.writeStream.format("parquet").option("path", f"{tmp_path}/out").option("checkpointLocation", f"{tmp_path}/c")

    return writer


def finished(writer: DataStreamWriter) -> StreamingQuery:
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return query


def written(spark: SparkSession, folder: Path) -> list[int]:
    return sorted(row["offset"] for row in spark.read.parquet(f"{folder}/out").select("offset").collect())


def test_rows_are_those_of_a_batch(
    spark: SparkSession, stream: Callable[..., DataFrame], expected: Expected, tmp_path: Path
) -> None:
    frame = stream(includeHeaders="true")
    writer = frame.writeStream.format("memory").queryName("rows").option("checkpointLocation", f"{tmp_path}/c")
    finished(writer)
    found = sorted(spark.table("rows").toArrow().to_pylist(), key=lambda row: row["offset"])
    assert found == expected(TOPIC, 0, 896)
    assert len(found) == 896


def test_every_run_goes_on_where_the_last_one_ended(
    spark: SparkSession, stream: Callable[..., DataFrame], to_parquet: Callable[..., DataStreamWriter],
    growing: GrowingArchive, tmp_path: Path,
) -> None:  # fmt: skip
    for segments in (4, 4, 7):
        growing.grow(segments)
        finished(to_parquet(stream(startingOffsets="earliest")))
        assert written(spark, tmp_path) == list(range(growing.bases[segments]))


def test_a_limit_makes_more_micro_batches_and_a_schema_leaves_columns_out(
    spark: SparkSession, stream: Callable[..., DataFrame], to_parquet: Callable[..., DataStreamWriter], tmp_path: Path
) -> None:
    query = finished(to_parquet(stream(schema="offset bigint", maxOffsetsPerTrigger="300")))
    progress = [(p.numInputRows, p.sources[0]) for p in query.recentProgress if p.numInputRows]
    assert [count for count, _ in progress] == [300, 300, 296]
    assert json.loads(progress[0][1].endOffset)[TOPIC] == {"0": 300}
    assert json.loads(progress[0][1].latestOffset)[TOPIC] == {"0": 896}
    assert written(spark, tmp_path) == list(range(896))


def test_a_running_query_takes_up_what_is_committed_meanwhile(
    spark: SparkSession, stream: Callable[..., DataFrame], to_parquet: Callable[..., DataStreamWriter],
    growing: GrowingArchive, tmp_path: Path,
) -> None:  # fmt: skip
    query = to_parquet(stream(startingOffsets="latest")).trigger(processingTime="100 milliseconds").start()
    try:
        query.processAllAvailable()
        growing.grow(6)
        growing.grow(2, partition=1)
        query.processAllAvailable()
        end = growing.bases[6]
        assert written(spark, tmp_path) == sorted([*range(896, end), *range(446)])
    finally:
        query.stop()


def test_a_micro_batch_that_fails_is_read_again_the_same(
    spark: SparkSession, stream: Callable[..., DataFrame], growing: GrowingArchive, tmp_path: Path
) -> None:
    batches: dict[int, list[list[int]]] = {}
    failures = {1}

    def take(frame: DataFrame, number: int) -> None:
        batches.setdefault(number, []).append(sorted(row["offset"] for row in frame.select("offset").collect()))
        if number in failures:
            raise RuntimeError("the sink is gone")

    def writer() -> DataStreamWriter:
        frame = stream(maxOffsetsPerTrigger="400")
        return frame.writeStream.foreachBatch(take).option("checkpointLocation", f"{tmp_path}/c")

    with pytest.raises(StreamingQueryException, match="the sink is gone"):
        finished(writer())
    growing.grow(7)
    failures.clear()
    finished(writer())
    assert batches[1] == [list(range(400, 800))] * 2
    last = [runs[-1] for _, runs in sorted(batches.items())]
    assert [offset for run in last for offset in run] == list(range(growing.bases[7]))


def test_a_first_micro_batch_that_failed_begins_where_it_began(
    spark: SparkSession, stream: Callable[..., DataFrame], growing: GrowingArchive, tmp_path: Path
) -> None:
    batches: list[int] = []

    def take(frame: DataFrame, number: int) -> None:
        batches.append(number)
        if len(batches) == 1:
            raise RuntimeError("the sink is gone")

    def writer(**options: str) -> DataStreamWriter:
        return stream(**options).writeStream.foreachBatch(take).option("checkpointLocation", f"{tmp_path}/c")

    with pytest.raises(StreamingQueryException, match="the sink is gone"):
        finished(writer())
    growing.retain(growing.bases[2])
    with pytest.raises(StreamingQueryException, match=rf"has not read offsets \[0, {growing.bases[2]}\)"):
        finished(writer())
    finished(writer(failOnDataLoss="false"))
    assert batches == [0, 0]


def test_a_loss_ends_the_query_with_its_place_and_the_same_checkpoint_goes_on_when_it_is_allowed(
    spark: SparkSession, stream: Callable[..., DataFrame], to_parquet: Callable[..., DataStreamWriter],
    growing: GrowingArchive, tmp_path: Path,
) -> None:  # fmt: skip
    finished(to_parquet(stream(startingOffsets='{"g-codec-none":{"0":0}}')))
    growing.grow(9)
    growing.retain(growing.bases[6])
    with pytest.raises(StreamingQueryException, match=r"g-codec-none-0: this stream has not read offsets \[896, 1393\)"):
        finished(to_parquet(stream()))
    finished(to_parquet(stream(failOnDataLoss="false")))
    assert written(spark, tmp_path) == [*range(896), *range(1393, growing.bases[9])]


def test_transactions_are_seen_as_the_isolation_level_says(
    spark: SparkSession, archive: str, expected: Expected, tmp_path: Path
) -> None:
    options = {"archive": archive, "subscribe": "g-txn", "startingOffsets": "earliest", "kafka.isolation.level": "read_committed"}
    frame = spark.readStream.format("tiering").options(**options, maxOffsetsPerTrigger="700").load()
    finished(frame.writeStream.format("memory").queryName("txn").option("checkpointLocation", f"{tmp_path}/c"))
    committed = [row["offset"] for row in expected("g-txn", only=set(live("g-txn-0")["read_committed_offsets"]))]
    assert sorted(row["offset"] for row in spark.table("txn").collect()) == committed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"endingOffsets": "latest"}, "option endingOffsets does not apply to streams"),
        ({"subscribe": "g-nowhere"}, "topic g-nowhere is not in the archive"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_name_of_the_option(
    stream: Callable[..., DataFrame], to_parquet: Callable[..., DataStreamWriter], options: dict[str, str], message: str
) -> None:
    with pytest.raises(StreamingQueryException, match=message):
        finished(to_parquet(stream(**options)))
