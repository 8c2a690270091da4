"""`tiering describe`: what lies in which tier, against what the broker said and what lies in the folders."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from golden_logs import live, partitions

Rows = Callable[..., list[dict[str, Any]]]
Run = Callable[..., Result]


def archived_ends(logs: Path, partition: str) -> list[int]:
    """Where each segment ends that an offload takes."""
    bases = sorted(int(file.stem) for file in (logs / partition).glob("*.log"))
    return [end for _, end in pairwise(bases) if end <= live(partition)["last_stable_offset"]]


def archived_bytes(archive: str, topic: str) -> int:
    return sum(file.stat().st_size for file in Path(archive, topic).glob("*/0/segments/*"))


@pytest.mark.parametrize(("logs", "url"), [("broker", "archive"), ("rolled", "whole_archive")])
def test_both_tiers_are_shown_for_every_partition(rows: Rows, request: pytest.FixtureRequest, logs: str, url: str) -> None:
    log_dir, archive = request.getfixturevalue(logs), request.getfixturevalue(url)
    expected = []
    for partition in partitions():
        topic, answers = partition.removesuffix("-0"), live(partition)
        ends, files = archived_ends(log_dir, partition), list((log_dir / partition).glob("*.log"))
        expected.append(
            {
                "topic": topic,
                "partition": 0,
                "log_start_offset": answers["earliest"][0],
                "local_log_start_offset": answers["earliest_local"][0],
                "archived_up_to": ends[-1] if ends else None,
                "log_end_offset": answers["latest"][0],
                "local_segments": len(files),
                "local_bytes": sum(file.stat().st_size for file in files),
                "archived_segments": len(ends),
                "archived_bytes": archived_bytes(archive, topic),
                "gaps": 0,
            }
        )
    assert rows("describe", "--archive", archive, "--log-dir", log_dir) == expected


def test_the_archive_alone_shows_what_is_archived(rows: Rows, archive: str, broker: Path) -> None:
    both = {row["topic"]: row for row in rows("describe", "--archive", archive, "--log-dir", broker)}
    local = ("local_log_start_offset", "log_end_offset", "local_segments", "local_bytes")
    expected = [{**row, **dict.fromkeys(local)} for row in both.values() if row["archived_segments"]]
    assert len(expected) == 8
    assert rows("describe", "--archive", archive) == expected


def test_segments_that_have_left_the_log_directory_count_in_the_archive_alone(rows: Rows, archive: str, shed: Path) -> None:
    (row,) = rows("describe", "--archive", archive, "--log-dir", shed, "g-txn")
    assert (row["log_start_offset"], row["local_log_start_offset"], row["log_end_offset"]) == (0, 2744, 3706)
    assert (row["archived_up_to"], row["archived_segments"], row["local_segments"]) == (2744, 3, 1)


def test_a_topic_narrows_it_down(rows: Rows, archive: str, broker: Path) -> None:
    assert [row["topic"] for row in rows("describe", "--archive", archive, "g-txn")] == ["g-txn"]
    assert [row["topic"] for row in rows("describe", "--archive", archive, "--log-dir", broker, "g-tiny")] == ["g-tiny"]


def test_the_table_has_a_line_a_partition(run: Run, archive: str, broker: Path) -> None:
    table = run("describe", "--archive", archive, "--log-dir", broker).stdout.splitlines()
    assert len(table) == 1 + len(partitions())
    assert table[0].split()[:3] == ["topic", "partition", "log_start_offset"]


def test_a_topic_that_neither_tier_has_is_not_found_and_the_others_are_named(run: Run, archive: str) -> None:
    missing = run("describe", "--archive", archive, "g-nowhere")
    assert (missing.exit_code, missing.stdout) == (4, "")
    assert "g-nowhere" in missing.stderr
    assert "g-txn" in missing.stderr


def test_a_place_without_an_archive_is_not_found(run: Run, tmp_path: Path) -> None:
    missing = run("describe", "--archive", tmp_path / "nowhere")
    assert missing.exit_code == 4
    assert str(tmp_path / "nowhere") in missing.stderr
    assert not (tmp_path / "nowhere").exists()
