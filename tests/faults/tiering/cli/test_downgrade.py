"""Who may write to the bucket and has no key puts data of his own in the place of encrypted data, or an old state of it."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from key_files import write_keys

from remote.manifest.signatures import split
from remote.manifest.stamped_json import stamped

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]
QUESTION = ("--topic", "g-txn", "--partition", 0, "--offset", 0, "--max-records", 1)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A key file."""
    return write_keys(tmp_path / "keys.json", "k1", k1=bytes(range(32)))


@pytest.fixture
def hidden(rows: Rows, logs: Path, url: str, keys: Path) -> str:
    """An encrypted archive."""
    rows("offload", "--log-dir", logs, "--archive", url, "--encrypt", "--keys", keys)
    return url


@pytest.fixture
def plain(rows: Rows, logs: Path, tmp_path: Path) -> str:
    """The same topics, as anybody can archive them."""
    rows("offload", "--log-dir", logs, "--archive", tmp_path / "plain")
    return str(tmp_path / "plain")


def test_data_in_the_clear_in_the_place_of_encrypted_data_is_refused(run: Run, hidden: str, plain: str, keys: Path) -> None:
    shutil.rmtree(Path(hidden) / "g-txn")
    shutil.copytree(Path(plain) / "g-txn", Path(hidden) / "g-txn")
    for command in (
        ("fetch", *QUESTION),
        ("offsets", "--topic", "g-txn", "--time", 1),
        ("restore", "--topic", "g-txn", "--to", Path(hidden).parent / "to"),
        ("scrub", "--deep"),
    ):
        found = run(*command, "--archive", hidden, "--keys", keys)
        assert found.exit_code == 6, command
        assert "it is not signed" in found.output
        assert "--allow-plain" in found.output
    assert run("fetch", *QUESTION, "--archive", hidden, "--keys", keys, "--allow-plain").exit_code == 0


def test_an_entry_in_the_clear_is_refused_though_its_manifest_is_signed(run: Run, rows: Rows, plain: str, keys: Path) -> None:
    rows("rotate-keys", "--archive", plain, "--keys", keys, "--allow-plain")
    found = run("fetch", *QUESTION, "--archive", plain, "--keys", keys)
    assert found.exit_code == 6
    assert "it is not encrypted" in found.stderr
    assert rows("fetch", *QUESTION, "--archive", plain, "--keys", keys, "--allow-plain")


def test_an_entry_in_the_clear_is_refused_though_a_cache_has_its_bytes(
    run: Run, rows: Rows, plain: str, keys: Path, tmp_path: Path
) -> None:
    rows("rotate-keys", "--archive", plain, "--keys", keys, "--allow-plain")
    where = ("--topic", "g-txn", "--partition", 0)
    cached = ("--archive", plain, "--cache-dir", tmp_path / "cache")
    questions = (("fetch", *where, "--offset", 0, "--max-records", 1), ("offsets", *where[:2], "--time", 1))
    assert all(rows(*question, *cached) for question in questions)
    assert list((tmp_path / "cache" / "chunks").iterdir())
    assert list((tmp_path / "cache" / "indexes").iterdir())
    for question in questions:
        found = run(*question, *cached, "--keys", keys)
        assert (found.exit_code, "it is not encrypted" in found.output) == (6, True), question
        assert rows(*question, *cached, "--keys", keys, "--allow-plain")


def test_an_archive_that_was_begun_in_the_clear_is_signed_by_a_rotation_once(
    run: Run, rows: Rows, logs: Path, plain: str, keys: Path
) -> None:
    refused = run("rotate-keys", "--archive", plain, "--keys", keys)
    assert (refused.exit_code, "rotate-keys --allow-plain" in refused.stderr) == (6, True)
    assert all(row["signed"] for row in rows("rotate-keys", "--archive", plain, "--keys", keys, "--allow-plain"))
    again = rows("rotate-keys", "--archive", plain, "--keys", keys)
    assert [(row["due"], row["rewrapped"], row["signed"], row["error"]) for row in again] == [(0, 0, True, None)] * len(again)
    assert run("scrub", "--archive", plain, "--keys", keys).exit_code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("expire", "--archive-alone", "-c", "retention.ms=1", "--yes"),
        ("delete-topic", "--topic", "g-txn", "--yes"),
        ("sweep", "--grace-ms", 0, "--yes"),
    ],
    ids=lambda command: command[0],
)
def test_what_commits_to_a_signed_archive_needs_keys(run: Run, hidden: str, keys: Path, command: tuple[object, ...]) -> None:
    orphan = next(Path(hidden).glob("g-txn/*/0/segments")) / f"{0:020d}-0-{'e' * 32}.log"
    orphan.write_bytes(b"nobody's")
    os.utime(orphan, (orphan.stat().st_mtime - 60,) * 2)  # older than the clock's step, younger than what a scrub reports
    newest, *_ = sorted(Path(hidden).glob("g-txn/*/0/manifest/*.json"))
    refused = run(*command, "--archive", hidden)
    assert refused.exit_code in (1, 3), refused.output
    assert "key 'k1' is needed: its manifest is signed" in refused.output
    assert min(Path(hidden).glob("g-txn/*/0/manifest/*.json")) == newest
    assert run(*command, "--archive", hidden, "--keys", keys).exit_code == 0
    assert min(Path(hidden).glob("g-txn/*/0/manifest/*.json")) < newest
    assert run("scrub", "--archive", hidden, "--keys", keys).exit_code == 0


