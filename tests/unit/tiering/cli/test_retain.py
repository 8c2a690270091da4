"""`tiering expire`, `delete-topic` and `sweep` on the golden logs: plans, what they do, and what they refuse."""

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from golden_logs import partitions
from logs_to_archive import set_checkpoint
from offloaded import Row, Rows, Run, contents, keys, manifests

from remote.clock import SystemClock
from remote.keys import PartitionPath
from remote.manifest.model import Manifest
from remote.store import store_time
from remote.store.open import open_store
from tiering.cli import expire as expire_verb
from tiering.cli import sweep as sweep_verb

STORES = ["folder", "s3"]
DAY_MS = 24 * 3_600_000
NEVER = "cleanup.policy=compact"
Fingerprint = Callable[[Path], dict[str, tuple[str, int]]]


@pytest.fixture
def own(whole_archive: str, tmp_path: Path) -> str:
    """An archive of all golden logs that a test may change."""
    return str(copytree(whole_archive, tmp_path / "own"))


@pytest.fixture(params=STORES)
def any_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty place for an archive on each kind of store."""
    return f"s3://{request.getfixturevalue('s3_bucket')}/some/prefix" if request.param == "s3" else str(tmp_path / "archive")


def newest(url: str, name: str) -> Manifest:
    return manifests(open_store(url))[name]


def without_age(rows: list[Row]) -> list[Row]:
    return [{k: v for k, v in row.items() if k != "age_ms"} for row in rows]


def aged(url: str, seconds: int) -> None:
    """As if everything had been there for so long."""
    for path in Path(url).rglob("*"):
        found = path.stat()
        os.utime(path, (found.st_atime - seconds, found.st_mtime - seconds))


class Jumped(SystemClock):
    """A machine's clock that is an hour ahead."""

    def now_ms(self) -> int:
        return super().now_ms() + 3_600_000


# retain


def test_the_former_name_does_the_same_and_only_its_help_tells_of_the_new_one(own: str, run: Run) -> None:
    words = ["--archive", own, "-c", "retention.ms=1", "--dry-run"]
    now, before = run("expire", *words), run("retain", *words)
    assert (before.exit_code, before.stdout, before.stderr) == (now.exit_code, now.stdout, now.stderr)
    assert "Deprecated: use `tiering expire`." in run("retain", "--help").stdout
    assert "retain " not in run("--help").stdout
    assert run("man", "retain").stdout.startswith("NAME\n    tiering retain - Deprecated")


def test_a_dry_run_prints_the_plan_that_then_runs(run: Run, rows: Rows, own: str, fingerprint: Fingerprint) -> None:
    before = fingerprint(Path(own))
    args = ["expire", "--archive", own, "-c", "retention.ms=1", "-c", f"g-mixed:{NEVER}", "-c", f"g-compacted*:{NEVER}"]
    plan = rows(*args, "--dry-run")
    assert fingerprint(Path(own)) == before
    assert rows(*args, "--yes") == plan
    by_topic = {row["topic"]: row for row in plan}
    assert by_topic["g-mixed"]["action"] == "keep"
    expired = {row["topic"]: row for row in plan if row["action"] == "expire"}
    assert {row["reason"] for row in expired.values()} == {"retention.ms"}
    for topic in expired:
        m = newest(own, f"{topic}-0")
        assert m.log_start_offset == expired[topic]["end"] == m.end_offset
        assert m.segment_count == 0
        assert len(m.deleting) == expired[topic]["segments"]
    again = rows(*args, "--dry-run")
    assert {row["action"] for row in again} == {"wait", "keep"}


