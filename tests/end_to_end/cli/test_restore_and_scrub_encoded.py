"""Archives that are compressed, encrypted or both: restored they are the segments that they were, and a scrub reads them, too."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from golden_logs import broker_logs
from key_files import write_keys

Run = Callable[..., Result]
Rows = Callable[..., list[dict[str, Any]]]
PARTITIONS = ("g-codec-none-0", "g-txn-0")
ENCODE = {
    "zstd": ("--compress", "zstd"),
    "aes-256-gcm": ("--encrypt",),
    "zstd+aes-256-gcm": ("--compress", "zstd", "--encrypt"),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return broker_logs(tmp_path_factory.mktemp("source"), *PARTITIONS)


@pytest.fixture(params=ENCODE)
def encoding(request: pytest.FixtureRequest) -> str:
    """Each encoding in turn."""
    name: str = request.param
    return name


@pytest.fixture
def given_keys(encoding: str, tmp_path: Path) -> tuple[object, ...]:
    """The option that it takes to read what is encrypted."""
    return ("--keys", write_keys(tmp_path / "keys.json", "k1", k1=bytes(range(32)))) if "aes" in encoding else ()


@pytest.fixture
def url(rows: Rows, source: Path, encoding: str, given_keys: tuple[object, ...], tmp_path: Path) -> str:
    """The archive in this encoding."""
    archive = str(tmp_path / "archive")
    rows("offload", "--log-dir", source, "--archive", archive, *ENCODE[encoding], *given_keys, "--chunk-bytes", 1 << 16)
    return archive


def test_what_is_restored_is_what_was_archived(
    rows: Rows, source: Path, url: str, given_keys: tuple[object, ...], tmp_path: Path
) -> None:
    found = rows("restore", "--archive", url, "--to", tmp_path / "to", *given_keys)
    whole = [row for row in found if row["action"] == "whole"]
    assert {f"{row['topic']}-0" for row in whole} == set(PARTITIONS)
    for row in whole:
        for suffix in ("log", "index", "timeindex"):
            file = f"{row['topic']}-0/{row['segment']:020d}.{suffix}"
            assert (tmp_path / "to" / file).read_bytes() == (source / file).read_bytes()
    assert {row["downloaded"] for row in rows("restore", "--archive", url, "--to", tmp_path / "to", *given_keys)} <= {0, None}


def test_a_log_is_cut_by_offset_and_by_time(rows: Rows, url: str, given_keys: tuple[object, ...], tmp_path: Path) -> None:
    for limit in (("--until-offset", 1000), ("--until-timestamp", 1_700_000_500_000)):
        to = tmp_path / limit[0]
        found = rows("restore", "--archive", url, "--to", to, "--topic", "g-codec-none", *limit, *given_keys)
        assert [row["action"] for row in found] == ["cut", "complete"]


def test_a_deep_scrub_finds_nothing_in_it_but_what_was_damaged(
    run: Run, rows: Rows, url: str, given_keys: tuple[object, ...]
) -> None:
    assert rows("scrub", "--archive", url, "--deep", *given_keys) == []
    log = sorted(Path(url).glob("g-txn/*/0/segments/*.log"))[1]
    body = bytearray(log.read_bytes())
    body[len(body) // 2] ^= 1
    log.write_bytes(body)
    result = run("scrub", "--archive", url, "--deep", "--output", "jsonl", *given_keys)
    assert result.exit_code == 6
    [line] = result.stdout.splitlines()
    assert '"kind":"wrong_crc"' in line
    assert str(log.relative_to(url)) in line


def test_without_keys_the_content_of_what_is_encrypted_is_unreadable(run: Run, encoding: str, url: str) -> None:
    is_encrypted = "aes" in encoding
    scrubbed = run("scrub", "--archive", url, "--deep", "--output", "jsonl")
    assert scrubbed.exit_code == (3 if is_encrypted else 0)
    assert {json.loads(line)["kind"] for line in scrubbed.stdout.splitlines()} == ({"unreadable"} if is_encrypted else set())
    refused = run("restore", "--archive", url, "--to", f"{url}-to")
    assert refused.exit_code == (1 if is_encrypted else 0)
    assert ("key 'k1' is needed" in refused.stderr) == is_encrypted