def test_an_older_state_is_found_by_who_has_a_cache(
    run: Run, rows: Rows, logs: Path, hidden: str, keys: Path, tmp_path: Path
) -> None:
    question = ("fetch", *QUESTION, "--archive", hidden, "--keys", keys)
    cached = (*question, "--cache-dir", tmp_path / "cache")
    assert rows(*cached)
    newest, *_ = sorted(Path(hidden).glob("g-txn/*/0/manifest/*.json"))
    newest.unlink()
    refused = run(*cached)
    assert refused.exit_code == 6
    assert "was there before" in refused.stderr
    assert rows(*question)  # who remembers nothing cannot know


TXN = ("--topic", "g-txn")


def newest_of(url: str) -> tuple[Path, Row]:
    """The newest manifest of g-txn, and what stands in it."""
    file = min(Path(url).glob("g-txn/*/0/manifest/*.json"))
    return file, json.loads(split(file.read_bytes())[0])


def source_of(url: str) -> str:
    """The log directory that it was archived from."""
    (source,) = newest_of(url)[1]["local_log_start_offsets"]
    return str(source)


def unsign(url: str) -> None:
    """Puts the same manifest in its place, as who has no keys would have written it."""
    file, value = newest_of(url)
    file.write_bytes(stamped(value | {"format": {"major": 1, "minor": 1}}))


LOOKS: dict[str, tuple[object, ...]] = {
    "describe": ("describe", "g-txn"),
    "show": ("manifest", "show", *TXN),
    "history": ("manifest", "history", *TXN),
    "diff": ("manifest", "diff", *TXN, "--partition", 0, 2, 3),
    "export": ("manifest", "export", *TXN, "--to", "{to}"),
    "acknowledge": ("manifest", "acknowledge", *TXN, "--dry-run"),
    "source-gone": ("source-gone", "--source", "{source}", "--dry-run"),
}


@pytest.mark.parametrize("command", LOOKS)
def test_who_looks_at_manifests_with_keys_is_told_of_one_that_was_put_there(
    run: Run, hidden: str, keys: Path, tmp_path: Path, command: str
) -> None:
    words = [str(word).format(to=tmp_path / "to", source=source_of(hidden)) for word in LOOKS[command]]
    assert run(*words, "--archive", hidden).exit_code == 0
    assert run(*words, "--archive", hidden, "--keys", keys).exit_code == 0
    unsign(hidden)
    assert run(*words, "--archive", hidden).exit_code == 0
    found = run(*words, "--archive", hidden, "--keys", keys)
    assert (found.exit_code, "it is not signed" in found.stderr) == (6, True), found.output


def test_what_a_manifest_is_signed_by_is_shown(rows: Rows, hidden: str, plain: str, keys: Path) -> None:
    show = ("manifest", "show", *TXN)
    assert {row["signed_by"] for row in rows(*show, "--archive", hidden, "--keys", keys)} == {"k1"}
    assert {row["signed_by"] for row in rows(*show, "--archive", plain)} == {None}


def test_status_holds_manifests_against_the_keys_of_its_configuration(
    run: Run, hidden: str, logs: Path, keys: Path, tmp_path: Path
) -> None:
    config = tmp_path / "tiering.toml"
    config.write_text(
        f'[log]\ndirs = ["{logs}"]\n[archive]\nurl = "{hidden}"\nkeys = "{keys}"\n[agent]\nstate.dir = "{tmp_path / "state"}"\n'
    )
    status = ("status", "--config", config, "--output", "json")
    assert run(*status).exit_code == 0
    unsign(hidden)
    found = run(*status)
    assert found.exit_code == 3
    (row,) = [row for row in json.loads(found.stdout)["partitions"] if row["topic"] == "g-txn"]
    assert "it is not signed" in row["error"]
    keys.unlink()
    without = run(*status)
    assert without.exit_code == 0
    assert "signatures of manifests are not checked" in without.stderr


def test_a_source_that_is_gone_is_said_to_be_with_keys_in_a_signed_archive(run: Run, hidden: str, keys: Path) -> None:
    words = ("source-gone", "--source", source_of(hidden), *TXN, "--yes", "--archive", hidden)
    assert run(*words).exit_code == 1
    assert run(*words, "--keys", keys).exit_code == 0
