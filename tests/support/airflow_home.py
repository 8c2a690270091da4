"""A home for Airflow: a temporary folder with the project's DAGs, and one process that makes a database and runs DAGs there.

Airflow stays out of the tests' own process: it takes seconds to import, and configures logging, warnings and signals for all.
"""

import atexit
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import quick

ROOT = Path(__file__).parents[2]
IS_THERE = importlib.util.find_spec("airflow") is not None
needs_airflow = pytest.mark.skipif(not IS_THERE, reason="Airflow is not installed: pip install 'kafka-tiering[airflow]'")
SECONDS_MAX = 240


def home(*files: Path) -> dict[str, str]:
    """What the environment of a process of Airflow's is to have; its home, with the DAGs and `files`, goes with the tests."""
    environment = empty_home()
    folder = Path(environment["AIRFLOW_HOME"], "dags")
    shutil.copytree(ROOT / "dags", folder, ignore=shutil.ignore_patterns("__pycache__"))
    for file in files:
        shutil.copy(file, folder)
    return environment


def empty_home() -> dict[str, str]:
    """The same of a home in which there is nothing yet."""
    folder = tempfile.mkdtemp(prefix="airflow-home-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return {
        "AIRFLOW_HOME": folder,
        "AIRFLOW__CORE__DAGS_FOLDER": f"{folder}/dags",
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{folder}/airflow.db",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": "http://127.0.0.1:9/never-asked",
        "PYTHONPATH": str(ROOT),
    }


def offload_below(process: "subprocess.Popen[Any]") -> psutil.Process | None:
    """The command that a task of `tiering_offload` runs, where a process of Airflow's has one among its descendants."""
    for child in psutil.Process(process.pid).children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "--topic-partition" in child.cmdline():
                return child
    return None


@dataclass(frozen=True)
class Run:
    """How a run of a DAG ended: tasks and returned values by `task_id` or `task_id[map_index]`, and the asset events.

    `log` is what our own code said, and all errors.
    """

    state: str
    tasks: dict[str, str]
    tries: dict[str, int]
    returned: dict[str, Any]
    events: list[dict[str, Any]]
    log: str


class Airflow:
    """A process that runs DAGs by `dag.test()`, one after the other. `loaded`: what it has met while it loaded them."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        quick.starts_a_server()
        self.environment = {**os.environ, **environment}
        self.log = Path(environment["AIRFLOW_HOME"], f"log-{id(self)}")
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("airflow_driver.py"))],
                env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True,
                start_new_session=True,
            )  # fmt: skip
        self.loaded: dict[str, Any] = self._answer()

    def begin(
        self, dag: str, conf: Mapping[str, Any], *, at: str | None = None, retries: int = 3, python: str | None = None,
        **environment: str,
    ) -> None:  # fmt: skip
        """Has a DAG run; `ended` waits for it. `python`: what runs the commands of its tasks; None for Airflow's own."""
        assert self.process.stdin is not None
        asked = {
            "dag": dag,
            "conf": conf,
            "at": at,
            "retries": retries,
            "python": python,
            "environment": environment,
            "seen": self.log.stat().st_size,
        }
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()

    def ended(self) -> Run:
        """The run that was begun."""
        answer = self._answer()
        lines = self.log.read_bytes()[answer["seen"] :].decode().splitlines()
        told = [line for line in lines if not line.startswith("20") or "[error" in line or "tiering.airflow" in line]
        return Run(**answer["run"], log="\n".join(told))

    def run(
        self, dag: str, conf: Mapping[str, Any], *, at: str | None = None, retries: int = 3, python: str | None = None,
        **environment: str,
    ) -> Run:  # fmt: skip
        """Runs a DAG, with `at` as its logical date and these variables beside those of the process."""
        self.begin(dag, conf, at=at, retries=retries, python=python, **environment)
        return self.ended()

    def _answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log.read_text()[-4000:]
        answer: dict[str, Any] = json.loads(line)
        return answer

    def stop(self) -> None:
        """Ends the process."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait(60)
        if self.process.stdout is not None:
            self.process.stdout.close()
