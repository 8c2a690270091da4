"""`tiering status`, with an agent and without."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents_at_work import command, running
from click.testing import Result
from logs_to_archive import finer_logs, local_logs
from one_offload import TXN, due_ranges

from tiering.agent.configured import memory_file
from tiering.agent.memory import Memory
from tiering.agent.view import Scrub
from tiering.config.load import load_config
from tiering.machine import local_disk

Run = Callable[..., Result]


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    return finer_logs(tmp_path / "logs") if (tmp_path / "logs").mkdir() is None else tmp_path


def given(logs: Path, tmp_path: Path, *more: str) -> list[str]:
    return ["status", *command(logs, tmp_path / "archive", tmp_path / "state", *more)[4:]]


def found(run: Run, *args: str, code: int = 0) -> dict[str, Any]:
    result = run(*args, "--output", "json")
    assert result.exit_code == code, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def row_of(answer: dict[str, Any], partition: str) -> dict[str, Any]:
    return next(row for row in answer["partitions"] if f"{row['topic']}-{row['partition']}" == partition)


def test_without_an_agent_and_an_archive_all_that_is_inactive_lags(run: Run, logs: Path, tmp_path: Path) -> None:
    answer = found(run, *given(logs, tmp_path))
    assert "archive: no archive there" in run(*given(logs, tmp_path)).stderr, "as where a folder is not mounted"
    assert (answer["state"], answer["address"], answer["last_scrub"], answer["last_error"]) == ("no agent", None, None, None)
    log = local_logs(logs)[TXN]
    row = row_of(answer, TXN)
    assert row["lag_segments"] == len(log.segments) - 1
    assert row["lag_bytes"] == sum(s.size() for s in log.segments[:-1])
    assert row["lag_ms"] > 0
    assert row["archived_up_to"] is None
    assert not (tmp_path / "archive").exists()


@pytest.mark.slow
def test_what_an_offload_has_archived_lags_no_more(run: Run, logs: Path, tmp_path: Path) -> None:
    assert run("offload", "--log-dir", logs, "--archive", tmp_path / "archive").exit_code == 0
    answer = found(run, *given(logs, tmp_path))
    log = local_logs(logs)[TXN]
    row = row_of(answer, TXN)
    assert row["lag_segments"] == row["waiting_segments"] == len(log.segments) - 1 - len(due_ranges(log))
    assert row["archived_segments"] == len(due_ranges(log))
    assert row["archived_up_to"] == due_ranges(log)[-1][1]


@pytest.mark.slow
def test_of_a_running_agent_its_own_word_is_told(run: Run, logs: Path, tmp_path: Path) -> None:
    with running(logs, tmp_path / "archive", tmp_path / "state", "agent.tasks=copy,sweep,scrub") as agent:
        agent.until("it has scrubbed", lambda s: s["last_scrub"] and s["last_sweep_ms"])
        answer = found(run, *given(logs, tmp_path))
        assert (answer["state"], answer["address"]) == ("running", agent.address)
        table = run(*given(logs, tmp_path))
        assert table.exit_code == 0
        assert f"agent        running at {agent.address}, since 20" in table.stdout
        assert "topics, no anomaly" in table.stdout
        assert "last error   none" in table.stdout
    after = found(run, *given(logs, tmp_path))
    assert after["state"] == "no agent"
    assert after["last_scrub"] == answer["last_scrub"], "the agent has left it"


@pytest.mark.slow
def test_an_agent_that_does_not_answer_is_said_to_be_there(run: Run, logs: Path, tmp_path: Path) -> None:
    with running(logs, tmp_path / "archive", tmp_path / "state"):
        answer = found(run, *given(logs, tmp_path, f"agent.state.dir={tmp_path}/elsewhere"))
        assert (answer["state"], answer["address"]) == ("does not answer", None)
        assert len(answer["partitions"]) == len(local_logs(logs))


def test_a_partition_that_cannot_be_read_is_told_with_its_error_and_the_exit_code(run: Run, logs: Path, tmp_path: Path) -> None:
    (logs / TXN / "partition.metadata").write_text("what is this\n")
    answer = found(run, *given(logs, tmp_path), code=3)
    row = row_of(answer, TXN)
    assert "partition.metadata" in row["error"]
    assert answer["last_error"]["message"] == row["error"]
    assert row_of(answer, "g-epochs-0")["error_ms"] is None


def test_a_log_directory_whose_id_is_damaged_is_told_with_its_partitions(run: Run, logs: Path, tmp_path: Path) -> None:
    (logs / "meta.properties").write_text("directory.id=cu")
    answer = found(run, *given(logs, tmp_path), code=3)
    assert "meta.properties at byte 15: expected a line's end" in row_of(answer, TXN)["error"]
    assert row_of(answer, TXN)["lag_segments"] > 0, "what is known besides"
    assert len(answer["partitions"]) == len(local_logs(logs))


@pytest.mark.slow
def test_offsets_that_are_lost_are_told_before_an_offload_records_them_and_after(run: Run, logs: Path, tmp_path: Path) -> None:
    offload = ("offload", "--log-dir", logs, "--archive", tmp_path / "archive")
    segments = local_logs(logs)[TXN].segments
    later = [file for one in segments[3:] for file in (logs / TXN).glob(f"{one.base_offset:020}.*")]
    (tmp_path / "kept").mkdir()
    for file in later:
        file.rename(tmp_path / "kept" / file.name)
    assert run(*offload).exit_code == 0
    for file in (tmp_path / "kept").iterdir():
        if int(file.name.partition(".")[0]) > segments[4].base_offset:
            file.rename(logs / TXN / file.name)
    for one in segments[:3]:
        for file in (logs / TXN).glob(f"{one.base_offset:020}.*"):
            file.unlink()
    lost = segments[5].base_offset - segments[2].base_offset
    before = found(run, *given(logs, tmp_path), code=3)
    assert "are lost: they had left the local log" in row_of(before, TXN)["error"]
    assert (before["lost_offsets"], row_of(before, TXN)["lost_offsets"]) == (lost, lost)
    assert run(*offload).exit_code == 3
    after = run(*given(logs, tmp_path))
    assert after.exit_code == 3
    assert f"lost         {lost} offsets, known since " in after.stdout
    names, first = (line.split() for line in after.stdout.splitlines() if line.startswith(("topic", "g-txn")))
    assert dict(zip(names, first, strict=False))["lost_offsets"] == str(lost)
    assert run("manifest", "acknowledge", "--archive", tmp_path / "archive", "--topic", "g-txn", "--yes").exit_code == 0
    assert run(*given(logs, tmp_path)).exit_code == 0


def test_segments_that_the_last_scrub_could_not_read_are_told_with_the_first_reason(run: Run, logs: Path, tmp_path: Path) -> None:
    args = given(logs, tmp_path)
    file = memory_file(load_config(None, {}, local_disk(), tuple(args[2::2])), {})
    file.save(Memory(scrub=Scrub(1, 2, 3, unreadable=("a.log: key '2024' is needed", "b.log: key '2024' is needed"))))
    told = run(*args).stdout
    assert "3 topics, no anomaly; 2 segments unreadable, the first a.log: key '2024' is needed" in told
    assert found(run, *args)["last_scrub"]["unreadable"] == [f"{name}.log: key '2024' is needed" for name in "ab"]


def test_lines_are_a_partition_each_the_longest_lag_first(run: Run, logs: Path, tmp_path: Path) -> None:
    result = run(*given(logs, tmp_path), "--output", "jsonl")
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(rows) == len(local_logs(logs))
    assert [row["lag_ms"] for row in rows] == sorted((row["lag_ms"] for row in rows), reverse=True)


def test_without_a_log_directory_or_an_archive_it_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    assert run("status").exit_code == 2
    assert run("status", "--override", f"log.dirs={tmp_path}").exit_code == 2
