"""What jobs and queries of version 0.1.0 have left half done is taken up today: backfills, streams, writes under an id."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from earlier_state import touched, unpacked
from pyspark.sql import DataFrame, SparkSession

from remote import archive as archives
from remote.clock import RandomIds, SystemClock
from remote.direct_write import commit as write_commit
from remote.store.open import open_store
from spark_jobs.backfill import run as backfill_run
from spark_jobs.common.attempts import attempt
from spark_jobs.common.layout import By
from spark_jobs.common.outcome import collect_outcomes
from spark_jobs.common.target import Target
from spark_jobs.sink.write_topic import write_topic
from spark_jobs.source.options import parse
from spark_jobs.source.ranges import resolve

Place = tuple[str, int, int]
TOPICS = "payments,events"
ARCHIVED = {("payments", 0): 75, ("events", 0): 25, ("events", 1): 25}
PLACES = {(topic, partition, offset) for (topic, partition), end in ARCHIVED.items() for offset in range(end)}
"""Topic, partition and offset of all records that they are to have."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    return str(unpacked("archive", tmp_path / "archive"))


# A backfill


@pytest.fixture
def backfilled(monkeypatch: pytest.MonkeyPatch, url: str) -> Callable[[Path], dict[str, Any]]:
    """`backfilled(target)`: the report of a run with the options of then, whose tasks run here, one after the other."""

    def run_tasks(job: str, items: Sequence[Any], act: Any, size_of: Any, **_: Any) -> Any:
        return collect_outcomes([attempt(act, item) for item in items])

    def run(target: Path) -> dict[str, Any]:
        options = parse({"archive": url, "subscribe": TOPICS, "includeHeaders": "true"})
        order = backfill_run.spec_of(options, Target(str(target)), By.date, "snappy")
        return backfill_run.run(order, resolve(open_store(url), options), SystemClock(), RandomIds())

    monkeypatch.setattr(backfill_run, "run_tasks", run_tasks)
    return run


def rows_of(target: Path) -> Counter[Place]:
    """The rows that a reader of the target finds, and how often."""
    found: Counter[Place] = Counter()
    for file in target.glob("topic=*/**/*.parquet"):
        topic = file.relative_to(target).parts[0].removeprefix("topic=")
        read = pq.ParquetFile(file).read(["partition", "offset"]).to_pylist()
        found.update((topic, row["partition"], row["offset"]) for row in read)
    return found


def test_a_backfill_that_died_after_its_commit_is_published(backfilled: Any, tmp_path: Path) -> None:
    target = touched(unpacked("committed_target", tmp_path / "target"))
    assert not rows_of(target)
    report = backfilled(target)
    assert (report["version"], report["splits"], report["rows"]) == (1, 0, 0)
    assert rows_of(target) == Counter(PLACES)


def test_a_backfill_that_died_before_its_commit_reads_nothing_again(backfilled: Any, tmp_path: Path) -> None:
    target = touched(unpacked("staged_target", tmp_path / "target"))
    report = backfilled(target)
    assert (report["version"], report["splits"], report["splits_found_staged"]) == (1, 11, 11)
    assert report["rows"] == len(PLACES)
    assert rows_of(target) == Counter(PLACES)


# With Spark


@pytest.mark.spark
def test_a_query_goes_on_from_its_checkpoint_and_does_the_planned_micro_batch_again(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    """Of its micro-batches of 30 offsets two were committed; the third was planned when its sink failed."""
    batches: dict[int, list[Place]] = {}

    def take(frame: DataFrame, number: int) -> None:
        batches[number] = sorted((row["topic"], row["partition"], row["offset"]) for row in frame.collect())

    options = {"archive": url, "subscribe": TOPICS, "startingOffsets": "earliest"}
    writer = spark.readStream.format("tiering").options(**options).load().writeStream.foreachBatch(take)
    checkpoint = unpacked("checkpoint", tmp_path / "checkpoint")
    writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start().awaitTermination()
    third = [("events", p, offset) for p in (0, 1) for offset in range(12, 18)] + [("payments", 0, o) for o in range(36, 54)]
    assert min(batches) == 2
    assert batches[2] == third
    read = Counter(place for batch in batches.values() for place in batch)
    assert read == Counter(p for p in PLACES if p[2] >= (36 if p[0] == "payments" else 12))


@pytest.mark.spark
def test_a_write_that_was_committed_then_is_not_written_again_and_one_that_was_not_is(
    spark: SparkSession, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the id 19-job, a write died before it was decided."""
    monkeypatch.setattr(write_commit, "WAIT_SECONDS_MAX", 1.0)  # for that decision
    frame = spark.range(0, 4, numPartitions=1).selectExpr("cast(id AS string) AS value", "cast(id % 2 AS int) AS partition")

    def ends() -> list[int]:
        return [manifest.end_offset for manifest in archives.newest_manifests(open_store(url), "events")]

    assert ends() == [25, 25]
    write_topic(frame, url, {"topic": "events", "writeId": "19-job"})
    assert ends() == [27, 27]
    frame.write.format("tiering").options(archive=url, topic="events", writeId="17-job").mode("append").save()
    assert ends() == [27, 27]
