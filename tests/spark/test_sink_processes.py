"""Writes whose processes are killed, doubled and run again, with real Spark: each row once, nothing half visible."""

import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from doomed_source import ROWS, TASKS, write
from job_processes import environment
from pyspark.sql import SparkSession
from spark_cluster import TWO_HOSTS, Cluster, cluster

from remote import archive as archives
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from remote.store.open import open_store

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]  # some JVMs a test, on a busy machine, too

SECONDS_MAX = 400

DRIVER = """
import json, os, sys
from doomed_source import DoomedSource, write
from spark_jobs.session import session

archive, write_id, fate, marks, master = sys.argv[1:]
conf = {"spark.sql.execution.arrow.maxRecordsPerBatch": "1000"}
if not master.startswith("local"):
    path = os.environ["PYTHONPATH"]
    conf |= {"spark.executorEnv.PYTHONPATH": path, "spark.executor.memory": "512m", "spark.speculation": "true",
             "spark.speculation.quantile": "0.5", "spark.speculation.multiplier": "1.1", "spark.speculation.interval": "100ms",
             "spark.speculation.minTaskRuntime": "100ms"}
spark = session("doomed", master=master, conf=conf)
spark.dataSource.register(DoomedSource)
write(spark, archive, write_id, doom=json.dumps({"fate": fate, "marks": marks, "group": os.getpgid(0)}))
"""


class Job:
    """`write` in a driver of its own, whose processes meet a fate, in a process group of its own."""

    def __init__(self, folder: Path, write_id: str, fate: str = "none", master: str = "local[2,3]") -> None:
        self.archive, self.marks = str(folder / "archive"), folder / "marks"
        self.marks.mkdir(exist_ok=True)
        words = [self.archive, write_id, fate, str(self.marks), master]
        self.process = subprocess.Popen(
            [sys.executable, "-c", DRIVER, *words], env=environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def ends_with(self, exit_code: int) -> None:
        _, said = self.process.communicate(timeout=SECONDS_MAX)
        assert self.process.returncode == exit_code, said

    @property
    def attempts(self) -> set[str]:
        """The attempts of tasks that came as far as the middle of their rows."""
        return {mark.name for mark in self.marks.iterdir()}


def times_each(count: int) -> Counter[int]:
    return Counter(dict.fromkeys(range(ROWS), count) if count else {})


def found(store: ObjectStore) -> Counter[int]:
    """The rows that a reader finds, and how often; no offset is missing or there twice."""
    rows: Counter[int] = Counter()
    for manifest in archives.newest_manifests(store, "rows"):
        log = ArchivedLog(store, manifest)
        read = pa.Table.from_batches([*log.records(0, log.end_offset)])
        assert read.column("offset").to_pylist() == [*range(log.end_offset)]
        numbers = [int(key) for key in read.column("key").to_pylist()]
        assert {number % 2 for number in numbers} == {manifest.partition}
        rows.update(numbers)
    return rows


def objects(store: ObjectStore) -> set[str]:
    """The keys of all segments' objects."""
    return {meta.key for path in archives.partition_paths(store, "rows") for meta in store.list(path.segments)}


def named(store: ObjectStore) -> set[str]:
    """The keys of those that manifests name."""
    manifests = archives.newest_manifests(store, "rows")
    return {m.path.segment(name) for m in manifests for e in m.entries for name in (e.log_name, e.aux_name)}


@pytest.fixture
def sweep_takes_the_rest(tiering: Callable[..., str]) -> Callable[[str], None]:
    """Sweeps: what no manifest names goes, of which there is some, and nothing else."""

    def swept(archive: str) -> None:
        store = open_store(archive)
        rows = found(store)
        assert objects(store) > named(store)
        tiering("sweep", "--archive", archive, "--grace-ms", 0, "--yes")
        assert objects(store) == named(store)
        assert found(store) == rows

    return swept


@pytest.fixture(scope="module")
def two_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("cluster"), TWO_HOSTS) as running:
        yield running


def test_tasks_whose_processes_are_killed_in_mid_write_are_run_again(
    tmp_path: Path, sweep_takes_the_rest: Callable[[str], None]
) -> None:
    job = Job(tmp_path, "one", "tasks die")
    job.ends_with(0)
    assert job.attempts == {f"task-{task}-{attempt}" for task in range(TASKS) for attempt in (0, 1)}
    assert found(open_store(job.archive)) == times_each(1)
    sweep_takes_the_rest(job.archive)


@pytest.mark.parametrize("fate", ["a straggler", "twins"])
def test_of_speculative_twins_one_is_committed(
    two_hosts: Cluster, tmp_path: Path, sweep_takes_the_rest: Callable[[str], None], fate: str
) -> None:
    job = Job(tmp_path, "one", fate, two_hosts.url)
    job.ends_with(0)
    assert {"task-0-0", "task-0-1"} <= job.attempts
    assert found(open_store(job.archive)) == times_each(1)
    sweep_takes_the_rest(job.archive)


@pytest.mark.parametrize("fate", ["before the commit", "before the decision", "after the decision"])
def test_a_killed_driver_shows_all_or_nothing_and_the_next_run_completes_its_write(
    spark: SparkSession, tmp_path: Path, sweep_takes_the_rest: Callable[[str], None], fate: str
) -> None:
    job = Job(tmp_path, "one", fate)
    job.ends_with(-signal.SIGKILL)
    store = open_store(job.archive)
    assert objects(store)
    assert found(store) == times_each(fate == "after the decision")
    write(spark, job.archive, "one")
    assert found(store) == times_each(1)
    sweep_takes_the_rest(job.archive)


def test_jobs_run_at_once_and_again_add_their_rows_once_for_each_id(
    spark: SparkSession, tmp_path: Path, sweep_takes_the_rest: Callable[[str], None]
) -> None:
    jobs = [Job(tmp_path, "one") for _ in range(2)]
    write(spark, jobs[0].archive, "two")
    for job in jobs:
        job.ends_with(0)
    store = open_store(jobs[0].archive)
    assert found(store) == times_each(2)
    for write_id in ("one", "two"):
        write(spark, jobs[0].archive, write_id)
    assert found(store) == times_each(2)
    sweep_takes_the_rest(jobs[0].archive)
