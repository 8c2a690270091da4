"""Offloads at once, and tasks that are killed: the archive's chain stays one and no record is lost."""

import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest
from airflow_home import Airflow, Run, offload_below
from logs_to_archive import due
from offloaded_once import assert_one_sound_chain

Runs = Callable[..., Run]
Connection = Callable[..., dict[str, str]]
SECONDS_MAX = 60


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
