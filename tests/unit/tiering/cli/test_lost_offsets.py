"""Offsets that left the log before they were archived: told by offload, scrub, status and manifest, until acknowledged."""

import json
import re
from pathlib import Path

import pytest
from golden_logs import broker_logs
from logs_to_archive import drop_segments_below, set_checkpoint
from offloaded import Rows, Run, contents

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT
from remote.store.open import open_store

TXN, TINY = "g-txn-0", "g-tiny-0"


@pytest.fixture
def deleted_below(run: Run, url: str, tmp_path: Path) -> Path:
    """A log directory of whose g-txn-0 the archive has [0, 102), and whose broker has deleted everything below 2683 since."""
    folder = broker_logs(tmp_path / "logs", TXN)
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, TXN, 110)
    assert run("offload", "--log-dir", folder, "--archive", url).exit_code == 0
    drop_segments_below(folder, TXN, 2_683)
    return folder


def lost(rows: list[dict[str, object]]) -> list[tuple[object, object, object]]:
    return [(row["topic"], row["segment"], row["bytes"]) for row in rows if row["action"] == "lost"]


def offloaded(run: Run, folder: Path, url: str, *more: str) -> tuple[int, list[dict[str, object]], str]:
    result = run("offload", "--log-dir", folder, "--archive", url, "--output", "json", *more)
    return result.exit_code, json.loads(result.stdout), result.stderr


def test_the_run_that_finds_a_loss_says_so_and_exits_3_and_the_next_does_not(run: Run, deleted_below: Path, url: str) -> None:
    before = contents(open_store(url))
    code, rows, said = offloaded(run, deleted_below, url, "--dry-run")
    assert (code, lost(rows)) == (3, [("g-txn", 102, None)])
    assert contents(open_store(url)) == before
    code, rows, said = offloaded(run, deleted_below, url)
    assert (code, lost(rows)) == (3, [("g-txn", 102, None)])
    assert "g-txn-0: offsets [102, 2683) are lost" in said
    code, rows, said = offloaded(run, deleted_below, url)
    assert (code, lost(rows), said) == (0, [], "")


def test_a_loss_is_a_finding_until_somebody_acknowledges_it(run: Run, rows: Rows, deleted_below: Path, url: str) -> None:
    offloaded(run, deleted_below, url)
    scrubbed = run("scrub", "--archive", url, "--output", "json")
    assert scrubbed.exit_code == 6
    found = json.loads(scrubbed.stdout)
    assert [row["kind"] for row in found] == ["lost"]
    assert "[102, 2683) are lost, known since 20" in found[0]["problem"]
    assert "tiering manifest acknowledge --topic g-txn --partition 0" in found[0]["problem"]

    of_topic = ("--archive", url, "--topic", "g-txn")
    described = run("describe", *of_topic, "--log-dir", deleted_below).stdout
    assert re.search(r"gap     \[102, 2683\): lost, known since 20\S+: they had left the local log", described)
    assert re.search(r"  archive #+!+\n", described)
    before = contents(open_store(url))
    planned = rows("manifest", "acknowledge", *of_topic, "--dry-run")
    assert [(row["partition"], row["start"], row["end"]) for row in planned] == [(0, 102, 2_683)]
    assert contents(open_store(url)) == before
    assert rows("manifest", "acknowledge", *of_topic, "--partition", "0", "--who", "jo", "--yes") == planned
    assert run("scrub", "--archive", url).exit_code == 0
    (shown,) = rows("manifest", "show", *of_topic)
    (loss,) = shown["losses"]
    assert (loss["start"], loss["end"], loss["acknowledged_by"], shown["lost_offsets"]) == (102, 2_683, "jo", 0)
    again = run("manifest", "acknowledge", *of_topic, "--yes")
    assert (again.exit_code, again.stdout) == (0, "")
    assert "nothing of g-txn is lost that is not acknowledged" in again.stderr


def test_what_is_lost_after_that_is_another_finding(run: Run, rows: Rows, deleted_below: Path, url: str) -> None:
    offloaded(run, deleted_below, url)
    rows("manifest", "acknowledge", "--archive", url, "--topic", "g-txn", "--yes")
    drop_segments_below(deleted_below, TXN, 2_744)
    code, found, _ = offloaded(run, deleted_below, url)
    assert (code, lost(found)) == (3, [("g-txn", 2_683, None)])
    scrubbed = json.loads(run("scrub", "--archive", url, "--output", "json").stdout)
    (finding,) = (row for row in scrubbed if row["kind"] == "lost")
    assert "[2683, 2744)" in finding["problem"]


def test_of_a_topic_that_never_rolled_the_records_that_are_deleted_are_lost(
    run: Run, rows: Rows, url: str, tmp_path: Path
) -> None:
    folder = broker_logs(tmp_path / "logs", TINY)
    assert offloaded(run, folder, url)[0] == 0
    assert rows("describe", "--archive", url) == []  # nothing of it is archived
    set_checkpoint(folder / LOG_START_OFFSET_CHECKPOINT, TINY, 3)
    code, found, said = offloaded(run, folder, url)
    assert (code, lost(found)) == (3, [("g-tiny", 0, None)])
    assert "offsets [0, 3) are lost" in said
    assert run("scrub", "--archive", url).exit_code == 6
    assert run("manifest", "acknowledge", "--archive", url, "--topic", "g-tiny", "--yes").exit_code == 0
    assert run("scrub", "--archive", url).exit_code == 0


def test_a_topic_that_is_left_alone_is_not_remembered(run: Run, url: str, tmp_path: Path) -> None:
    folder = broker_logs(tmp_path / "logs", TINY)
    config = tmp_path / "tiering.toml"
    config.write_text('[topics]\nexclude = ["g-*"]\n')
    assert run("offload", "--config", config, "--log-dir", folder, "--archive", url).exit_code == 0
    assert [key for key in contents(open_store(url)) if key.startswith("g-tiny")] == []


def test_a_read_over_a_loss_says_that_it_was_lost(run: Run, deleted_below: Path, url: str) -> None:
    read = ("fetch", "--archive", url, "--topic", "g-txn", "--partition", "0", "--offset", "200")
    both = run(*read, "--log-dir", deleted_below)
    assert both.exit_code != 0
    assert "left the local log before they were archived" in both.stderr
    offloaded(run, deleted_below, url)
    both = run(*read, "--log-dir", deleted_below)
    assert "lost, known since 20" in both.stderr
