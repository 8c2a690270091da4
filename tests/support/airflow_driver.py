"""Run by `airflow_home`, in a process of its own: says what it has loaded, then reads which DAG to run, and says how it ended."""

import json
import os
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

REACHING_OUT = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.exec", "os.system", "sqlite3.connect")


def main() -> None:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Airflow logs there

    def answer(**said: Any) -> None:
        answers.write(json.dumps(said, default=str) + "\n")
        answers.flush()

    from airflow.dag_processing.dagbag import BundleDagBag

    def load() -> BundleDagBag:
        folder = os.environ["AIRFLOW__CORE__DAGS_FOLDER"]
        return BundleDagBag(folder, bundle_path=Path(folder), bundle_name="dags-folder")

    known, reached = set(sys.modules), []
    sys.addaudithook(lambda event, _: reached.append(event) if event in REACHING_OUT else None)
    bag = load()
    loaded, reached_while_loading = sorted(set(sys.modules) - known), [*reached]
    queues = {name: sorted({task.queue for task in dag.tasks}) for name, dag in bag.dags.items()}
    answer(errors=bag.import_errors, queues=queues, modules=loaded, reached=reached_while_loading, provider=_provider())

    from airflow.utils.db import initdb

    initdb()  # as `airflow db migrate` does, in a process that has loaded Airflow already
    _write_the_folder_once()
    for line in sys.stdin:
        asked = json.loads(line)
        os.environ.update(asked["environment"])
        dag = load().dags[asked["dag"]]  # anew, as every task's process does: a task that has run holds no templates any more
        for task in dag.tasks:
            _hurry(task, asked["retries"])
            if asked["python"] is not None:
                _set_python(task, asked["python"])
        at = {} if asked["at"] is None else dict.fromkeys(("logical_date", "run_after"), datetime.fromisoformat(asked["at"]))
        run = dag.test(run_conf=asked["conf"], **at)
        for name in asked["environment"]:
            del os.environ[name]
        answer(run=_ended(dag.dag_id, run), seen=asked["seen"])


def _write_the_folder_once() -> None:
    """Airflow writes all DAGs of the folder to its database before each run: half of a run's time, though none changes here."""
    from airflow.dag_processing import dagbag

    write = dagbag.sync_bag_to_db

    def once(*args: Any, **kwargs: Any) -> None:
        write(*args, **kwargs)
        dagbag.sync_bag_to_db = lambda *_, **__: None

    dagbag.sync_bag_to_db = once


def _hurry(task: Any, retries: int) -> None:
    changed: dict[str, Any] = {"retry_delay": timedelta(0), "retry_exponential_backoff": 0, "retries": retries}
    if task.is_mapped:
        task.partial_kwargs.update(changed)
        return
    if hasattr(task, "poke_interval"):
        changed["poke_interval"] = 0.2
    for name, value in changed.items():
        setattr(task, name, value)


def _set_python(task: Any, python: str) -> None:
    """Has it run its command, if it is one, by this Python."""
    from tiering.airflow.command_operator import CommandOperator

    if task.is_mapped and issubclass(task.operator_class, CommandOperator):
        task.partial_kwargs["python"] = python
    elif isinstance(task, CommandOperator):
        task.python = python


def _ended(dag_id: str, run: Any) -> dict[str, Any]:
    from airflow.models.asset import AssetEvent
    from airflow.models.xcom import XComModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    with create_session() as session:
        found = run.get_task_instances(session=session)
        tasks, tries = {_name(ti): str(ti.state) for ti in found}, {_name(ti): ti.try_number for ti in found}
        wanted = select(XComModel).where(XComModel.run_id == run.run_id, XComModel.dag_id == dag_id)
        values = session.scalars(wanted.where(XComModel.key == "return_value"))
        returned = {_name(x): XComModel.deserialize_value(x) for x in values}
        events = session.scalars(select(AssetEvent).where(AssetEvent.source_run_id == run.run_id).order_by(AssetEvent.id))
        told = [{"uri": event.asset.uri, "extra": event.extra} for event in events]
    return {"state": str(run.state), "tasks": tasks, "tries": tries, "returned": returned, "events": told}


def _name(of: Any) -> str:
    return of.task_id if of.map_index < 0 else f"{of.task_id}[{of.map_index}]"


def _provider() -> dict[str, Any] | None:
    """What Airflow's manager of providers, which holds each against its schema, has of ours."""
    from airflow.providers_manager import ProvidersManager

    manager = ProvidersManager()
    found = manager.providers.get("kafka-tiering")
    if found is None:
        return None
    hook = manager.hooks["tiering"]
    fields = sorted(name for name in manager.connection_form_widgets if name.startswith("extra__tiering__"))
    schemes = sorted(scheme for scheme in manager.asset_uri_handlers if scheme == "tiering")
    return {"version": found.version, "hook": hook.hook_class_name if hook else None, "fields": fields, "schemes": schemes}


if __name__ == "__main__":
    main()
