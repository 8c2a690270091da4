"""`tiering describe`: what lies in which tier, against what the broker said and what lies in the folders."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from click.testing import Result
from golden_logs import legacy_partitions, live, partitions

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


def test_a_topic_is_drawn_over_offsets_and_time_as_wide_as_the_terminal(
    run: Run, rows: Rows, archive: str, broker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("describe", "--archive", archive, "--log-dir", broker, "g-txn")
    for columns in (60, 100):
        monkeypatch.setenv("COLUMNS", str(columns))
        drawn = run(*asked).stdout.splitlines()[2:]
        assert [line.split()[0] for line in drawn if line][:7] == [
            "g-txn-0", "offsets", "archive", "local", "time", "archive", "local",
        ]  # fmt: skip
        assert max(map(len, drawn)) == columns
        assert "\x1b" not in "".join(drawn)
    (row,) = rows(*asked)
    assert row["coverage"]["archive"]["offsets"] == [[0, 2744]]
    assert row["coverage"]["local"]["offsets"] == [[0, 3706]]
    assert row["coverage"]["gaps"] == []


def test_all_topics_are_drawn_where_that_is_asked_for_and_one_is_not_where_it_is_not_wanted(
    run: Run, rows: Rows, archive: str, broker: Path
) -> None:
    asked = ("describe", "--archive", archive, "--log-dir", broker)
    drawn = run(*asked, "--coverage").stdout.splitlines()
    assert {name for name in partitions() if name in drawn} == set(partitions())
    assert all("coverage" in row for row in rows(*asked, "--coverage"))
    assert len(run(*asked, "g-txn", "--no-coverage").stdout.splitlines()) == 2
    assert not any("coverage" in row for row in rows(*asked))


def test_the_table_has_a_line_a_partition(run: Run, archive: str, broker: Path) -> None:
    table = run("describe", "--archive", archive, "--log-dir", broker).stdout.splitlines()
    assert len(table) == 1 + len(partitions())
    assert table[0].split()[:3] == ["topic", "partition", "log_start_offset"]


def test_a_topic_that_neither_tier_has_is_not_found_and_the_others_are_named(run: Run, archive: str) -> None:
    missing = run("describe", "--archive", archive, "g-nowhere")
    assert (missing.exit_code, missing.stdout) == (4, "")
    assert "g-nowhere" in missing.stderr
    assert "g-big" in missing.stderr


def test_a_place_without_an_archive_is_not_found(run: Run, tmp_path: Path) -> None:
    missing = run("describe", "--archive", tmp_path / "nowhere")
    assert missing.exit_code == 4
    assert str(tmp_path / "nowhere") in missing.stderr
    assert not (tmp_path / "nowhere").exists()


def messages(result: Result) -> list[str]:
    return result.stderr.splitlines()


def test_a_damaged_manifest_hides_only_its_own_partition(
    run: Run, rows: Rows, archive: str, broker: Path, tmp_path: Path
) -> None:
    damaged = copytree(archive, tmp_path / "archive")
    newest = min(damaged.glob("g-txn/*/0/manifest/*.json"))
    newest.write_bytes(newest.read_bytes()[:-9])
    for tiers in (("--archive", damaged), ("--archive", damaged, "--log-dir", broker)):
        shown = run("describe", *tiers, "--output", "jsonl")
        sound = [row for row in rows("describe", "--archive", archive, *tiers[2:]) if row["topic"] != "g-txn"]
        assert [json.loads(line) for line in shown.stdout.splitlines()] == sound
        assert shown.exit_code == 6
        assert len(messages(shown)) == 1
        assert newest.name in shown.stderr


def test_an_active_segment_that_is_no_log_hides_only_its_own_partition(
    run: Run, archive: str, broker: Path, tmp_path: Path
) -> None:
    logs = copytree(broker, tmp_path / "logs")
    damaged = logs / "g-tiny-0" / f"{0:020d}.log"
    damaged.write_bytes(b"\xff" * 100)
    shown = run("describe", "--archive", archive, "--log-dir", logs, "--output", "json")
    assert len(json.loads(shown.stdout)) == len(partitions()) - 1
    assert shown.exit_code == 6
    assert len(messages(shown)) == 1
    assert str(damaged) in shown.stderr


def test_a_file_that_the_system_does_not_give_leaves_the_work_partly_done(
    run: Run, archive: str, broker: Path, tmp_path: Path
) -> None:
    logs = copytree(broker, tmp_path / "logs")
    file = logs / "g-tiny-0" / f"{0:020d}.log"
    file.unlink()
    file.mkdir()
    shown = run("describe", "--archive", archive, "--log-dir", logs, "--output", "jsonl")
    assert len(shown.stdout.splitlines()) == len(partitions()) - 1
    assert shown.exit_code == 3
    assert str(file) in shown.stderr


def test_partition_metadata_that_is_rubbish_hides_only_its_own_partition(
    run: Run, archive: str, broker: Path, tmp_path: Path
) -> None:
    logs = copytree(broker, tmp_path / "logs")
    (logs / "g-txn-0" / "partition.metadata").write_bytes(b"rubbish")
    shown = run("describe", "--archive", archive, "--log-dir", logs, "--output", "jsonl")
    assert len(shown.stdout.splitlines()) == len(partitions()) - 1
    assert shown.exit_code == 6
    assert len(messages(shown)) == 1


def test_a_log_of_older_messages_is_described_as_any_other(rows: Rows, legacy: Path, legacy_archive: str) -> None:
    described = rows("describe", "--log-dir", legacy, "--archive", legacy_archive)
    ends = {f"{row['topic']}-{row['partition']}": (row["log_end_offset"], row["archived_up_to"]) for row in described}
    assert ends == {name: (live(name)["latest"][0],) * 2 for name in legacy_partitions()}


def test_globs_narrow_it_down_as_for_all_other_commands(rows: Rows, run: Run, archive: str) -> None:
    assert [row["topic"] for row in rows("describe", "--archive", archive, "--topic", "g-t*")] == ["g-trimmed", "g-txn"]
    assert "coverage" in rows("describe", "--archive", archive, "--topic", "g-txn")[0]
    missing = run("describe", "--archive", archive, "--topic", "nowhere*")
    assert (missing.exit_code, missing.stdout) == (4, "")
    assert "nowhere*" in missing.stderr
    assert run("describe", "--archive", archive, "g-txn", "--topic", "g-txn").exit_code == 2


def test_before_the_first_offload_the_log_directory_is_shown(rows: Rows, run: Run, broker: Path, tmp_path: Path) -> None:
    given = ("describe", "--archive", tmp_path / "nowhere", "--log-dir", broker)
    assert [row["topic"] for row in rows(*given)] == [name.removesuffix("-0") for name in partitions()]
    assert {row["archived_segments"] for row in rows(*given)} == {0}
    shown = run(*given, "g-txn")
    assert (shown.exit_code, "nothing is archived yet" in shown.stderr) == (0, True)


def test_topics_that_the_configuration_excludes_are_shown_when_they_are_asked_for(
    rows: Rows, archive: str, tmp_path: Path
) -> None:
    file = tmp_path / "tiering.toml"
    file.write_text(f'archive.url = "{archive}"\ntopics.exclude = ["g-codec*"]\n')
    given = ("describe", "--config", file)
    assert [row["topic"] for row in rows(*given)] == ["g-big", "g-compacted", "g-compacted-txn", "g-trimmed", "g-txn"]
    assert len(rows(*given, "--topic", "g-codec*")) == len(rows(*given, "g-codec-none")) + 2
