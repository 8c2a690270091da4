"""The DAGs under a real scheduler, DAG processor, triggerer and API server, set up as the page about Airflow says."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest
from airflow_home import ROOT, SECONDS_MAX, empty_home, offload_below
from airflow_service import AirflowService
from built_wheel import built_wheel
from golden_logs import broker_logs, segments
from offloaded_once import assert_one_sound_chain

from local_log.formats.record import NO_TIMESTAMP
from local_log.formats.record_batch.batch_v2 import scan
from remote.store.open import open_store
from tiering.read.archived_through import archived_through

OURS = {"tiering_offload", "tiering_retention", "tiering_sweep", "tiering_scrub", "tiering_backfill"}
OURS |= {"tiering_offload_spark", "tiering_retention_spark"}
OWN = {"by_hand", "on_every_offload", "when_archived"}
FIRST, LATER, SLOW = ("g-codec-none", "g-txn"), "g-codec-lz4", "g-trimmed"
PAGE = ROOT / "docs" / "airflow.md"
PAGE_S_ARCHIVE, PAGE_S_LOGS = "s3://bucket/kafka", "/var/lib/kafka/data"


class Page:
    """A reader of the page, at whose shell `airflow` only notes what it is to do: each of its commands takes seconds to start."""

    def __init__(self, folder: Path, airflow_home: str, instead: Mapping[str, str]) -> None:
        self._noted, self._instead, tools = folder / "noted", instead, folder / "tools"
        with zipfile.ZipFile(built_wheel(folder)) as wheel:
            wheel.extractall(folder / "site-packages")
        note = "import json, sys; print(json.dumps(sys.argv[1:]))"
        tools.mkdir()
        for name, command in {
            "airflow": f"exec {sys.executable} -c '{note}' \"$@\" >>{self._noted}",
            "python": f'PYTHONPATH={folder / "site-packages"} exec {sys.executable} "$@"',
        }.items():
            (tools / name).write_text(f"#!/bin/sh\n{command}\n")
            (tools / name).chmod(0o755)
        self._environment = {**os.environ, "AIRFLOW_HOME": airflow_home, "PATH": f"{tools}:{os.environ['PATH']}"}

    def follow(self, begin: str, end: str) -> list[list[str]]:
        """Types the commands between two words of the page; gives those that are of `airflow`."""
        lines = PAGE.read_text().partition(begin)[2].partition(end)[0].splitlines()
        script = "\n".join(line[2:] for line in lines if line.startswith(("$ ", "> ")))
        assert "airflow" in script
        for said, so in self._instead.items():
            script = script.replace(said, so)
        self._noted.write_text("")
        subprocess.run(["bash", "-euc", script], cwd=self._noted.parent, env=self._environment, check=True)
        return [json.loads(line) for line in self._noted.read_text().splitlines()]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the schedule offloads, whenever it does."""
    return broker_logs(tmp_path_factory.mktemp("logs"), *(f"{topic}-0" for topic in FIRST))


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What only `by_hand` offloads."""
    return broker_logs(tmp_path_factory.mktemp("others"), f"{LATER}-0", f"{SLOW}-0")


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("scheduled") / "archive")


@pytest.fixture(scope="module")
def environment() -> dict[str, str]:
    return empty_home()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory, environment: dict[str, str], logs: Path, url: str) -> Page:
    instead = {PAGE_S_ARCHIVE: url, PAGE_S_LOGS: str(logs)}
    return Page(tmp_path_factory.mktemp("page"), environment["AIRFLOW_HOME"], instead)


@pytest.fixture(scope="module")
def airflow(page: Page, environment: dict[str, str], others: Path, url: str) -> Iterator[AirflowService]:
    commands = page.follow("## Set up", "\nAn existing Airflow")
    assert [words[:2] for words in commands] == [["db", "migrate"], ["connections", "add"], ["pools", "set"]]
    shutil.copy(Path(__file__).parent / "own" / "their_dags.py", Path(environment["AIRFLOW_HOME"], "dags"))
    configured = {"TIERING_RETENTION_MS": "-1"}
    running = AirflowService({**environment, **configured, "ARCHIVE_URL": url, "OTHER_LOGS": str(others)}, commands)
    try:
        running.wait_until_healthy()
        yield running
    finally:
        running.stop()


@pytest.fixture(scope="module")
def parsed(airflow: AirflowService) -> dict[str, Any]:
    """The DAGs, once the DAG processor has met all files."""

    def all_of_them() -> dict[str, Any] | None:
        found = {dag["dag_id"]: dag for dag in airflow.ask("dags")["dags"]}
        return found if len(found) == len(OURS | OWN) or airflow.ask("importErrors")["total_entries"] else None

    return airflow.until(all_of_them)


@pytest.fixture(scope="module")
def first(airflow: AirflowService, parsed: dict[str, Any], page: Page) -> None:
    """What the page has one do for the first run of `tiering_offload`."""
    airflow.unpause(*OWN)
    airflow.do(page.follow("**The first run**", "\n```\n"))


def run_of(airflow: AirflowService, kind: str) -> str:
    def found() -> list[str]:
        return [run["dag_run_id"] for run in airflow.runs("tiering_offload") if run["run_type"] == kind]

    return airflow.until(found)[0]


@pytest.fixture(scope="module")
def begun(airflow: AirflowService, first: None) -> str:
    """The run that the schedule has begun when `tiering_offload` was unpaused, as soon as it ended."""
    run = run_of(airflow, "scheduled")
    airflow.ended("tiering_offload", run)
    return run


@pytest.fixture(scope="module")
def offloaded(airflow: AirflowService, begun: str) -> str:
    """The run that has made the archive and copied the first topics."""
    run = run_of(airflow, "manual")
    airflow.ended("tiering_offload", run)
    return run


def test_every_dag_of_the_folder_is_parsed_and_paused(airflow: AirflowService, parsed: dict[str, Any]) -> None:
    assert airflow.ask("importErrors")["import_errors"] == []
    assert set(parsed) == OURS | OWN


def test_the_run_that_an_unpaused_dag_begins_with_makes_no_archive(airflow: AirflowService, begun: str) -> None:
    tasks = airflow.tasks("tiering_offload", begun)
    assert (tasks["plan"]["state"], tasks["plan"]["try_number"]) == ("failed", 1), airflow.said()
    assert "no archive there" in airflow.log("tiering_offload", begun)


def test_an_offload_maps_a_task_a_partition_in_the_pool_and_leaves_one_chain(
    airflow: AirflowService, offloaded: str, logs: Path, url: str
) -> None:
    tasks = airflow.tasks("tiering_offload", offloaded)
    mapped = [f"offload[{topic}-0]" for topic in FIRST]
    assert {name: task["state"] for name, task in tasks.items()} == dict.fromkeys(["plan", *mapped, "tell"], "success"), (
        airflow.said()
    )
    assert {name: task["pool"] for name, task in tasks.items() if name in mapped} == dict.fromkeys(mapped, "tiering")
    pool = airflow.ask("pools/tiering")
    assert (pool["slots"], pool["occupied_slots"]) == (8, 0)
    assert "no topic" not in airflow.log("tiering_offload", offloaded)  # as a command says of a topic that is another task's
    for topic in FIRST:
        assert_one_sound_chain(url, logs, f"{topic}-0")


def test_the_event_of_a_topic_starts_a_downstream_dag_and_says_how_far_it_is_archived(
    airflow: AirflowService, offloaded: str, url: str
) -> None:
    from tiering.airflow.assets import archived_asset

    (run,) = airflow.until(lambda: airflow.runs("on_every_offload"))
    assert airflow.ended("on_every_offload", run["dag_run_id"]) == "success", airflow.said()
    said = airflow.returned("tiering_offload", offloaded, "tell")
    assert airflow.returned("on_every_offload", run["dag_run_id"], "told") == [said["g-txn"]]
    assert said["g-txn"]["through_ms"] > 0
    events = airflow.ask("assets/events", source_dag_id="tiering_offload")["asset_events"]
    assert {event["uri"] for event in events} == {archived_asset(url, topic).uri for topic in FIRST}


def test_a_sensor_is_deferred_until_an_offload_has_brought_what_it_waits_for(
    airflow: AirflowService, offloaded: str, others: Path, url: str
) -> None:
    batches, _ = scan(segments(others, f"{LATER}-0")[0][1])
    waiting = airflow.trigger("when_archived", topics=[LATER], through=int(batches.max_timestamp.max()))

    def deferred() -> bool:
        task = airflow.tasks("when_archived", waiting).get("wait")
        return task is not None and task["state"] == "deferred" and task["triggerer_job"] is not None

    airflow.until(deferred)
    run = airflow.trigger("by_hand", topics=[LATER])
    assert airflow.ended("by_hand", run) == "success", airflow.said()
    assert {name: task["queue"] for name, task in airflow.tasks("by_hand", run).items()} == dict.fromkeys(
        ["plan", f"offload[{LATER}-0]", "tell"], "broker-2"
    )
    assert airflow.ended("when_archived", waiting) == "success", airflow.said()
    assert_one_sound_chain(url, others, f"{LATER}-0")


def test_a_task_that_is_failed_by_hand_ends_its_command_and_the_next_run_does_its_work(
    airflow: AirflowService, offloaded: str, others: Path, url: str
) -> None:
    slow = airflow.trigger("by_hand", topics=[SLOW], bytes_per_second=50_000)
    command = airflow.until(lambda: offload_below(airflow.processes["scheduler"]))
    airflow.fail("by_hand", slow, "offload", 0)
    psutil.wait_procs([command], SECONDS_MAX)
    assert airflow.ended("by_hand", slow) == "failed"
    assert [through.through_ms for through in archived_through(open_store(url), SLOW)] in ([], [NO_TIMESTAMP])
    run = airflow.trigger("by_hand", topics=[SLOW])
    assert airflow.ended("by_hand", run) == "success", airflow.said()
    assert_one_sound_chain(url, others, f"{SLOW}-0")


def test_the_runs_that_other_schedules_begin_find_all_in_order(airflow: AirflowService, offloaded: str) -> None:
    found = {
        "tiering_retention": ("retain", {"keep": 4}),
        "tiering_sweep": ("sweep", {}),
        "tiering_scrub": ("scrub", {}),
    }
    airflow.unpause(*found)
    for dag, (task, rows) in found.items():
        (run,) = airflow.until(lambda dag=dag: airflow.runs(dag))
        assert airflow.ended(dag, run["dag_run_id"]) == "success", airflow.said()
        assert airflow.returned(dag, run["dag_run_id"], task)["rows"] == rows
