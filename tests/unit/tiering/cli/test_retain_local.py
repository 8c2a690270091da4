"""`tiering expire --own-log-dir`: of a log directory of ours goes what the archive has, and nothing else."""

import os
from collections.abc import Callable
from importlib.metadata import EntryPoint
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from key_files import write_keys
from logs_to_archive import cut_finer, drop_segments_below, set_checkpoint
from offloaded import Rows, Run, flip

from local_log.engine.manager.retention import Aged, Breach, Retained
from tiering.local_tier import deletion_policies
from tiering.local_tier.topics_file import Topic, Topics, write_topics

LOCAL = ["-c", "retention.ms=-1", "-c", "g-codec-none:local.retention.ms=1"]
Fingerprint = Callable[[Path], dict[str, tuple[str, int]]]


@pytest.fixture
def ours(rolled: Path, tmp_path: Path) -> Path:
    """The golden logs as a directory that no broker has."""
    logs = copytree(rolled, tmp_path / "ours")
    (logs / "meta.properties").unlink(missing_ok=True)
    return logs


@pytest.fixture
def own(whole_archive: str, tmp_path: Path) -> str:
    return str(copytree(whole_archive, tmp_path / "own"))


def bases(logs: Path, partition: str) -> list[int]:
    return sorted(int(file.stem) for file in (logs / partition).glob("*.log"))


def local_rows(rows: Rows, *args: Any) -> list[dict[str, Any]]:
    return [row for row in rows("expire", *args) if row["action"].endswith("locally")]


def test_what_the_archive_has_goes_and_every_record_is_read_as_before(
    rows: Rows, own: str, ours: Path, fingerprint: Fingerprint
) -> None:
    args = ["--archive", own, "--own-log-dir", ours, *LOCAL]
    before, files = bases(ours, "g-codec-none-0"), fingerprint(ours)
    others = {name: bases(ours, name) for name in ("g-txn-0", "g-mixed-0")}
    fetch = ["fetch", "--archive", own, "--log-dir", ours, "--topic", "g-codec-none", "--partition", 0, "--offset", 0]
    read = rows(*fetch)
    assert len(read) > 1_000
    plan = local_rows(rows, *args, "--dry-run")
    assert fingerprint(ours) == files
    assert [(r["topic"], r["action"], r["start"], r["end"]) for r in plan] == [
        ("g-codec-none", "delete locally", before[0], before[-1])
    ]
    assert local_rows(rows, *args, "--yes") == plan
    assert bases(ours, "g-codec-none-0") == before[-1:]
    assert not [*(ours / "g-codec-none-0").glob("*.deleted")]
    assert {name: bases(ours, name) for name in others} == others
    assert rows(*fetch) == read
    assert [r["action"] for r in local_rows(rows, *args, "--yes")] == ["keep locally"]


