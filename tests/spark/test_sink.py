"""`df.write.format("tiering")`: rows of a DataFrame become a topic of the archive, all of them or none."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from key_files import write_keys
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import CaseInsensitiveDict

from local_log.errors import LogError
from remote import archive as archives
from remote.store.open import open_store
from spark_jobs.errors import OptionError
from spark_jobs.sink.write_topic import write_topic
from spark_jobs.source.data_source import TieringDataSource

pytestmark = pytest.mark.spark

Row = dict[str, Any]
Expected = Callable[..., list[Row]]
COLUMNS = ("key", "value", "headers", "timestamp", "topic", "partition", "offset")


def write(frame: DataFrame, url: Any, mode: str = "append", **options: Any) -> None:
    frame.write.format("tiering").options(archive=str(url), **options).mode(mode).save()


def read(spark: SparkSession, url: Any, topic: str) -> DataFrame:
    return spark.read.format("tiering").options(archive=str(url), subscribe=topic, includeHeaders="true").load()


def rows(frame: DataFrame) -> list[Row]:
    found = frame.select(*COLUMNS).toArrow().to_pylist()
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


@pytest.fixture
def numbered(spark: SparkSession) -> DataFrame:
    """Four tasks' rows, of seven keys and none."""
    return spark.range(0, 4_000, numPartitions=4).selectExpr(
        "if(id % 10 = 0, null, concat('key', id % 7)) AS key", "cast(id AS string) AS value",
        "timestamp_millis(1700000000000 + id) AS timestamp", "id % 2 = 0 AS other",
    )  # fmt: skip


def sound_partitions(spark: SparkSession, url: Any, topic: str, count: int) -> None:
    """Every partition's offsets are those from 0 on, and as many as there should be rows."""
    found = read(spark, url, topic).selectExpr("partition", "offset").toArrow().to_pylist()
    assert len(found) == count
    by_partition: dict[int, list[int]] = {}
    for row in found:
        by_partition.setdefault(row["partition"], []).append(row["offset"])
    assert all(sorted(offsets) == [*range(len(offsets))] for offsets in by_partition.values())


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_the_golden_records_of_each_codec_are_written_and_read_back(
    spark: SparkSession, archive: str, expected: Expected, tmp_path: Path, codec: str
) -> None:
    topic = f"g-codec-{codec}"
    write(read(spark, archive, topic), tmp_path, **{"kafka.compression.type": codec, "kafka.batch.size": "5000"})
    wanted = [{name: row[name] for name in COLUMNS} for row in expected(topic)]
    assert rows(read(spark, tmp_path, topic)) == wanted


def test_rows_of_many_tasks_stand_one_after_the_other(spark: SparkSession, numbered: DataFrame, tmp_path: Path) -> None:
    write(numbered, tmp_path, topic="rows", partitions="3")
    sound_partitions(spark, tmp_path, "rows", 4_000)
    found = rows(read(spark, tmp_path, "rows"))
    assert sorted(int(row["value"]) for row in found) == [*range(4_000)]
    assert len({row["partition"] for row in found}) == 3
    for key in {row["key"] for row in found} - {None}:
        mine = [row for row in found if row["key"] == key]
        assert len({row["partition"] for row in mine}) == 1
        assert [int(row["value"]) for row in mine] == sorted(int(row["value"]) for row in mine)
    write(numbered, tmp_path, topic="rows")
    sound_partitions(spark, tmp_path, "rows", 8_000)


def test_sparks_tasks_move_what_has_to_be_moved(spark: SparkSession, numbered: DataFrame, tmp_path: Path) -> None:
    decision = write_topic(numbered, str(tmp_path), {"topic": "rows", "partitions": "2", "writeId": "first"})
    assert decision is not None
    assert sum(r.end - r.start for r in decision.ranges) == 4_000
    sound_partitions(spark, tmp_path, "rows", 4_000)
    assert write_topic(numbered, str(tmp_path), {"topic": "rows", "writeId": "first"}) == decision
    sound_partitions(spark, tmp_path, "rows", 4_000)


def test_a_job_that_is_run_again_under_its_id_adds_its_rows_once(
    spark: SparkSession, numbered: DataFrame, tmp_path: Path
) -> None:
    for _ in range(2):
        write(numbered, tmp_path, topic="rows", writeId="2024-01-01")
    sound_partitions(spark, tmp_path, "rows", 4_000)