def test_a_compacted_topic_is_refused_by_name_where_nobody_says_what_it_is(run: Run, own: str) -> None:
    done = run("expire", "--archive", own, "-c", "retention.ms=1", "--yes", "--output", "jsonl")
    assert done.exit_code == 3
    of = {row["topic"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert {topic for topic, row in of.items() if row["action"] == "refused"} == {"g-compacted", "g-compacted-txn"}
    assert "-c g-compacted:retention.ms=…" in of["g-compacted"]["reason"]
    assert of["g-mixed"]["action"] == "expire"
    m = newest(own, "g-compacted-0")
    assert (m.log_start_offset, m.deleting) == (0, ())


def test_objects_go_by_a_later_run_on_every_store(run: Run, rows: Rows, rolled: Path, any_url: str) -> None:
    rows("offload", "--log-dir", rolled, "--archive", any_url, "--topic", "g-txn", "--topic", "g-tiny")
    settings = ["-c", "retention.ms=1", "-c", "file.delete.delay.ms=0", "--topic", "g-txn", "--yes"]
    assert {row["action"] for row in rows("expire", "--archive", any_url, *settings)} == {"expire"}
    assert [key for key in keys(open_store(any_url)) if "g-txn/" in key and "/segments/" in key]
    assert {row["action"] for row in rows("expire", "--archive", any_url, *settings)} == {"delete"}
    left = keys(open_store(any_url))
    assert not [key for key in left if "g-txn/" in key and "/segments/" in key]
    assert [key for key in left if "g-tiny/" in key and "/segments/" in key]
    assert not [key for key in left if key.startswith("probe-")]
    assert {row["action"] for row in rows("expire", "--archive", any_url, *settings)} == {"keep"}


def test_what_is_kept_is_read_as_before_and_what_is_not_is_out_of_range(run: Run, rows: Rows, own: str) -> None:
    m = newest(own, "g-codec-none-0")
    at = m.entries[1].base_offset
    start = ["--topic", "g-codec-none", "--partition", 0, "--log-start-offset", at]
    (row,) = rows("expire", "--archive", own, *start, "--yes")
    assert (row["action"], row["start"], row["end"]) == ("expire", m.log_start_offset, at)
    fetch = ["fetch", "--archive", own, "--topic", "g-codec-none", "--partition", 0]
    read = [r["offset"] for r in rows(*fetch, "--offset", at)]
    assert read == [*range(at, m.end_offset)]
    assert run(*fetch, "--offset", at - 1).exit_code == 4
    refused = run("expire", "--archive", own, *start[:-1], m.end_offset + 1, "--yes")
    assert refused.exit_code == 4
    assert "ask for one inside" in refused.stderr


def test_retention_by_size_counts_both_tiers_and_needs_to_know_the_local_one(
    run: Run, rows: Rows, own: str, rolled: Path, shed: Path
) -> None:
    m = newest(own, "g-codec-none-0")
    size = sum(file.stat().st_size for file in (rolled / "g-codec-none-0").glob("*.log"))
    assert m.log_bytes == size
    args = ["expire", "--archive", own, "--topic", "g-codec-none", "--yes"]
    refused = run(*args, "-c", "retention.bytes=0")
    assert refused.exit_code == 1
    assert "--archive-alone" in refused.stderr
    assert newest(own, "g-codec-none-0") == m
    kept = size - m.entries[0].log_size
    assert [r["action"] for r in rows(*args, "-c", f"retention.bytes={kept + 1}", "--log-dir", rolled)] == ["keep"]
    assert [r["end"] for r in rows(*args, "-c", f"retention.bytes={kept}", "--log-dir", rolled)] == [m.entries[1].base_offset]
    alone = rows(*args, "-c", f"retention.bytes={kept - m.entries[1].log_size}", "--archive-alone")
    assert alone[0]["reason"] == "retention.bytes"


def test_a_partition_whose_local_log_is_not_there_is_refused_by_size_and_the_others_are_not(
    run: Run, own: str, rolled: Path, tmp_path: Path
) -> None:
    logs = copytree(rolled, tmp_path / "logs")
    for file in (logs / "g-txn-0").iterdir():
        file.unlink()
    (logs / "g-txn-0").rmdir()
    before = newest(own, "g-txn-0")
    done = run("expire", "--archive", own, "--log-dir", logs, "-c", "retention.bytes=0", "--yes", "--output", "jsonl")
    assert done.exit_code == 3
    assert "what lies above the archive's end is unknown" in done.stderr
    assert newest(own, "g-txn-0") == before
    assert newest(own, "g-codec-none-0").segment_count == 0


def test_a_manifest_that_cannot_be_read_is_told_and_nothing_of_it_goes(run: Run, own: str) -> None:
    file = min((Path(own) / "g-txn").rglob("*.json"))
    file.chmod(0o644)
    file.write_bytes(b"{")
    before = {k: v for k, v in contents(open_store(own)).items() if k.startswith("g-txn/")}
    for args in (["expire", "-c", "retention.ms=1"], ["sweep", "--grace-ms", 0]):
        done = run(*args, "--archive", own, "--yes")
        assert done.exit_code == 6
        assert file.name in done.stderr
    deleted = run("delete-topic", "--archive", own, "--topic", "g-txn", "--yes")
    assert deleted.exit_code == 6
    assert {k: v for k, v in contents(open_store(own)).items() if k.startswith("g-txn/")} == before
    assert newest_of_others(own)


def newest_of_others(url: str) -> list[str]:
    return [key for key in keys(open_store(url)) if "/manifest/" in key and not key.startswith("g-txn/")]


@pytest.mark.parametrize(
    ("args", "word"),
    [
        ([], "retention.ms"),
        (["-c", "retention.mz=5"], "did you mean retention.ms?"),
        (["-c", "retention.ms"], "name=value"),
        (["-c", "retention.ms=soon"], "whole number"),
        (["-c", "segment.bytes=1048576"], "no such setting of retention"),
        (["-c", ":retention.ms=5"], "name=value"),
        (["--log-start-offset", 5], "--partition"),
        (["-c", "retention.ms=1", "--follow-log-start-offset"], "--log-dir"),
        (["-c", "retention.bytes=1", "--archive-alone", "--log-dir", "x"], "--archive-alone"),
    ],
)
def test_settings_that_say_nothing_or_nonsense_are_usage_errors(run: Run, own: str, args: list[Any], word: str) -> None:
    before = contents(open_store(own))
    refused = run("expire", "--archive", own, *args, "--yes")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert word in refused.stderr
    assert contents(open_store(own)) == before


def test_a_topic_that_no_setting_speaks_of_is_refused_and_left_alone(run: Run, own: str) -> None:
    before = newest(own, "g-txn-0")
    done = run("expire", "--archive", own, "-c", "g-codec*:retention.ms=1", "--yes")
    assert done.exit_code == 3
    assert "g-txn: its retention in the archive is not set" in done.stderr
    assert newest(own, "g-txn-0") == before
    assert newest(own, "g-codec-lz4-0").segment_count == 0


def test_the_local_log_s_start_is_followed_only_when_asked(run: Run, rows: Rows, own: str, rolled: Path, tmp_path: Path) -> None:
    logs = copytree(rolled, tmp_path / "logs")
    m = newest(own, "g-codec-none-0")
    at = m.entries[1].base_offset + 3
    set_checkpoint(logs / "log-start-offset-checkpoint", "g-codec-none-0", at)
    args = ["expire", "--archive", own, "--log-dir", logs, "--topic", "g-codec-none"]
    assert [row["action"] for row in rows(*args, "-c", "retention.ms=-1", "--dry-run")] == ["keep"]
    (row,) = rows(*args, "--follow-log-start-offset", "--yes")
    assert (row["action"], row["segments"], row["reason"]) == ("expire", 1, "below the log start offset")
    assert newest(own, "g-codec-none-0").log_start_offset == at


@pytest.mark.parametrize(
    "args", [["expire", "-c", "retention.ms=1"], ["sweep"], ["delete-topic", "--topic", "g-txn"]], ids=lambda args: args[0]
)
def test_without_a_yes_and_without_a_terminal_nothing_is_destroyed(run: Run, own: str, args: list[str]) -> None:
    aged(own, 100_000)
    before = contents(open_store(own))
    refused = run(*args, "--archive", own)
    assert refused.exit_code == 2
    assert "--yes" in refused.stderr
    assert contents(open_store(own)) == before


def test_a_machine_whose_clock_is_an_hour_off_retains_nothing_away(run: Run, own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expire_verb, "CLOCK", Jumped())
    before = contents(open_store(own))
    refused = run("expire", "--archive", own, "-c", "retention.ms=1", "--yes")
    assert refused.exit_code == 1
    assert "3600 s apart" in refused.stderr
    assert contents(open_store(own)) == before


# delete-topic


def test_a_deleted_topic_is_gone_for_readers_refused_to_offloads_and_its_objects_go(
    run: Run, rows: Rows, own: str, rolled: Path
) -> None:
    args = ["delete-topic", "--archive", own, "--topic", "g-txn", "--delay-ms", 0]
    m = newest(own, "g-txn-0")
    plan = rows(*args, "--dry-run")
    assert [(r["action"], r["segments"], r["end"]) for r in plan] == [("expire", m.segment_count, m.end_offset)]
    assert newest(own, "g-txn-0") == m
    assert rows(*args, "--yes") == plan
    for verb in (["fetch", "--partition", 0, "--offset", 0], ["offsets"], ["describe"]):
        topic = ["g-txn"] if verb[0] == "describe" else ["--topic", "g-txn"]
        assert run(*verb, "--archive", own, *topic).exit_code == 4
    assert "g-txn" not in {row["topic"] for row in rows("describe", "--archive", own)}
    late = run("offload", "--log-dir", rolled, "--archive", own, "--topic", "g-txn")
    assert late.exit_code == 1
    assert "was deleted from the archive" in late.stderr
    assert [r["action"] for r in rows(*args, "--yes")] == ["delete"]
    assert not [key for key in keys(open_store(own)) if key.startswith("g-txn/") and "/segments/" in key]
    assert run("delete-topic", "--archive", own, "--topic", "nowhere", "--yes").exit_code == 4


def test_a_deletion_tells_the_command_that_deletes_the_objects_and_it_spares_a_topic_made_anew(
    run: Run, rows: Rows, own: str, rolled: Path, tmp_path: Path
) -> None:
    logs = copytree(rolled, tmp_path / "logs")
    args = ["delete-topic", "--archive", own, "--topic", "g-txn", "--delay-ms", 0, "--yes"]
    former, other = newest(own, "g-txn-0").topic_id, "B" * 22
    told = run(*args)
    metadata = logs / "g-txn-0" / "partition.metadata"
    metadata.write_text(metadata.read_text().replace(former, other))
    assert run("offload", "--log-dir", logs, "--archive", own, "--topic", "g-txn").exit_code == 0
    refused = run(*args)
    assert refused.exit_code == 1
    assert f"{other}, {former} (deleted)" in refused.stderr
    again = shlex.split(told.stderr.partition("delete the objects of topic g-txn: tiering ")[2])
    assert again == [*map(str, args[:5]), "--topic-id", former, "--delay-ms", "0", "--yes"]
    done = run(*again)
    assert (done.exit_code, done.stderr) == (0, "")
    of = [key for key in keys(open_store(own)) if key.startswith("g-txn/") and "/segments/" in key]
    assert {key.split("/")[1] for key in of} == {other}
    assert rows("fetch", "--archive", own, "--topic", "g-txn", "--partition", 0, "--offset", 0)


def test_a_partition_that_comes_late_of_a_deleted_topic_is_refused_too(
    run: Run, rows: Rows, own: str, rolled: Path, tmp_path: Path
) -> None:
    logs = copytree(rolled, tmp_path / "logs")
    copytree(logs / "g-txn-0", logs / "g-txn-1")
    set_checkpoint(logs / "replication-offset-checkpoint", "g-txn-1", newest(own, "g-txn-0").end_offset)
    rows("delete-topic", "--archive", own, "--topic", "g-txn", "--yes")
    late = run("offload", "--log-dir", logs, "--archive", own, "--topic", "g-txn")
    assert late.exit_code == 1
    assert late.stderr.count("was deleted from the archive") == 2
    assert not [key for key in keys(open_store(own)) if key.startswith("g-txn/") and "/1/" in key]


# sweep


def test_the_sweep_takes_what_failed_copies_left_and_old_versions_and_nothing_that_is_read(
    run: Run, rows: Rows, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(own)
    m = newest(own, "g-txn-0")
    orphan = PartitionPath("g-txn", m.topic_id, 0).segment(m.entries[0].log_name.replace(m.entries[0].segment_id, "a" * 32))
    for key in (orphan, "probe-left"):
        store.put_if_absent(key, b"left behind")
    aged(own, 3_600)
    args = ["sweep", "--archive", own, "--grace-ms", 1_800_000]
    before = {name: m.entries for name, m in manifests(store).items()}
    plan = rows(*args, "--dry-run")
    assert {row["key"] for row in plan if row["what"] != "manifest"} == {orphan, "probe-left"}
    monkeypatch.setattr(sweep_verb, "CLOCK", Jumped())
    assert without_age(rows(*args, "--yes")) == without_age(plan)
    assert {name: m.entries for name, m in manifests(store).items()} == before
    assert {"/manifest/" in key for key in keys(store)} == {True, False}
    assert rows(*args, "--yes") == []
    assert [r["offset"] for r in rows("fetch", "--archive", own, "--topic", "g-txn", "--partition", 0, "--offset", 0)]


def test_an_hour_s_difference_of_clocks_changes_nothing_that_is_swept(
    run: Run, rows: Rows, own: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_store(own)
    m = newest(own, "g-txn-0")
    young = PartitionPath("g-txn", m.topic_id, 0).segment(m.entries[0].log_name.replace(m.entries[0].segment_id, "a" * 32))
    store.put_if_absent(young, b"an offload is under way")
    before = contents(store)
    args = ["sweep", "--archive", own, "--grace-ms", 1_800_000, "--yes"]
    monkeypatch.setattr(sweep_verb, "CLOCK", Jumped())
    assert rows(*args) == []
    assert contents(store) == before
    monkeypatch.setattr(store_time, "store_now_ms", lambda store, ids: Jumped().now_ms())  # a sweep by the machine's clock
    assert young in {row["key"] for row in rows(*args)}


def test_what_only_one_topic_has_is_swept_alone(run: Run, rows: Rows, own: str) -> None:
    store = open_store(own)
    store.put_if_absent("probe-left", b"")
    aged(own, 3_600)
    swept = rows("sweep", "--archive", own, "--grace-ms", 1, "--topic", "g-txn", "--yes")
    assert swept
    assert {row["key"].split("/")[0] for row in swept} == {"g-txn"}
    assert {name.removesuffix("-0") for name in partitions()} >= {"g-txn"}
    assert run("sweep", "--archive", own, "--topic", "nowhere", "--yes").exit_code == 4
