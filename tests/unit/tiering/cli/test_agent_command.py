"""`tiering agent`, as a process beside a log directory."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents_at_work import LONG_S, command, running
from click.testing import Result
from golden_logs import broker_logs
from logs_to_archive import finer_logs, local_logs, path_of
from made_manifests import assert_sound_archive
from one_offload import TXN, due_ranges, named
from prometheus_client.parser import text_string_to_metric_families

from remote.store.open import open_store
from tiering.metrics.series import ALL, PROCESS_SERIES

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return finer_logs(tmp_path_factory.mktemp("finer"))


def is_done(status: dict[str, Any]) -> bool:
    return bool(status["partitions"]) and all(
        p["archived_segments"] and p["lag_segments"] == p["waiting_segments"]
        for p in status["partitions"]
        if p["topic"] not in ("g-empty", "g-tiny")
    )


@pytest.mark.slow
def test_it_archives_a_log_directory_answers_meanwhile_and_stops_when_told(logs: Path, tmp_path: Path) -> None:
    archive = tmp_path / "archive"
    with running(logs, archive, tmp_path / "state") as agent:
        status = agent.until("all is archived", is_done)
        assert status["state"] == "running"
        assert status["last_error"] is None
        import http.client

        connection = http.client.HTTPConnection(*agent.address.split(":"), timeout=LONG_S)
        connection.request("GET", "/metrics")
        families = list(text_string_to_metric_families(connection.getresponse().read().decode()))
        connection.close()
        told = {f.name + ("_total" if f.type == "counter" else "") for f in families}
        assert told == {s.name for s in ALL} | set(PROCESS_SERIES)
        agent.process.send_signal(signal.SIGTERM)
        assert agent.ended()[0] == 0
    store = open_store(str(archive))
    for name, log in local_logs(logs).items():
        if due_ranges(log):
            assert named(assert_sound_archive(store, path_of(log))) == due_ranges(log), name


@pytest.mark.slow
def test_a_second_agent_of_a_log_directory_is_refused_with_a_clear_message(logs: Path, tmp_path: Path) -> None:
    other = broker_logs(tmp_path / "other", TXN) if (tmp_path / "other").mkdir() is None else logs
    with running(logs, tmp_path / "archive", tmp_path / "state") as agent:
        second = subprocess.run(
            command(Path(f"{other},{logs}"), tmp_path / "elsewhere", tmp_path / "own"), capture_output=True, text=True,
            timeout=LONG_S,
        )  # fmt: skip
        assert second.returncode == 1
        assert f"{logs}: another agent uses this log directory" in second.stderr
        assert "Traceback" not in second.stderr
        assert not (tmp_path / "elsewhere").exists()
        agent.process.kill()
    with running(logs, tmp_path / "archive", tmp_path / "state"):
        pass  # a kill has freed it


@pytest.mark.slow
def test_it_is_paused_and_resumed_by_command(run: Run, logs: Path, tmp_path: Path) -> None:
    given = command(logs, tmp_path / "archive", tmp_path / "state")[3:]
    with running(logs, tmp_path / "archive", tmp_path / "state") as agent:
        paused = run(*given, "pause")
        assert (paused.exit_code, paused.stderr) == (0, f"tiering: the agent at {agent.address} is paused\n")
        assert agent.ask()["state"] == "paused"
        resumed = run(*given, "resume")
        assert (resumed.exit_code, "running" in resumed.stderr or "starting" in resumed.stderr) == (0, True)
        agent.process.send_signal(signal.SIGINT)
        assert agent.ended()[0] == 0
    gone = run(*given, "pause")
    assert gone.exit_code == 5
    assert "no agent responds there" in gone.stderr


@pytest.mark.slow
def test_a_kill_in_the_midst_of_it_is_gone_on_from(logs: Path, tmp_path: Path) -> None:
    archive, state = tmp_path / "archive", tmp_path / "state"
    for _ in range(2):
        with running(logs, archive, state, "remote.log.manager.copy.max.bytes.per.second=3000000") as agent:
            agent.until("something is copied", lambda s: any(p["archived_segments"] for p in s["partitions"]))
            agent.process.kill()
    with running(logs, archive, state) as agent:
        agent.until("all is archived", is_done)
    store = open_store(str(archive))
    for name, log in local_logs(logs).items():
        if due_ranges(log):
            assert named(assert_sound_archive(store, path_of(log))) == due_ranges(log), name


def test_what_a_configuration_does_not_say_or_says_wrong_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    nothing = run("agent")
    assert (nothing.exit_code, "log.dirs" in nothing.stderr) == (2, True)
    no_archive = run("agent", "--override", f"log.dirs={tmp_path}")
    assert (no_archive.exit_code, "archive.url" in no_archive.stderr) == (2, True)
    wrong = run("agent", "--override", "agent.task=copy", "--override", "agent.http.address=80", "--override", "agent.tasks=x")
    assert wrong.exit_code == 2
    assert "did you mean agent.tasks?" in wrong.stderr
    assert "expected HOST:PORT" in wrong.stderr
    assert "expected one of copy, expire, sweep, scrub" in wrong.stderr


def test_a_log_directory_that_is_not_there_is_not_found(run: Run, tmp_path: Path) -> None:
    result = run(*command(tmp_path / "nothing", tmp_path / "archive", tmp_path / "state")[3:])
    assert (result.exit_code, "no such folder" in result.stderr) == (4, True)


def test_what_ends_an_agent_is_in_the_form_of_its_log(run: Run, tmp_path: Path) -> None:
    result = run(*command(tmp_path / "nothing", tmp_path / "archive", tmp_path / "state")[3:], "--log-format", "json")
    told = json.loads(result.stderr)
    assert (result.exit_code, told["level"], "no such folder" in told["message"]) == (4, "warn", True)


def test_an_archive_inside_the_log_directory_is_a_usage_error(run: Run, logs: Path, tmp_path: Path) -> None:
    result = run(*command(logs, logs / "archive", tmp_path / "state")[3:])
    assert (result.exit_code, "are inside each other" in result.stderr) == (2, True)


def test_a_bucket_that_is_not_there_ends_it_with_a_clear_message(run: Run, logs: Path, tmp_path: Path, s3_server: str) -> None:
    result = run(*command(logs, "s3://no-such-bucket/archive", tmp_path / "state")[3:])
    assert result.exit_code in (1, 4), result.stderr
    assert "no-such-bucket" in result.stderr
    assert "Traceback" not in result.stderr


def test_an_agent_that_could_not_start_has_freed_the_log_directory(run: Run, logs: Path, tmp_path: Path, s3_server: str) -> None:
    for _ in range(2):
        result = run(*command(logs, "s3://no-such-bucket/archive", tmp_path / "state")[3:])
        assert "another agent" not in result.stderr


def test_it_works_on_s3(logs: Path, tmp_path: Path, s3_bucket: str) -> None:
    url = f"s3://{s3_bucket}/archive"
    with running(logs, url, tmp_path / "state", "topics.include=g-txn,g-epochs") as agent:
        agent.until("all is archived", is_done)
        agent.process.send_signal(signal.SIGTERM)
        assert agent.ended()[0] == 0
    log = local_logs(logs)[TXN]
    assert named(assert_sound_archive(open_store(url), path_of(log))) == due_ranges(log)


def test_the_unit_runs_this_very_agent_and_waits_for_its_stop(run: Run, tmp_path: Path) -> None:
    config = tmp_path / "tiering.toml"
    config.write_text(f'log.dirs = ["/var/lib/kafka"]\narchive.url = "{tmp_path}/archive"\nagent.shutdown.timeout.ms = 90000\n')
    result = run("agent", "unit", "--config", config)
    assert result.exit_code == 0, result.stderr
    assert run("agent", "--config", config, "unit").stdout == result.stdout
    lines = result.stdout.splitlines()
    assert f"ExecStart={sys.executable} -m tiering agent --config {config}" in lines
    assert "TimeoutStopSec=105" in lines
    assert f"ReadWritePaths={tmp_path}/archive" in lines
    assert f"ReadWritePaths={tmp_path}" not in lines
    own = run("agent", "unit", "--override", f"log.dirs={tmp_path}", "--override", "own.log.dirs=true")
    assert f"ReadWritePaths={tmp_path}" in own.stdout.splitlines(), "an owner writes there"
    assert "$" not in result.stdout


def test_settings_are_given_in_front_of_the_command_or_behind_it_and_none_of_them_twice(run: Run) -> None:
    given, wait = (
        ("--override", "log.dirs=/l", "--override", "archive.url=s3://b/p"),
        ("--override", "agent.shutdown.timeout.ms=1000"),
    )
    for words in ((*given, *wait, "unit"), (*given, "unit", *wait), ("unit", *given, *wait)):
        assert "TimeoutStopSec=16" in run("agent", *words).stdout
    twice = run("agent", *given, *wait, "unit", *wait)
    assert (twice.exit_code, "keep one of the two" in twice.stderr) == (2, True)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not here")
def test_systemd_finds_nothing_wrong_with_the_unit(run: Run, tmp_path: Path) -> None:
    unit = tmp_path / "kafka-tiering-agent.service"
    unit.write_text(run("agent", "--override", "log.dirs=/l", "--override", "archive.url=s3://b/p", "unit").stdout)
    verified = subprocess.run(
        ["systemd-analyze", "verify", unit], capture_output=True, text=True, env=os.environ | {"LC_ALL": "C"}
    )
    assert [line for line in verified.stderr.splitlines() if unit.name in line and "Documentation" not in line] == []


def test_local_retention_beside_a_broker_is_refused_with_the_reason(run: Run, tmp_path: Path) -> None:
    given = command(tmp_path, tmp_path / "archive", tmp_path / "state", "local.retention.ms=5")[3:]
    refused = run(*given)
    assert refused.exit_code == 2
    assert "local.retention.ms: a broker's log directory is only read" in refused.stderr
    assert not (tmp_path / "archive").exists()


@pytest.mark.slow
def test_it_owns_a_log_directory_is_killed_and_stopped_and_the_next_one_goes_on(run: Run, logs: Path, tmp_path: Path) -> None:
    own, archive, state = Path(shutil.copytree(logs, tmp_path / "own")), tmp_path / "archive", tmp_path / "state"
    settings = ("own.log.dirs=true", "local.retention.ms=1", "log.retention.check.interval.ms=1000", "file.delete.delay.ms=0")
    tasks = ("agent.tasks=copy,expire", "log.initial.task.delay.ms=0", "topics.include=g-codec-none")

    def local_start(status: dict[str, Any]) -> dict[str, int]:
        rows = (status["local_tier"] or {}).get("partitions", ())
        return {f"{row['topic']}-{row['partition']}": row["local_log_start_offset"] for row in rows}

    with running(own, archive, state, *settings, *tasks) as agent:
        agent.until("something has left the disk", lambda s: local_start(s).get("g-codec-none-0", 0) > 0)
        held = run("log", "recover", str(own))
        assert (held.exit_code, "is using this log directory" in held.stderr) == (1, True)
        agent.process.kill()
        agent.process.wait()
    assert not (own / ".kafka_cleanshutdown").exists()
    with running(own, archive, state, *settings, *tasks) as agent:
        status = agent.until("all is archived", lambda s: local_start(s).get("g-codec-none-0", 0) == 2500)
        tier = status["local_tier"]
        assert (tier["state"], tier["was_clean"], tier["offline"], tier["missing"]) == ("running", False, [], [])
        agent.process.send_signal(signal.SIGTERM)
        assert agent.ended() == (0, "tiering: stopped\n")
    assert (own / ".kafka_cleanshutdown").exists()
    fetch = ("fetch", "--topic", "g-codec-none", "--partition", 0, "--offset", 0, "--output", "jsonl", "--log-dir")
    both, whole = run(*fetch, own, "--archive", archive), run(*fetch, logs)
    assert (both.exit_code, both.stdout) == (0, whole.stdout)
