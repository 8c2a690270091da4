"""Airflow as it is run: API server, scheduler, DAG processor and triggerer, each a process of its own, asked by REST.

The executor is the one that needs nothing more, LocalExecutor: the scheduler's own processes run the tasks. All of it listens on
loopback only.
"""

import base64
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

from airflow_home import SECONDS_MAX
from real_kafka import free_ports

T = TypeVar("T")

PARTS: Final = {"api-server": (), "scheduler": ("--skip-serve-logs",), "dag-processor": (), "triggerer": ("--skip-serve-logs",)}
_ENDED: Final = ("success", "failed")
_LOG_BYTES: Final = 3000


def service_settings(port: int) -> dict[str, str]:
    """What the processes share, and how often they look for work: a production's seconds are long for a test."""
    url = f"http://127.0.0.1:{port}"
    return {
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__BASE_URL": url,
        "AIRFLOW__API__SECRET_KEY": secrets.token_hex(),
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__FERNET_KEY": base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": str(SECONDS_MAX),
        "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": str(SECONDS_MAX),
        "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
        "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.5",
        "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": "60",
        "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
    }


class AirflowService:
    """The four processes over one home, in which these commands of `airflow` have been run, of which the first makes a database.

    `environment`: beside that of this process. `commands`: words as one types them, each without the first.
    """

    def __init__(self, environment: Mapping[str, str], commands: Iterable[Iterable[str]]) -> None:
        self.home = Path(environment["AIRFLOW_HOME"])
        (self.home / "airflow.cfg").touch()  # or the first of them to start writes one while the others read it
        self._port, _ = free_ports()
        self.environment = {**os.environ, **environment, **service_settings(self._port)}
        self._headers = {"Content-Type": "application/json"}
        self._names = (f"run-{number}" for number in count(1))
        self.do(commands)
        self.processes = {part: self._start(part, *words) for part, words in PARTS.items()}

    def _start(self, part: str, *words: str) -> "subprocess.Popen[bytes]":
        with (self.home / f"{part}.out").open("wb") as out:
            return subprocess.Popen(
                [sys.executable, "-m", "airflow", part, *words], env=self.environment, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, cwd=self.home, start_new_session=True,
            )  # fmt: skip

    def do(self, commands: Iterable[Iterable[str]]) -> None:
        """Runs commands of `airflow`, in order."""
        script, told = str(Path(__file__).with_name("airflow_commands.py")), json.dumps([[*words] for words in commands])
        done = subprocess.run(
            [sys.executable, script], input=told, env=self.environment, cwd=self.home, text=True,
            capture_output=True, check=False, timeout=SECONDS_MAX,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr

    def wait_until_healthy(self) -> None:
        """Until each of the four says that it is at work."""

        def healthy() -> bool:
            status, answer = self._answer("GET", "/api/v2/monitor/health")
            return status == 200 and all(part["status"] == "healthy" for part in answer.values())

        self.until(healthy)
        _, token = self._answer("GET", "/auth/token")
        self._headers["Authorization"] = f"Bearer {token['access_token']}"

    def ask(self, path: str, **query: Any) -> Any:
        """What the REST API answers."""
        return self._well("GET", f"/api/v2/{path}?{urlencode(query)}")

    def unpause(self, *dags: str) -> None:
        """Lets DAGs run, which are paused when they are new."""
        for dag in dags:
            self._well("PATCH", f"/api/v2/dags/{quote(dag)}", {"is_paused": False})

    def trigger(self, dag: str, **params: Any) -> str:
        """Has a DAG run with these params, and gives the id of the run."""
        name = next(self._names)
        self._well("POST", f"/api/v2/dags/{quote(dag)}/dagRuns", {"dag_run_id": name, "logical_date": None, "conf": params})
        return name

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """The runs of a DAG."""
        found: list[dict[str, Any]] = self.ask(f"dags/{quote(dag)}/dagRuns")["dag_runs"]
        return found

    def ended(self, dag: str, run: str) -> str:
        """How a run ended; waits for it."""

        def state() -> str | None:
            said: str = self.ask(f"dags/{quote(dag)}/dagRuns/{quote(run)}")["state"]
            return said if said in _ENDED else None

        return self.until(state)

    def tasks(self, dag: str, run: str) -> dict[str, dict[str, Any]]:
        """The tasks of a run, by `task_id` or, where they are mapped, `task_id[rendered map index]`."""
        found = self.ask(f"dags/{quote(dag)}/dagRuns/{quote(run)}/taskInstances")["task_instances"]
        return {t["task_id"] if t["map_index"] < 0 else f"{t['task_id']}[{t['rendered_map_index']}]": t for t in found}

    def fail(self, dag: str, run: str, task: str, map_index: int) -> None:
        """Marks a mapped task as failed, as one does by hand who wants it to end."""
        where = f"dags/{quote(dag)}/dagRuns/{quote(run)}/taskInstances/{quote(task)}/{map_index}"
        self._well("PATCH", f"/api/v2/{where}", {"new_state": "failed"})

    def returned(self, dag: str, run: str, task: str) -> Any:
        """What a task returned that is not mapped."""
        where = f"dags/{quote(dag)}/dagRuns/{quote(run)}/taskInstances/{quote(task)}/xcomEntries/return_value"
        return self.ask(where, deserialize=True)["value"]

    def log(self, dag: str, run: str) -> str:
        """What the tasks of a run have logged."""
        return "\n".join(file.read_text() for file in sorted(self.home.glob(f"logs/dag_id={dag}/run_id={run}/**/*.log")))

    def until(self, look: Callable[[], T | None]) -> T:
        """Looks until there is something. Fails where a process has ended, or it takes too long, with what they said last."""
        end = time.monotonic() + SECONDS_MAX
        while time.monotonic() < end and all(process.poll() is None for process in self.processes.values()):
            found = look()
            if found:
                return found
            time.sleep(0.5)
        raise AssertionError(self.said())

    def said(self) -> str:
        """The ends of all that the processes and tasks have written."""
        files = [*sorted(self.home.glob("*.out")), *sorted(self.home.rglob("attempt=*.log"))]
        return "\n\n".join(f"{file.name}:\n{file.read_text()[-_LOG_BYTES:]}" for file in files)

    def _well(self, method: str, path: str, body: Any = None) -> Any:
        status, answer = self._answer(method, path, body)
        assert status < 300, (method, path, status, answer)
        return answer

    def _answer(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """The status and the answer; 0 where nobody listens yet."""
        with closing(HTTPConnection("127.0.0.1", self._port, timeout=SECONDS_MAX)) as connection:
            try:
                connection.request(method, path, None if body is None else json.dumps(body), self._headers)
                answer = connection.getresponse()
                return answer.status, json.loads(answer.read() or b"null")
            except ConnectionError:
                return 0, None

    def stop(self) -> None:
        """Ends the processes, and what they have started that is still there after a while."""
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # a group that it began itself, see `_start`
                process.wait()