def test_nothing_is_seen_of_a_job_that_fails(spark: SparkSession, numbered: DataFrame, tmp_path: Path) -> None:
    failing = numbered.selectExpr("key", "if(value = '3999', raise_error('the last row'), value) AS value")
    with pytest.raises(PySparkException, match="the last row"):
        write(failing, tmp_path, topic="rows", partitions="3")
    assert archives.newest_manifests(open_store(str(tmp_path)), "rows") == ()
    write(numbered, tmp_path, topic="rows", partitions="2")
    sound_partitions(spark, tmp_path, "rows", 4_000)


def test_a_column_names_topic_and_partition(spark: SparkSession, numbered: DataFrame, tmp_path: Path) -> None:
    frame = numbered.selectExpr(
        "value", "if(value < '2', 'low', 'high') AS topic", "cast(cast(value AS int) % 2 AS int) AS partition"
    )
    write(frame, tmp_path, partitions="2")
    counts = {topic: frame.filter(f"topic = '{topic}'").count() for topic in ("low", "high")}
    for topic, count in counts.items():
        sound_partitions(spark, tmp_path, topic, count)
        assert all(int(row["value"]) % 2 == row["partition"] for row in rows(read(spark, tmp_path, topic)))


def test_what_is_encrypted_is_written_and_moved_with_the_keys(spark: SparkSession, numbered: DataFrame, tmp_path: Path) -> None:
    keys = write_keys(tmp_path / "keys.json", "one", one=bytes(32))
    write(numbered, tmp_path / "archive", topic="rows", keys=str(keys))
    manifest = archives.manifests(open_store(str(tmp_path / "archive")), "rows")[0]
    assert {e.is_encrypted for e in manifest.entries} == {True}
    frame = read(spark, tmp_path / "archive", "rows")
    with pytest.raises(PySparkException, match="give keys that have it"):
        frame.count()
    options = {"archive": str(tmp_path / "archive"), "subscribe": "rows", "keys": str(keys)}
    assert spark.read.format("tiering").options(**options).load().count() == 4_000


def test_an_archive_on_s3_is_written_like_one_in_a_folder(spark: SparkSession, numbered: DataFrame, s3_bucket: str) -> None:
    url = f"s3://{s3_bucket}/written"
    write(numbered, url, topic="rows", partitions="3")
    sound_partitions(spark, url, "rows", 4_000)


REFUSED = [
    (["key"], {"topic": "rows"}, "Required attribute 'value' not found"),
    (["value"], {"topic": "rows", "partition": "3"}, "option partition is unknown .*did you mean partitions"),
    (["value"], {"topic": "rows", "mode": "overwrite"}, "a log can only be appended to"),
    (["value"], {}, "topic option required when no 'topic' attribute is present"),
    (["other AS value"], {"topic": "rows"}, "value attribute unsupported type boolean"),
    (["value"], {"topic": "rows", "kafka.compression.type": "brotli"}, "option kafka.compression.type is 'brotli'"),
    (["value"], {"topic": "rows/2"}, "rows/2"),
    (["value"], {"topic": "rows", "writeId": "_own"}, "option writeId is '_own': ids that begin with an underscore"),
]


@pytest.mark.parametrize(("columns", "options", "message"), REFUSED[:3])
def test_what_cannot_be_written_is_refused_before_a_task_starts(
    numbered: DataFrame, tmp_path: Path, columns: list[str], options: dict[str, str], message: str
) -> None:
    more = {name: text for name, text in options.items() if name != "mode"}
    with pytest.raises(PySparkException, match=message):
        write(numbered.selectExpr(*columns), tmp_path, options.get("mode", "append"), **more)
    assert not [*tmp_path.glob("rows*")]


def test_what_spark_asks_first_refuses_all_that_cannot_be_written(numbered: DataFrame, tmp_path: Path) -> None:
    for columns, options, message in REFUSED:
        more = {name: text for name, text in options.items() if name != "mode"}
        source = TieringDataSource(CaseInsensitiveDict({"archive": str(tmp_path), **more}))
        with pytest.raises((OptionError, LogError), match=message):
            source.writer(numbered.selectExpr(*columns).schema, "mode" in options)
        assert not [*tmp_path.glob("rows*")]


def test_nothing_is_added_to_a_topic_that_a_broker_writes(numbered: DataFrame, archive: str) -> None:
    with pytest.raises(PySparkException, match="topic g-tiny is archived from a broker's logs"):
        write(numbered, archive, topic="g-tiny")
