"""A backfill whose processes are killed, doubled and submitted: the same promises as at each of its steps, with real Spark."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from job_processes import ROOT, SECONDS_MAX, environment
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from spark_jobs.common import commit_log
from spark_jobs.common.target import Target
from spark_jobs.java import java_home
from spark_jobs.jobs import backfill
from spark_jobs.source.options import parse

pytestmark = pytest.mark.spark

Row = dict[str, Any]

DRIVER = """
import os, signal, sys
from remote.clock import RandomIds, SystemClock
from remote.store.open import open_store
from doomed_target import DoomedTarget
from spark_jobs.backfill import run as backfill_run
from spark_jobs.common import commit_log
from spark_jobs.common.layout import By
from spark_jobs.common.target import Target
from spark_jobs.source.options import parse
from spark_jobs.source.ranges import resolve

archive, to, fate = sys.argv[1:]

def die(*args):
    os.kill(os.getpid(), signal.SIGKILL)

if fate == "before the commit":
    commit_log.put = die
if fate == "before publication":
    backfill_run.publish_all = lambda target, store, head: die() if head.version else None
target = (DoomedTarget if fate == "tasks die" else Target)(to)
options = parse({"archive": archive, "subscribe": "g-txn", "includeHeaders": "true", "minPartitions": "6"})
order = backfill_run.spec_of(options, target, By.date, "snappy")
report = backfill_run.run(order, resolve(open_store(archive), options), SystemClock(), RandomIds(), "local[2,3]")
print(report["rows"])
"""


def driver(archive: str, to: Path, fate: str = "none", **env: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", DRIVER, archive, str(to), fate]
    return subprocess.Popen(command, env=environment(**env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def offsets(folder: Path) -> list[int]:
    """What a reader finds, with what it finds twice."""
    return sorted(o for f in folder.rglob("*.parquet") for o in pq.ParquetFile(f).read(["offset"]).column("offset").to_pylist())


@pytest.fixture
def wanted(expected: Callable[..., list[Row]]) -> list[int]:
    return [row["offset"] for row in expected("g-txn")]


def test_tasks_whose_processes_die_in_the_middle_of_writing_are_run_again(
    archive: str, tmp_path: Path, wanted: list[int]
) -> None:
    (tmp_path / "marks").mkdir()
    run = driver(archive, tmp_path / "out", "tasks die", DOOM_MARKS=str(tmp_path / "marks"))
    out, err = run.communicate(timeout=SECONDS_MAX)
    assert run.returncode == 0, err
    assert len(list((tmp_path / "marks").iterdir())) >= 6
    assert int(out) == len(wanted)
    assert offsets(tmp_path / "out") == wanted
    assert [f for f in (tmp_path / "out" / "_tiering" / "staging").rglob("*") if f.is_file()] == []


@pytest.mark.parametrize("fate", ["before the commit", "before publication"])
def test_a_driver_that_is_killed_shows_nothing_and_the_next_run_completes_its_work(
    spark: SparkSession, archive: str, tmp_path: Path, wanted: list[int], fate: str
) -> None:
    killed = driver(archive, tmp_path / "out", fate)
    _, err = killed.communicate(timeout=SECONDS_MAX)
    assert killed.returncode == -9, err
    assert offsets(tmp_path / "out") == []
    committed = commit_log.newest(Target(str(tmp_path / "out")).store)
    assert (committed is not None) == (fate == "before publication")
    options = parse({"archive": archive, "subscribe": "g-txn", "includeHeaders": "true", "minPartitions": "6"})
    again = backfill.run(options, Target(str(tmp_path / "out")), "snappy")
    assert again["rows"] == (0 if committed else len(wanted))
    assert offsets(tmp_path / "out") == wanted


def test_two_runs_at_once_leave_each_offset_once(archive: str, tmp_path: Path, wanted: list[int]) -> None:
    runs = [driver(archive, tmp_path / "out") for _ in range(2)]
    ended = [(run.communicate(timeout=SECONDS_MAX), run.returncode) for run in runs]
    assert [code for _, code in ended] == [0, 0], ended
    assert sum(int(out) for (out, _), _ in ended) == len(wanted)
    assert offsets(tmp_path / "out") == wanted


@pytest.mark.parametrize("job", ["backfill", "search"])
def test_a_job_can_be_submitted(archive: str, tmp_path: Path, wanted: list[int], job: str) -> None:
    submit = [str(Path(_find_spark_home()) / "bin" / "spark-submit"), "--master", "local[2]"]
    submit += ["--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.bindAddress=127.0.0.1"]
    submit += ["--conf", "spark.ui.enabled=false", str(ROOT / "spark_jobs" / "jobs" / f"{job}.py"), "--archive", archive]
    submit += ["--topic", "g-txn"]
    submit += {"backfill": ["--to", str(tmp_path / "out")], "search": ["--value", "", "--limit", "3", "--output", "json"]}[job]
    env = environment(JAVA_HOME=java_home(), PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable)
    ran = subprocess.run(submit, env=env, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert ran.returncode == 0, ran.stderr
    if job == "backfill":
        assert json.loads(ran.stdout)["rows"] == len(wanted)
        assert offsets(tmp_path / "out") == wanted
    else:
        assert len(json.loads(ran.stdout)) == 3
