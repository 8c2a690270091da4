"""The connection, the sensor that waits for an archive, and the trigger that waits in its place."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow_home import needs_airflow
from archive_fakes import CountingIds, SleptClock
from made_archive import TOPIC_ID, made

from local_log.errors import Invalid
from remote.manifest.model import never_archived
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import first_seen
from remote.store.api import ObjectStore
from remote.store.open import open_store

pytestmark = [needs_airflow, pytest.mark.filterwarnings("default")]  # Airflow's own warnings are not ours to mend


def connect(monkeypatch: pytest.MonkeyPatch, extra: dict[str, Any], **fields: str) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_TIERING_DEFAULT", json.dumps({"conn_type": "tiering", "extra": extra, **fields}))


def sensor(**given: Any) -> Any:
    from tiering.airflow.sensors import ArchivedThroughSensor

    return ArchivedThroughSensor(**{"task_id": "wait", "topics": ["made"], "through": 70, "deferrable": True, **given})


def fired(trigger: Any) -> Any:
    async def first() -> Any:
        async for event in trigger.run():
            return event.payload
        raise AssertionError("it ended without an event")

    return asyncio.run(asyncio.wait_for(first(), 30))


def test_what_is_archived_already_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    connect(monkeypatch, {"archive": str(tmp_path)})
    made(open_store(str(tmp_path)), [[[10]], [[70]]])
    assert sensor().execute({}) is None
    assert sensor(through=datetime(1970, 1, 1, 0, 0, 0, 70_000, tzinfo=UTC)).execute({}) is None
    assert sensor(through="1970-01-01T00:00:00.070Z", topics="mad*").execute({}) is None


def test_the_sensor_defers_and_the_trigger_fires_when_every_partition_is_through(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from airflow.sdk._shared.module_loading import import_string
    from airflow.sdk.exceptions import TaskDeferred

    connect(monkeypatch, {"archive": str(tmp_path)})
    store = open_store(str(tmp_path))
    made(store, [[[10]], [[70]]])
    with pytest.raises(TaskDeferred) as deferred:
        sensor(partitions=[0, 1], poke_interval=0.05).execute({})
    classpath, arguments = deferred.value.trigger.serialize()
    trigger = import_string(classpath)(**json.loads(json.dumps(arguments)))

    async def waited() -> Any:
        firing = asyncio.ensure_future(anext(trigger.run()))
        await asyncio.sleep(0.5)
        assert not firing.done()
        await asyncio.to_thread(made, store, [[[90]]], partition=1)
        return (await asyncio.wait_for(firing, 30)).payload

    payload = asyncio.run(waited())
    assert payload == {"behind": []}
    assert getattr(sensor(), deferred.value.method_name)({}, payload) is None


def seen(store: ObjectStore, topic: str, partition: int, topic_id: str = TOPIC_ID) -> None:
    """Records that a log directory has offsets 0, 1 and 2, all in an active segment."""
    none_yet = never_archived(topic, topic_id, partition, 0)
    writer = ManifestWriter(store, none_yet.path, SleptClock(), CountingIds(f"{partition:x}e"), "tests", 0)
    writer.commit(none_yet, lambda known: first_seen(known, "broker-1", 0, 3))


def test_partitions_and_topics_of_which_nothing_is_archived_yet_are_waited_for_by_name_and_by_glob(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tiering.airflow.triggers import still_behind

    connect(monkeypatch, {"archive": str(tmp_path)})
    url, store = str(tmp_path), open_store(str(tmp_path))
    made(store, [[[10]], [[70]]])
    seen(store, "made", 1)
    seen(store, "made2", 0, "B" * 22)
    assert still_behind(url, ["made"], 70, []) == ["made-1"]
    assert still_behind(url, ["made2"], 70, []) == ["made2-0"]
    assert still_behind(url, ["made*"], 70, []) == ["made-1", "made2-0"]
    assert still_behind(url, ["made"], 70, [0]) == []
    assert sensor(deferrable=False).poke({}) is False


def test_an_event_says_that_nothing_of_a_partition_is_archived_yet_and_there_is_none_of_a_topic_without_records(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tiering.airflow.operators import ArchivedThroughOperator

    connect(monkeypatch, {"archive": str(tmp_path)})
    store = open_store(str(tmp_path))
    made(store, [[[10]], [[70]]])
    seen(store, "made", 1)
    seen(store, "made2", 0, "B" * 22)
    operator = ArchivedThroughOperator(task_id="tell", partitions=[["made-0"], ["made2-0"]])
    told: list[dict[str, Any]] = []
    event = SimpleNamespace(add=lambda asset, extra: told.append(extra))
    context: Any = {"outlet_events": {operator.alias: event}}
    assert list(operator.execute(context)) == ["made"]
    assert told == [
        {"topic": "made", "offsets": {"0": 2, "1": 0}, "through_ms": -1, "through_ms_by_partition": {"0": 70, "1": -1}}
    ]


def test_where_waiting_makes_no_sense_the_task_fails_for_good(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    connect(monkeypatch, {"archive": str(tmp_path / "nothing")})
    with pytest.raises(AirflowFailException, match="no archive there"):
        sensor().execute({})
    payload = fired(sensor()._trigger())
    with pytest.raises(AirflowFailException, match="no archive there"):
        sensor().execute_complete({}, payload)
    for through in ("soon", "1970-01-01T00:00:00"):
        with pytest.raises(AirflowFailException, match="through="):
            sensor(through=through).execute({})


@pytest.mark.parametrize(
    ("extra", "fields", "problem"),
    [
        ({"archve": "s3://b/p"}, {}, "archve: no such field; did you mean archive?"),
        ({"archive": "s3://b/p"}, {"password": "hush"}, "secrets do not belong there"),
        ({"archive": "s3://key:hush@b/p"}, {}, "a secret does not belong in a configuration"),
        ({}, {}, "names no archive"),
    ],
)
def test_a_connection_that_cannot_be_used_says_why(
    monkeypatch: pytest.MonkeyPatch, extra: dict[str, Any], fields: dict[str, str], problem: str
) -> None:
    from tiering.airflow.hooks import TieringHook

    connect(monkeypatch, extra, **fields)
    with pytest.raises(Invalid) as refused:
        TieringHook().archive_url()
    assert problem in str(refused.value)
    assert "hush" not in str(refused.value)
    assert TieringHook().test_connection()[0] is False


def test_a_connection_that_there_is_none_of_is_told_with_the_command_that_adds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from tiering.airflow.hooks import TieringHook
    from tiering.airflow.sdk import AirflowNotFoundException

    def missing(_: str) -> None:
        raise AirflowNotFoundException("The conn_id `of_mine` isn't defined")

    monkeypatch.setattr(TieringHook, "get_connection", staticmethod(missing))
    with pytest.raises(Invalid, match="no connection of_mine; add it: airflow connections add of_mine --conn-type tiering"):
        TieringHook("of_mine").environment()


def test_the_log_directory_is_the_dags_own_else_the_connections_else_the_configurations(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tiering.airflow.hooks import TieringHook

    own, connections, workers = (tmp_path / name for name in ("own", "connections", "workers"))
    for folder in (own, connections, workers):
        folder.mkdir()
    connect(monkeypatch, {})
    assert TieringHook().log_dir(None) is None
    monkeypatch.setenv("TIERING_LOG_DIRS", str(workers))
    assert TieringHook().log_dir(None) == str(workers)
    connect(monkeypatch, {"log_dir": str(connections)})
    assert TieringHook().environment() == {"TIERING_LOG_DIRS": str(connections)}
    assert TieringHook().log_dir(None) == str(connections)
    assert TieringHook().log_dir(str(own)) == str(own)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "no log directory is given: give one, as the field log_dir of the connection or the param log_dir of the DAG"),
        ({"log_dir": "/a,/b"}, "has 2 log.dirs: give one, as the field log_dir"),
        (
            {"log_dir": "/not/mounted"},
            "there is no folder /not/mounted on the worker .*: correct log_dir, or give the DAG",
        ),
    ],
)
def test_a_task_without_its_log_directory_starts_no_command_and_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], problem: str
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tiering.airflow.operators import ExpireOperator, OffloadOperator, OffloadPlanOperator

    connect(monkeypatch, {"archive": "s3://bucket/prefix", **given})
    for operator in (OffloadPlanOperator, OffloadOperator, ExpireOperator)[: 3 if given else 2]:
        with pytest.raises(AirflowFailException, match=problem):
            operator(task_id="task").execute({})


def test_a_log_directory_that_no_broker_uses_is_given_as_such(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tiering.airflow.operators import ExpireOperator, OffloadOperator

    connect(monkeypatch, {"archive": "s3://bucket/prefix"})
    own = ["--own-log-dir", str(tmp_path)]
    assert OffloadOperator(task_id="task", own_log_dir=str(tmp_path)).words() == ["offload", *own, "--must-exist"]
    expire = ExpireOperator(task_id="task", own_log_dir=str(tmp_path), archive_alone=True)
    assert expire.words() == ["expire", *own, "--archive-alone", "--yes"]


def test_a_task_without_an_archive_starts_no_command_and_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from tiering.airflow.operators import ScrubOperator

    connect(monkeypatch, {})
    with pytest.raises(AirflowFailException, match="connection tiering_default names no archive: give its field archive"):
        ScrubOperator(task_id="task").execute({})


def test_a_connection_comes_before_the_workers_environment_and_that_before_a_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tiering.airflow.hooks import TieringHook

    file = tmp_path / "tiering.toml"
    file.write_text('archive.url = "/of/file"\narchive.keys = "/keys"\n')
    connect(monkeypatch, {"config": str(file)})
    assert TieringHook().archive_url() == "/of/file"
    monkeypatch.setenv("TIERING_ARCHIVE_URL", "/of/worker")
    assert TieringHook().archive_url() == TieringHook(None).archive_url() == "/of/worker"
    connect(monkeypatch, {"config": str(file), "archive": "/of/connection"})
    assert TieringHook().archive_url() == "/of/connection"
    assert TieringHook().config().settings.archive_keys == "/keys"


def test_the_hook_opens_the_archive_for_programs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from tiering.airflow.hooks import TieringHook

    made(open_store(str(tmp_path)), [[[10]], [[70]]])
    connect(monkeypatch, {"archive": str(tmp_path)})
    assert TieringHook().test_connection() == (True, f"file://{tmp_path} is an archive")
    assert TieringHook().get_conn().list_offsets("made", -1) == {0: 2}


def test_the_same_archive_is_the_same_asset_however_its_address_ends() -> None:
    from tiering.airflow.assets import archived_asset

    assert archived_asset("s3://bucket/a prefix/", "orders").uri == "tiering://s3/bucket/a%20prefix/orders"
    assert archived_asset("/data/archive", "orders") == archived_asset("file:///data/archive", "orders")


def test_the_former_name_of_the_operator_that_expires_still_works() -> None:
    from tiering.airflow import operators

    with pytest.warns(DeprecationWarning, match="use ExpireOperator"):
        assert operators.RetainOperator is operators.ExpireOperator