def test_nothing_goes_on_the_strength_of_a_manifest_that_might_not_outlive_a_crash(
    run: Run, own: str, ours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has put it may not have synced its folder yet, and here that fails."""
    before, fsync = bases(ours, "g-codec-none-0"), os.fsync

    def failing_for_the_archive(descriptor: int) -> None:
        if os.readlink(f"/proc/self/fd/{descriptor}").startswith(f"{own}/g-"):
            raise OSError(5, "EIO")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing_for_the_archive)
    failed = run("expire", "--archive", own, "--own-log-dir", ours, *LOCAL, "--yes")
    assert failed.exit_code != 0
    assert "might not outlive a crash" in failed.stderr
    assert bases(ours, "g-codec-none-0") == before


def test_by_size_the_oldest_go_first(rows: Rows, own: str, ours: Path) -> None:
    before = bases(ours, "g-codec-none-0")
    size = sum(file.stat().st_size for file in (ours / "g-codec-none-0").glob("*.log"))
    first = (ours / "g-codec-none-0" / f"{before[0]:020d}.log").stat().st_size
    args = ["--archive", own, "--own-log-dir", ours, "-c", "retention.ms=-1"]
    settings = ["-c", f"g-codec-none:local.retention.bytes={size - first}"]
    plan = local_rows(rows, *args, *settings, "--dry-run")
    assert [(r["start"], r["end"], r["bytes"]) for r in plan] == [(before[0], before[1], first)]
    assert local_rows(rows, *args, *settings, "--yes") == plan
    assert bases(ours, "g-codec-none-0") == before[1:]


def policies(tmp_path: Path, *names: str) -> Path:
    config = tmp_path / "policies.toml"
    config.write_text(f"deletion.policies = {list(names)}\n")
    return config


def the_oldest(_retained: Retained) -> Breach[Aged] | None:
    goes = iter((True, *(False,) * 100))
    return lambda segment, following: next(goes)


POINT = EntryPoint("one", f"{__name__}:the_oldest", deletion_policies.GROUP)


def test_the_deletion_policies_of_the_configuration_say_what_goes(
    rows: Rows, run: Run, own: str, ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion_policies, "entry_points", lambda group: [POINT])
    before = bases(ours, "g-codec-none-0")
    args = ["--archive", own, "--own-log-dir", ours]
    by_size = ["--config", policies(tmp_path, "size"), *LOCAL]
    assert {r["action"] for r in local_rows(rows, *args, *by_size, "--yes")} == {"keep locally"}
    assert bases(ours, "g-codec-none-0") == before
    unknown = run("expire", *args, "--config", policies(tmp_path, "two"), *LOCAL, "--yes")
    assert (unknown.exit_code, "there is no policy two" in unknown.stderr) == (1, True)
    plug_in = ["--config", policies(tmp_path, "one"), "-c", "retention.ms=-1"]
    plan = {r["topic"]: r for r in local_rows(rows, *args, *plug_in, "--dry-run")}
    assert plan["g-codec-none"]["end"] == before[1], "also of topics without limits, as the agent does"
    assert local_rows(rows, *args, *plug_in, "--yes") == [*plan.values()]
    assert bases(ours, "g-codec-none-0") == before[1:]


@pytest.mark.parametrize("setting", [{"cleanup.policy": "compact"}, {"remote.storage.enable": "false"}])
def test_the_settings_of_a_topic_in_the_directory_count(
    rows: Rows, own: str, ours: Path, setting: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compacted topic is not tiered: its log would start at the first local segment, without what is before."""
    (ours / "tiering-topics.json").write_bytes(write_topics(Topics({"g-codec-none": Topic(None, (0,), setting)})))
    before = bases(ours, "g-codec-none-0")
    monkeypatch.setattr(deletion_policies, "entry_points", lambda group: [POINT])
    everything = ["--config", policies(tmp_path, "one", "time"), "-c", "retention.ms=-1", "-c", "local.retention.ms=1"]
    done = local_rows(rows, "--archive", own, "--own-log-dir", ours, *everything, "--yes")
    assert "delete locally" in {r["action"] for r in done}
    assert "g-codec-none" not in {r["topic"] for r in done}
    assert bases(ours, "g-codec-none-0") == before


def test_what_the_archive_does_not_have_stays(run: Run, rows: Rows, ours: Path, url: str) -> None:
    before = bases(ours, "g-codec-none-0")
    back = flip(ours / "g-codec-none-0" / f"{before[1]:020d}.log", 100)
    assert run("offload", "--log-dir", ours, "--archive", url, "--topic", "g-codec-none").exit_code == 6
    back()
    assert [r["end"] for r in local_rows(rows, "--archive", url, "--own-log-dir", ours, *LOCAL, "--yes")] == [before[1]]
    assert bases(ours, "g-codec-none-0") == before[1:]


def test_a_gap_that_ends_where_the_local_log_starts_keeps_nothing_there(run: Run, rows: Rows, ours: Path, url: str) -> None:
    cut_finer(ours / "g-codec-none-0", 6)
    before = bases(ours, "g-codec-none-0")
    offload = ("offload", "--log-dir", ours, "--archive", url, "--topic", "g-codec-none")
    flip(ours / "g-codec-none-0" / f"{before[1]:020d}.log", 100)
    assert run(*offload).exit_code == 6
    drop_segments_below(ours, "g-codec-none-0", before[2])
    assert run(*offload).exit_code == 3
    (done,) = local_rows(rows, "--archive", url, "--own-log-dir", ours, *LOCAL, "--yes")
    assert (done["action"], done["start"], done["end"]) == ("delete locally", before[2], before[-1])
    assert bases(ours, "g-codec-none-0")[0] == before[-1]


def test_of_an_encrypted_archive_a_part_is_compared_with_its_keys(
    run: Run, rows: Rows, ours: Path, url: str, tmp_path: Path
) -> None:
    """A directory that was taken over from another replica begins within an archived segment."""
    keys = ("--keys", write_keys(tmp_path / "keys.json", "k", k=bytes(range(32))))
    rows("offload", "--log-dir", ours, "--archive", url, "--topic", "g-codec-none", "--encrypt", *keys)
    cut_finer(ours / "g-codec-none-0", 6)
    before = bases(ours, "g-codec-none-0")
    drop_segments_below(ours, "g-codec-none-0", before[1])
    (done,) = local_rows(rows, "--archive", url, "--own-log-dir", ours, *keys, *LOCAL, "--yes")
    assert (done["action"], done["start"]) == ("delete locally", before[1])
    assert bases(ours, "g-codec-none-0") == [done["end"]], "the active segment goes, too"


def test_a_segment_that_the_archive_has_with_other_records_stays_with_all_after_it(run: Run, own: str, ours: Path) -> None:
    before = bases(ours, "g-codec-none-0")
    flip(ours / "g-codec-none-0" / f"{before[0]:020d}.log", 100)
    done = run("expire", "--archive", own, "--own-log-dir", ours, *LOCAL, "--yes")
    assert done.exit_code == 3
    assert "with other records, so that nothing of the log is deleted" in done.stderr
    assert bases(ours, "g-codec-none-0") == before


def test_a_log_of_another_history_than_the_archive_s_stays(run: Run, own: str, ours: Path) -> None:
    before = bases(ours, "g-codec-none-0")
    epochs = ours / "g-codec-none-0" / "leader-epoch-checkpoint"
    epochs.write_text(f"0\n2\n0 0\n7 {before[1]}\n")
    done = run("expire", "--archive", own, "--own-log-dir", ours, *LOCAL, "--yes")
    assert done.exit_code == 3
    assert "another history" in done.stderr
    assert bases(ours, "g-codec-none-0") == before


def test_a_log_that_was_cut_below_the_archive_s_end_and_goes_on_from_there_in_another_epoch_stays(
    run: Run, own: str, ours: Path
) -> None:
    """No record of that epoch is there yet: up to the log's end the two histories are one."""
    folder = ours / "g-codec-none-0"
    cut_finer(folder, 6)
    *left, end, _ = bases(ours, "g-codec-none-0")
    for file in folder.iterdir():
        if file.stem.isdigit() and int(file.stem) >= end:
            file.unlink()
    set_checkpoint(ours / "replication-offset-checkpoint", "g-codec-none-0", end)
    (folder / "leader-epoch-checkpoint").write_text(f"0\n2\n0 0\n7 {end}\n")
    done = run("expire", "--archive", own, "--own-log-dir", ours, *LOCAL, "--yes")
    assert done.exit_code == 3
    assert "the log diverged from the archive below" in done.stderr
    assert bases(ours, "g-codec-none-0") == left


def test_where_the_high_watermark_is_unknown_nothing_goes(rows: Rows, own: str, ours: Path) -> None:
    (ours / "replication-offset-checkpoint").unlink()
    before = bases(ours, "g-codec-none-0")
    args = ["--archive", own, "--own-log-dir", ours, *LOCAL]
    assert [r["action"] for r in local_rows(rows, *args, "--yes")] == ["keep locally"]
    assert bases(ours, "g-codec-none-0") == before


def test_a_broker_s_directory_is_never_touched(run: Run, own: str, ours: Path, fingerprint: Fingerprint) -> None:
    (ours / "meta.properties").write_text("version=1\nnode.id=1\n")
    before = fingerprint(ours)
    refused = run("expire", "--archive", own, "--own-log-dir", ours, *LOCAL, "--yes")
    assert refused.exit_code == 1
    assert "is a broker's log directory" in refused.stderr
    assert fingerprint(ours) == before


def test_a_compacted_topic_has_no_local_retention(run: Run, own: str, ours: Path) -> None:
    done = run(
        "expire", "--archive", own, "--own-log-dir", ours, *LOCAL, "-c", "g-codec-none:cleanup.policy=compact", "--yes"
    )  # fmt: skip
    assert done.exit_code == 3
    assert "compact" in done.stderr


def test_local_limits_for_a_broker_s_directory_are_refused(run: Run, own: str, ours: Path) -> None:
    refused = run("expire", "--archive", own, "--log-dir", ours, *LOCAL, "--yes")
    assert (refused.exit_code, "would do nothing: only a broker deletes from its log directory" in refused.stderr) == (2, True)
