"""What Airflow meets when it loads the DAGs and looks for providers."""

from importlib.metadata import entry_points

import pytest
from airflow_home import Airflow

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


def test_every_dag_loads_and_so_does_a_file_of_the_users_that_makes_more_of_them(airflow: Airflow) -> None:
    assert airflow.loaded["errors"] == {}
    own = {"tiering_offload_broker-1", "tiering_offload_broker-2", "daily", "small", "restore_by_hand"}
    ours = {"tiering_offload", "tiering_retention", "tiering_sweep", "tiering_scrub", "tiering_backfill"}
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
