"""What the tests of Airflow share: a home set before anybody imports it, a process of it, and archives on a folder and on S3."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fast_java
import forked_python
import pytest
from airflow_home import IS_THERE, Airflow, Run, home, needs_airflow
from golden_logs import broker_logs

if IS_THERE:
    os.environ |= home()

Runs = Callable[..., Run]
OWN = Path(__file__).parent / "own" / "my_dags.py"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(needs_airflow)


@pytest.fixture(scope="session")
def start_airflow(s3_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], Airflow]]:
    """Starts processes of Airflow's, each with a home of its own; they know the S3 server, and a Spark that starts soon."""
    running = []
    spark = fast_java.spark_environment(tmp_path_factory.mktemp("spark")) | {"PYSPARK_PYTHON": forked_python.shared().path}

    def start() -> Airflow:
        running.append(Airflow({**home(OWN), **spark}))
        return running[-1]

    yield start
    for process in running:
        process.stop()


@pytest.fixture(scope="session")
def airflow(start_airflow: Callable[[], Airflow]) -> Airflow:
    """The process that most tests run their DAGs in."""
    return start_airflow()


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of the golden logs, for reading only."""
    return broker_logs(tmp_path_factory.mktemp("broker"), "g-txn-0")


@pytest.fixture(scope="session")
def connection() -> Callable[..., dict[str, str]]:
    """`connection(url, name=value)`: the variable that is the connection tiering_default."""

    def made(url: str, **more: Any) -> dict[str, str]:
        extra = {"archive": url, **more}
        return {"AIRFLOW_CONN_TIERING_DEFAULT": json.dumps({"conn_type": "tiering", "extra": extra})}

    return made


@pytest.fixture(scope="session")
def dag_run(airflow: Airflow, connection: Callable[..., dict[str, str]]) -> Runs:
    """`dag_run(dag, url, param=value)`: runs a DAG against an archive. A name in capitals is a variable of the environment.

    Its commands are forks of a process that has loaded what they load.
    """
    python = forked_python.shared().path

    def run(dag: str, url: str, *, at: str | None = None, retries: int = 0, logs: Path | None = None, **params: Any) -> Run:
        where = {"TIERING_LOG_DIRS": str(logs)} if logs is not None else {}
        where |= {name: value for name, value in params.items() if name.isupper()}
        conf = {name: value for name, value in params.items() if not name.isupper()}
        return airflow.run(dag, conf, at=at, retries=retries, python=python, **where, **connection(url))

    return run
