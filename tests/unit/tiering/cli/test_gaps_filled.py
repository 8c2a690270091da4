"""`tiering offload` of directories that have what the archive lacks: which of them fill a gap, and what is said of the others."""

import json
from pathlib import Path

import pytest
from gap_filled import EPOCHS, cut_at, removed_disk, whole_log
from logs_to_archive import local_logs
from offloaded import Rows, Run, manifests

from local_log.formats.filenames import LEADER_EPOCH_CHECKPOINT
from remote.store.open import open_store
from tiering.command.exit_codes import Exit


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    return whole_log(tmp_path / "whole")


@pytest.fixture
def removed(whole: Path, tmp_path: Path, run: Run, url: str) -> Path:
    """The removed disk, once the archive has a gap."""
    codes = list[int]()
    disk = removed_disk(
        whole, tmp_path, lambda folder: codes.append(run("offload", "--log-dir", folder, "--archive", url).exit_code)
    )
    assert codes == [0, Exit.partly]  # what was lost is told
    return disk


def gaps(url: str) -> list[tuple[int, int]]:
    return [(gap.start, gap.end) for gap in manifests(open_store(url))[EPOCHS].gaps]


def test_a_disk_that_ends_in_a_gap_is_refused_and_the_option_named_that_has_it_copied(run: Run, removed: Path, url: str) -> None:
    ((start, end),) = gaps(url)
    result = run("offload", "--log-dir", removed, "--archive", url, "--output", "jsonl")
    assert result.exit_code == 5
    refused = [row for row in map(json.loads, result.stdout.splitlines()) if row["action"] == "refused"]
    assert len(refused) == 1
    assert f"the archive has a gap [{start}, " in refused[0]["reason"]
    assert "--assume-clean-elections" in result.stderr
    assert gaps(url) == [(start, end)]
    removed_end = local_logs(removed)[EPOCHS].log_end_offset
    assert run("offload", "--log-dir", removed, "--archive", url, "--assume-clean-elections").exit_code == 0
    assert gaps(url) == [(removed_end, end)]


def test_a_disk_that_ends_in_a_gap_is_refused_also_if_it_has_lost_its_leader_epochs(
    run: Run, removed: Path, whole: Path, url: str
) -> None:
    """It has no epoch in the gap but the one before it; of a replica that goes on behind the gap, such a part is copied."""
    ((start, end),) = gaps(url)
    cut_at(removed, start + 1)
    assert start < local_logs(removed)[EPOCHS].log_end_offset < 700
    for folder in (removed, whole):
        (folder / EPOCHS / LEADER_EPOCH_CHECKPOINT).unlink()
    assert run("offload", "--log-dir", removed, "--archive", url).exit_code == 5
    assert gaps(url) == [(start, end)]
    run("offload", "--log-dir", whole, "--archive", url)
    assert start < gaps(url)[0][0] < 700 < end


def test_a_replica_that_goes_on_as_the_archive_does_fills_a_gap(rows: Rows, removed: Path, whole: Path, url: str) -> None:
    rows("offload", "--log-dir", whole, "--archive", url)
    assert gaps(url) == []
    known = local_logs(whole)[EPOCHS].leader_epochs
    assert manifests(open_store(url))[EPOCHS].leader_epochs == known
