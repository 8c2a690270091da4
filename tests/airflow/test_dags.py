"""Each DAG: what Airflow meets when it loads it, how it runs, and what becomes of it when its tasks are killed."""

import time
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from shutil import rmtree

import psutil
import pyarrow.dataset
import pytest
from airflow_home import Airflow, Run, offload_below
from archive_fakes import CountingIds, SleptClock
from click.testing import CliRunner
from golden_logs import broker_logs
from logs_to_archive import due
from made_archive import TOPIC_ID, made
from offloaded_once import assert_one_sound_chain

from remote import archive
from remote.manifest.model import never_archived
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import first_seen
from remote.store.open import open_store
from tiering.cli import main

Runs = Callable[..., Run]
Connection = Callable[..., dict[str, str]]
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
SECONDS_MAX = 60
HEAVY = ("boto3", "botocore", "fsspec", "numba", "numpy", "pyarrow", "pyspark")
OURS = (
    "remote.archive",
    "remote.store",
    "spark_jobs",
    "local_log.log_reader",
    "tiering.wiring",
    "tiering.cli",
    "tiering.config.config",
    "tiering.config.settings",
)


def tiering(*args: object) -> None:
    done = CliRunner().invoke(main, [str(arg) for arg in args], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr


def offload(logs: Path, url: str) -> None:
    tiering("offload", "--log-dir", logs, "--archive", url)


def entries(url: str, topic: str = "g-txn") -> list[tuple[int, int]]:
    (manifest,) = archive.newest_manifests(open_store(url), topic)
    return [(entry.base_offset, entry.end_offset) for entry in manifest.entries]


def test_every_dag_loads_and_so_does_a_file_of_the_users_that_makes_more_of_them(airflow: Airflow) -> None:
    assert airflow.loaded["errors"] == {}
    own = {"tiering_offload_broker-1", "tiering_offload_broker-2", "daily", "small", "restore_by_hand", "many_logs", "many"}
    ours = {"tiering_offload", "tiering_retention", "tiering_sweep", "tiering_scrub", "tiering_backfill"}
    ours |= {"tiering_offload_spark", "tiering_retention_spark"}
    assert set(airflow.loaded["queues"]) == own | ours


def test_the_tasks_of_a_host_are_in_its_queue(airflow: Airflow) -> None:
    queues = airflow.loaded["queues"]
    assert [queues[f"tiering_offload_{host}"] for host in ("broker-1", "broker-2")] == [["broker-1"], ["broker-2"]]
    assert queues["tiering_offload"] == ["default"]


def test_loading_asks_nobody_for_anything_and_loads_nothing_that_takes_its_time(airflow: Airflow) -> None:
    assert airflow.loaded["reached"] == []
    loaded = airflow.loaded["modules"]
    assert "tiering.airflow.operators" in loaded
    assert [m for m in loaded if m.partition(".")[0] in HEAVY or m.startswith(OURS)] == []


def test_airflow_finds_the_provider_and_its_connection_type(airflow: Airflow) -> None:
    if not any(point.dist and point.dist.name == "kafka-tiering" for point in entry_points(group="apache_airflow_provider")):
        pytest.skip("our distribution is not installed here, so nobody can find its entry point; make setup does it")
    provider = airflow.loaded["provider"]
    assert provider["hook"] == "tiering.airflow.hooks.TieringHook"
    assert provider["fields"] == [f"extra__tiering__{name}" for name in ("archive", "config", "keys", "log_dir")]
    assert provider["schemes"] == ["tiering"]


def test_an_archive_is_filled_retained_swept_and_scrubbed(dag_run: Runs, s3_bucket: str, broker: Path) -> None:
    url = f"s3://{s3_bucket}/archive"
    run = dag_run("tiering_offload", url, logs=broker, must_exist=False)
    assert run.tasks == {"plan": "success", "offload[0]": "success", "tell": "success"}, run.log
    assert entries(url) == due(broker, "g-txn-0")
    assert run.returned["offload[0]"]["rows"] == {"copied": 3, "keep": 1}
    (event,) = run.events
    assert event["uri"].endswith("/archive/g-txn")
    assert event["extra"]["offsets"] == {"0": due(broker, "g-txn-0")[-1][1]}

    kept = ["retention.ms=1", "retention.bytes=-1"]
    retained = dag_run("tiering_retention", url, settings=kept, archive_alone=True, dry_run=True)
    assert retained.returned["retain"]["rows"] == {"expire": 1}, retained.log
    assert entries(url) == due(broker, "g-txn-0")

    swept = dag_run("tiering_sweep", url)
    assert swept.returned["sweep"] == {"rows": {}, "bytes": 0}, swept.log

    scrubbed = dag_run("tiering_scrub", url, deep=True)
    assert scrubbed.returned["scrub"] == {"rows": {}, "bytes": 0}, scrubbed.log


def test_a_restore_is_an_operator_too(dag_run: Runs, broker: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "archive")
    offload(broker, url)
    restored = dag_run("restore_by_hand", url, to=str(tmp_path / "restored"))
    assert restored.returned["restore"]["rows"]["complete"] == 1, restored.log
    first = (broker / "g-txn-0" / f"{0:020d}.log").read_bytes()
    assert (tmp_path / "restored" / "g-txn-0" / f"{0:020d}.log").read_bytes() == first


def test_where_the_archive_has_to_exist_no_other_one_is_made_and_nobody_tries_again(
    dag_run: Runs, broker: Path, tmp_path: Path
) -> None:
    missing = dag_run("tiering_offload", str(tmp_path / "not-mounted"), logs=broker, retries=3)
    assert (missing.state, missing.tries["plan"]) == ("failed", 1), missing.log
    assert "no archive there" in missing.log
    assert not (tmp_path / "not-mounted").exists()


def test_a_dry_run_and_a_run_with_nothing_to_do_copy_nothing(dag_run: Runs, broker: Path, tmp_path: Path) -> None:
    url = str(tmp_path / "archive")
    dry = dag_run("tiering_offload", url, logs=broker, must_exist=False, dry_run=True)
    assert (dry.state, dry.returned["plan"]) == ("success", []), dry.log
    assert "g-txn-0: copy 102" in dry.log
    assert not archive.is_archive(open_store(url))
    offload(broker, url)
    again = dag_run("tiering_offload", url, logs=broker)
    assert again.tasks == {"plan": "success", "offload": "skipped", "tell": "success"}, again.log
    assert again.events == []


def test_a_topic_that_was_never_copied_is_told_as_lost_when_it_disappears(dag_run: Runs, tmp_path: Path) -> None:
    logs, url, state = broker_logs(tmp_path / "logs", "g-txn-0", "g-tiny-0"), str(tmp_path / "archive"), str(tmp_path / "state")
    first = dag_run("tiering_offload", url, logs=logs, must_exist=False, TIERING_AGENT_STATE_DIR=state)
    assert first.tasks == {"plan": "success", "offload[0]": "success", "tell": "success"}, first.log
    rmtree(logs / "g-tiny-0")
    told = dag_run("tiering_offload", url, logs=logs, retries=1, TIERING_AGENT_STATE_DIR=state)
    assert (told.state, told.tries["plan"]) == ("success", 2), told.log
    assert "g-tiny-0: offsets [0, " in told.log
    (manifest,) = archive.newest_manifests(open_store(url), "g-tiny")
    assert [loss.start for loss in manifest.losses] == [0]


def test_retention_by_airflow_gives_up_what_is_too_old(dag_run: Runs, tmp_path: Path) -> None:
    url = str(tmp_path / "archive")
    made(open_store(url), [[[1]], [[2]]])
    done = dag_run("tiering_retention", url, settings=["retention.ms=1000"], archive_alone=True)
    assert done.state == "success", done.log
    assert entries(url, "made") == []


def test_a_scrub_that_finds_an_anomaly_fails_and_is_not_tried_again(dag_run: Runs, tmp_path: Path) -> None:
    url = str(tmp_path / "archive")
    made(open_store(url), [[[1]], [[2]]])
    next(Path(url).rglob("*.log")).unlink()
    scrubbed = dag_run("tiering_scrub", url, retries=3)
    assert (scrubbed.state, scrubbed.tries["scrub"]) == ("failed", 1)
    assert "exit code 6" in scrubbed.log


def rows(out: Path) -> list[int]:
    return sorted(pyarrow.dataset.dataset(out, partitioning="hive").to_table(["offset"])["offset"].to_pylist())


def test_spark_offloads_a_log_directory(dag_run: Runs, s3_bucket: str, broker: Path) -> None:
    url = f"s3://{s3_bucket}/archive"
    done = dag_run("many_logs", url, logs=broker, must_exist=False)
    assert done.returned["offload"]["rows"] == {"copied": 1, "keep": 1}, done.log
    assert done.returned["offload"]["bytes"] > 1_000_000
    assert entries(url) == due(broker, "g-txn-0")


def test_spark_expires_what_there_is_and_no_archive_is_a_failure_for_good(dag_run: Runs, tmp_path: Path) -> None:
    """It ends before it starts Java: that its tasks expire is for the tests of the job."""
    settings = ["retention.ms=1", "*:retention.bytes=-1"]
    missing = dag_run("many", str(tmp_path / "archive"), settings=settings, archive_alone=True, topics=["made"], retries=3)
    assert (missing.state, missing.tries["expire"]) == ("failed", 1), missing.log
    assert "no archive there" in missing.log


def test_spark_tells_of_a_log_directory_that_the_worker_does_not_see(dag_run: Runs, tmp_path: Path) -> None:
    missing = dag_run("many_logs", str(tmp_path / "archive"), logs=tmp_path / "not-mounted", retries=3)
    assert (missing.state, missing.tries["offload"]) == ("failed", 1), missing.log
    assert "there is no folder" in missing.log


def retain_below(url: str, offset: int) -> None:
    tiering("expire", "--archive", url, "--topic", "made", "--partition", "0", "--log-start-offset", offset, "--yes")


def made_over_days(url: str) -> None:
    """Record 0 on the first day, 1 and 2 on the second, 3 on the third."""
    times = [HOUR_MS, DAY_MS + HOUR_MS, DAY_MS + 2 * HOUR_MS, 2 * DAY_MS + HOUR_MS]
    made(open_store(url), [[times[:2]], [times[2:]]])


def test_a_backfill_by_spark_submit_writes_its_data_interval(dag_run: Runs, s3_bucket: str, tmp_path: Path) -> None:
    url = f"s3://{s3_bucket}/archive"
    made_over_days(url)
    run = dag_run("daily", url, at="1970-01-03T00:00:00+00:00", to=str(tmp_path / "out"))
    assert run.state == "success", run.log
    assert run.returned["backfill"]["offsets"] == {"made": {"0": [1, 3]}}
    assert rows(tmp_path / "out") == [1, 2]


def test_a_backfill_need_not_wait_for_a_partition_that_gets_no_records(dag_run: Runs, tmp_path: Path) -> None:
    url, at = str(tmp_path / "archive"), "1970-01-03T00:00:00+00:00"
    made_over_days(url)
    none_yet = never_archived("made", TOPIC_ID, 1, 0)
    writer = ManifestWriter(open_store(url), none_yet.path, SleptClock(), CountingIds("1e"), "tests", 0)
    writer.commit(none_yet, lambda known: first_seen(known, "broker-1", 0, 0))
    run = dag_run("small", url, at=at, to=str(tmp_path / "out"), wait_for=[0], SPARK_HOME=str(tmp_path / "not-there"))
    assert run.tasks == {"wait": "success", "resolve": "success", "backfill": "failed"}, run.log
    assert run.returned["resolve"] == {"made": {"0": [1, 3]}}


def test_a_backfill_that_is_cleared_after_retention_moved_is_of_its_first_offsets(dag_run: Runs, tmp_path: Path) -> None:
    url, out, at = str(tmp_path / "archive"), tmp_path / "out", "1970-01-03T00:00:00+00:00"
    made_over_days(url)
    first = dag_run("small", url, at=at, to=str(out))
    assert first.state == "success", first.log
    retain_below(url, 2)
    again = dag_run("small", url, at=at, to=str(out))
    assert again.state == "success", again.log
    assert again.returned["resolve"] == first.returned["resolve"] == {"made": {"0": [1, 3]}}
    assert again.returned["backfill"]["rows"] == 0
    assert rows(out) == [1, 2]


def test_a_backfill_whose_records_retention_has_deleted_says_why_it_cannot_go_on(dag_run: Runs, tmp_path: Path) -> None:
    url, out, at = str(tmp_path / "archive"), tmp_path / "out", "1970-01-02T00:00:00+00:00"
    made(open_store(url), [[[10, 20]], [[30, 40]], [[DAY_MS]]])
    killed = dag_run("small", url, at=at, to=str(out), SPARK_HOME=str(tmp_path / "not-there"))
    assert killed.tasks == {"wait": "success", "resolve": "success", "backfill": "failed"}, killed.log
    retain_below(url, 2)
    again = dag_run("small", url, at=at, to=str(out))
    assert again.returned["resolve"] == killed.returned["resolve"] == {"made": {"0": [0, 4]}}
    assert again.tasks["backfill"] == "failed"
    assert "offset 0 is outside [2, 5)" in again.log


@pytest.fixture(scope="module")
def spares() -> list[Airflow]:
    return []


@pytest.fixture
def second(spares: list[Airflow], start_airflow: Callable[[], Airflow]) -> Airflow:
    """Another scheduler's worker, which knows nothing of the first; where a test has killed it the next one gets a new one."""
    if not spares or spares[-1].process.poll() is not None:
        spares.append(start_airflow())
    return spares[-1]


def command_of(process: Airflow) -> psutil.Process:
    """The offload that a process of Airflow's runs, when it has begun."""
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        if (command := offload_below(process.process)) is not None:
            return command
        time.sleep(0.02)
    raise AssertionError("no offload began")


def wait_for_an_object(archive: Path) -> None:
    end = time.monotonic() + SECONDS_MAX
    while time.monotonic() < end:
        if any(archive.rglob("manifest/*.json")):
            return
        time.sleep(0.02)
    raise AssertionError("nothing was archived")


def test_two_offloads_at_once_leave_one_chain(
    airflow: Airflow, second: Airflow, connection: Connection, broker: Path, tmp_path: Path
) -> None:
    url = str(tmp_path / "archive")
    for process in (airflow, second):
        process.begin("tiering_offload", {"must_exist": False}, TIERING_LOG_DIRS=str(broker), **connection(url))
    ended = [process.ended() for process in (airflow, second)]
    assert [run.state for run in ended] == ["success", "success"], [run.log for run in ended]
    assert_one_sound_chain(url, broker, "g-txn-0")


def test_a_command_that_is_killed_is_tried_again_and_leaves_one_chain(
    airflow: Airflow, connection: Connection, broker: Path, tmp_path: Path
) -> None:
    url, slow = str(tmp_path / "archive"), {"must_exist": False, "bytes_per_second": 400_000}
    airflow.begin("tiering_offload", slow, retries=1, TIERING_LOG_DIRS=str(broker), **connection(url))
    wait_for_an_object(tmp_path / "archive")
    command_of(airflow).kill()
    run = airflow.ended()
    assert (run.state, run.tries["offload[0]"]) == ("success", 2), run.log
    assert "signal 9" in run.log
    assert len(due(broker, "g-txn-0")) == 3
    assert_one_sound_chain(url, broker, "g-txn-0")


def test_a_task_that_is_killed_and_run_again_beside_what_it_has_started_leaves_one_chain(
    airflow: Airflow, second: Airflow, connection: Connection, broker: Path, tmp_path: Path
) -> None:
    url, slow = str(tmp_path / "archive"), {"must_exist": False, "bytes_per_second": 400_000}
    second.begin("tiering_offload", slow, TIERING_LOG_DIRS=str(broker), **connection(url))
    wait_for_an_object(tmp_path / "archive")
    orphan = command_of(second)
    second.process.kill()
    second.process.wait()
    assert orphan.is_running()
    run = airflow.run("tiering_offload", {}, TIERING_LOG_DIRS=str(broker), **connection(url))
    assert run.state == "success", run.log
    psutil.wait_procs([orphan], SECONDS_MAX)
    assert_one_sound_chain(url, broker, "g-txn-0")
