"""A cluster whose machines have our requirements and not our code: what is shipped with a job is enough.

And Spark there runs a task twice, which it does where there are two machines.
"""

import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from found_rows import a_sweep_takes_the_rest, found, times_each
from golden_logs import live
from job_processes import SECONDS_MAX, environment
from spark_cluster import TWO_HOSTS, Cluster, cluster, wheel

from remote.store.open import open_store

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]  # four JVMs a test, on a busy machine, too

READ = """
import json, sys
from pyspark.sql import SparkSession
from pyspark_tiering import DefaultSource

spark = SparkSession.builder.getOrCreate()
spark.dataSource.register(DefaultSource)
options = {"archive": sys.argv[1], "subscribe": "g-txn,g-codec-lz4", "kafka.isolation.level": "read_committed"}
frame = spark.read.format("tiering").options(**options).load()
counts = {row["topic"]: row["count"] for row in frame.groupBy("topic").count().collect()}


def where(_):
    import os
    import sys
    import time
    import local_log
    from local_log import compiled
    time.sleep(2)  # long enough for both executors to take some
    return os.getcwd().split("/")[-3], local_log.__file__, compiled.LIBRARY is not None and "numba" not in sys.modules


places = spark.sparkContext.parallelize(range(4), 4).map(where).collect()
print(json.dumps({"counts": counts, "places": places}))
"""

BACKFILL = """
import runpy

sys.argv = ["backfill.py", "--archive", sys.argv[1], "--to", sys.argv[2], "--topic", "g-codec-lz4"]
runpy.run_path("backfill.py", run_name="__main__")  # as spark-submit runs it, which would start three more JVMs for it
"""

SPECULATE = """
import os, sys
from doomed_source import Doom, DoomedSource, write
from spark_jobs.session import session

master, archive, marks = sys.argv[1:]
conf = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1000", "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
        "spark.executor.memory": "512m", "spark.speculation": "true", "spark.speculation.quantile": "0.5",
        "spark.speculation.multiplier": "1.1", "spark.speculation.interval": "100ms", "spark.speculation.minTaskRuntime": "100ms"}
spark = session("doomed", master=master, conf=conf)
spark.dataSource.register(DoomedSource)
write(spark, archive, "one", Doom("twins", marks))
"""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheel(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def running(s3_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The S3 server comes first: its address and the credentials reach the executors through the workers' environment."""
    with cluster(tmp_path_factory.mktemp("cluster"), TWO_HOSTS) as running:
        yield running


@pytest.fixture(scope="module")
def url(tiering: Callable[..., str], broker: Path, s3_client: Any) -> str:
    """An archive in a bucket."""
    s3_client.create_bucket(Bucket="of-the-cluster")
    url = "s3://of-the-cluster/archive"
    tiering("offload", "--log-dir", broker, "--archive", url, "--topic", "g-txn", "--topic", "g-codec-*")
    return url


@dataclass(frozen=True)
class Submitted:
    """What a program printed that read the source and then ran the backfill, and where that wrote its files."""

    read: dict[str, Any]
    backfill: dict[str, Any]
    files: Path


@pytest.fixture(scope="module")
def submitted(running: Cluster, shipped: Path, url: str, tmp_path_factory: pytest.TempPathFactory) -> Submitted:
    folder = tmp_path_factory.mktemp("submitted")
    with zipfile.ZipFile(shipped) as z:
        (folder / "backfill.py").write_bytes(z.read("spark_jobs/jobs/backfill.py"))
    program = folder / "read_and_backfill.py"
    program.write_text(READ + BACKFILL)
    done = running.submit(folder, shipped, program, url, folder / "parquet")
    assert done.returncode == 0, done.stdout + done.stderr
    read, _, backfill = done.stdout[done.stdout.index('{"counts"') :].partition("\n")
    return Submitted(json.loads(read), json.loads(backfill), folder / "parquet")


def test_executors_read_the_source_with_nothing_but_what_was_shipped(submitted: Submitted) -> None:
    found = submitted.read
    committed = [offset for offset in live("g-txn-0")["read_committed_offsets"] if offset < 2744]
    assert found["counts"]["g-txn"] == len(committed)
    assert {worker for worker, _, _ in found["places"]} == {"one", "two"}
    assert all(code.endswith("kafka_tiering.zip/local_log/__init__.py") for _, code, _ in found["places"])
    assert all(has_library for _, _, has_library in found["places"]), "numba would compile the kernels on each executor"


def test_the_backfill_runs_by_spark_submit_and_leaves_each_row_once(submitted: Submitted) -> None:
    files = sorted(submitted.files.rglob("*.parquet"))
    offsets = [offset for file in files for offset in pq.ParquetFile(file).read(["offset"]).column(0).to_pylist()]
    assert sorted(offsets) == list(range(submitted.backfill["rows"]))
    assert offsets


def test_of_speculative_twins_one_is_committed(running: Cluster, tmp_path: Path, tiering: Callable[..., str]) -> None:
    archive, marks = str(tmp_path / "archive"), tmp_path / "marks"
    marks.mkdir()
    words = [sys.executable, "-c", SPECULATE, running.url, archive, str(marks)]
    done = subprocess.run(words, env=environment(), capture_output=True, text=True, timeout=SECONDS_MAX)
    assert done.returncode == 0, done.stderr
    assert {"task-0-0", "task-0-1"} <= {mark.name for mark in marks.iterdir()}
    assert found(open_store(archive)) == times_each(1)
    a_sweep_takes_the_rest(tiering, archive)
