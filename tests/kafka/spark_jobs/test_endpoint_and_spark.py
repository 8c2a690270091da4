"""Spark's own Kafka source at an endpoint of both tiers: it reads what our source reads of the archive."""

import json
from collections import Counter
from collections.abc import Iterator

import pytest
from asked_endpoint import Endpoint
from golden_logs import live, partitions
from pyspark.sql import DataFrame, SparkSession
from served_endpoint import served
from tiered_worlds import World

pytestmark = [pytest.mark.oracle, pytest.mark.slow, pytest.mark.spark]

TOPICS = [name.removesuffix("-0") for name in partitions() if name != "g-empty-0"]
TIME = next(time for time, start, *_ in live("g-txn-0")["offset_for_timestamp"] if start > 0)


@pytest.fixture(scope="module")
def address(world: World) -> Iterator[str]:
    endpoint = Endpoint(world.folders["some archived dropped"], world.store)
    with served(endpoint) as (host, port):
        yield f"{host}:{port}"
    assert endpoint.said == []


def rows_of(frame: DataFrame) -> Counter[str]:
    """The rows of a frame as JSON, and how often there is each."""
    return Counter(frame.selectExpr("to_json(struct(*)) AS row").toArrow().column("row").to_pylist())


def starting(place: str, of: dict[str, int]) -> dict[str, str]:
    """Options for where to begin."""
    if place == "a time":
        return {"startingTimestamp": str(TIME), "startingOffsetsByTimestampStrategy": "latest"}
    if place == "offsets":
        return {"startingOffsets": json.dumps({topic: {"0": offset} for topic, offset in of.items()})}
    return {"startingOffsets": "earliest"}


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("place", ["the start", "offsets", "a time"])
def test_sparks_kafka_source_reads_across_the_tiers_what_our_source_reads_of_the_archive(
    spark_and_kafka: SparkSession, archive: str, address: str, world: World, isolation: str, place: str
) -> None:
    asked = {"subscribe": ",".join(TOPICS), "includeHeaders": "true", "kafka.isolation.level": isolation}

    def read(source: str, **more: str) -> DataFrame:
        return spark_and_kafka.read.format(source).options(**asked, **more).load()

    found = read("tiering", archive=archive).groupBy("topic").agg({"offset": "max"}).collect()
    ends = {row["topic"]: row["max(offset)"] + 1 for row in found}
    borders = {topic: world.log("some archived dropped", f"{topic}-0").local.log_start_offset for topic in TOPICS}
    assert borders["g-txn"] < ends["g-txn"]
    earliest = {topic: live(f"{topic}-0")["earliest"][0] for topic in TOPICS}
    begin = starting(place, {topic: max(earliest[topic], border - 100) for topic, border in borders.items()})
    bound = {"endingOffsets": json.dumps({topic: {"0": end} for topic, end in ends.items()})}
    ours = rows_of(read("tiering", archive=archive, **begin, **bound))
    assert ours.total() > 2_000
    assert ours == rows_of(read("kafka", **{"kafka.bootstrap.servers": address}, **begin, **bound))
