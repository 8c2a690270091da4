"""Jobs whose processes are killed and run again, with real Spark: each row once, nothing half visible.

One driver has them all, and is killed when each has come to where it is to end.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from doomed_driver import (
    BACKFILLS_TO_KILL,
    GROWING_TOPIC,
    TOPIC,
    WRITES_TO_KILL,
    backfill_options,
    reprocess_arguments,
)
from doomed_source import OPTIONS, TASKS, numbered
from found_rows import a_sweep_takes_the_rest, found, objects, times_each
from growing import GrowingArchive
from job_processes import SECONDS_MAX, environment
from pyspark.sql import SparkSession

from remote.direct_write import commit as write_commit
from remote.store.open import open_store
from spark_jobs.common import commit_log
from spark_jobs.common.target import Target
from spark_jobs.jobs import backfill, reprocess
from spark_jobs.sink.write_topic import write_topic
from spark_jobs.source.options import parse

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]  # on a busy machine, too

Row = dict[str, Any]
Expected = Callable[..., list[Row]]


@pytest.fixture(scope="module")
def growing(tmp_path_factory: pytest.TempPathFactory) -> GrowingArchive:
    """Twelve segments, of which four are archived."""
    made = GrowingArchive(tmp_path_factory.mktemp("growing"), GROWING_TOPIC)
    made.grow(4)
    return made


@pytest.fixture(scope="module")
def killed(archive: str, growing: GrowingArchive, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a driver that was killed amid its jobs, and Spark's Java with it, and the processes that it commits in."""
    folder = tmp_path_factory.mktemp("killed")
    words = [sys.executable, "-m", "doomed_driver", archive, growing.url, str(folder)]
    env = environment(WAITS_FOR=str(folder / "go on"), DOOM_MARKS=str(folder / "died"))
    (folder / "died").mkdir()
    with open(folder / "out.txt", "w") as out:
        driver = subprocess.Popen(words, env=env, stdout=out, stderr=out, start_new_session=True)
    try:
        deadline = time.monotonic() + SECONDS_MAX
        while len(list(folder.glob("stream/c/commits/[0-9]*"))) < 3:
            assert driver.poll() is None, (folder / "out.txt").read_text()
            assert time.monotonic() < deadline, (folder / "out.txt").read_text()
            time.sleep(0.05)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        for fate in WRITES_TO_KILL:
            with suppress(FileNotFoundError, ProcessLookupError):
                os.kill(int((folder / fate / fate).read_text()), signal.SIGKILL)
    return folder


# writes


def test_a_writes_tasks_whose_processes_are_killed_in_mid_write_are_run_again(killed: Path, tiering: Callable[..., str]) -> None:
    archive = str(killed / "tasks die" / "archive")
    attempts = {mark.name for mark in (killed / "tasks die").glob("task-*")}
    assert attempts == {f"task-{task}-{attempt}" for task in range(TASKS) for attempt in (0, 1)}
    assert found(open_store(archive)) == times_each(1)
    a_sweep_takes_the_rest(tiering, archive)


@pytest.mark.parametrize("fate", WRITES_TO_KILL)
def test_a_killed_driver_shows_all_or_nothing_and_the_next_run_completes_its_write(
    spark: SparkSession, killed: Path, tiering: Callable[..., str], monkeypatch: pytest.MonkeyPatch, fate: str
) -> None:
    monkeypatch.setattr(write_commit, "WAIT_SECONDS_MAX", 1.0)  # for who has begun to commit and is dead
    archive = str(killed / fate / "archive")
    store = open_store(archive)
    assert objects(store)
    assert found(store) == times_each(fate == "after the decision")
    write_topic(numbered(spark), archive, {"writeId": "one", **OPTIONS})
    assert found(store) == times_each(1)
    a_sweep_takes_the_rest(tiering, archive)


# backfills


def offsets(folder: Path) -> list[int]:
    """What a reader finds, with what it finds twice."""
    return sorted(o for f in folder.rglob("*.parquet") for o in pq.ParquetFile(f).read(["offset"]).column("offset").to_pylist())


@pytest.fixture
def wanted(expected: Expected) -> list[int]:
    return [row["offset"] for row in expected("g-txn")]


def test_a_backfills_tasks_whose_processes_die_in_the_middle_of_writing_are_run_again(killed: Path, wanted: list[int]) -> None:
    out = killed / "tasks die" / "out"
    assert len(list((killed / "died").iterdir())) >= 3
    assert json.loads((out / "report.json").read_text())["rows"] == len(wanted)
    assert offsets(out) == wanted
    assert [f for f in (out / "_tiering" / "staging").rglob("*") if f.is_file()] == []


@pytest.mark.parametrize("fate", BACKFILLS_TO_KILL)
def test_a_killed_driver_shows_nothing_of_its_backfill_and_the_next_run_completes_it(
    spark: SparkSession, killed: Path, archive: str, wanted: list[int], fate: str
) -> None:
    out = killed / fate / "out"
    assert offsets(out) == []
    committed = commit_log.newest(Target(str(out)).store)
    assert (committed is not None) == (fate == "before publication")
    again = backfill.run(parse(backfill_options(archive)), Target(str(out)), "snappy")
    assert again["rows"] == (0 if committed else len(wanted))
    assert offsets(out) == wanted


# other jobs


def test_a_driver_that_is_killed_before_its_commit_leaves_nothing_visible_and_the_next_run_does_it_all(
    spark: SparkSession, killed: Path, archive: str, expected: Expected, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAITS_FOR", str(killed / "go on"))
    (killed / "go on").touch()
    to = killed / "reprocess"
    assert [path.name for path in to.iterdir() if not path.name.startswith("_")] == []
    done = CliRunner().invoke(reprocess.main, reprocess_arguments(archive, to), catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    assert not json.loads(done.stdout)["committed_before"]
    rows = ds.dataset(to, partitioning="hive").to_table().drop_columns(["run"]).to_pylist()
    assert sorted(rows, key=lambda r: (r["topic"], r["offset"])) == expected(TOPIC) + expected("g-txn")


def test_a_driver_that_is_killed_in_the_midst_of_a_stream_loses_and_repeats_nothing(
    spark: SparkSession, killed: Path, growing: GrowingArchive
) -> None:
    growing.grow(8)
    options = {"archive": growing.url, "subscribe": GROWING_TOPIC, "startingOffsets": "earliest"}
    writer = spark.readStream.format("tiering").options(**options).load().writeStream.format("parquet")
    writer.option("path", f"{killed}/stream/out").option("checkpointLocation", f"{killed}/stream/c")
    writer.trigger(availableNow=True).start().awaitTermination()
    rows = spark.read.parquet(f"{killed}/stream/out").select("offset").collect()
    assert sorted(row["offset"] for row in rows) == list(range(growing.bases[8]))
