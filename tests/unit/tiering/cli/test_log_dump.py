"""`tiering log dump`: what a real broker's folders hold, as Kafka's own classes read it."""

import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from click.testing import Result
from golden_logs import expected_batches, expected_records, expected_snapshots, record_digest

from local_log.formats.filenames import position_file
from local_log.formats.messages.kafka_0_7 import write_message
from local_log.formats.record import Codec

Rows = Callable[..., list[dict[str, Any]]]
Run = Callable[..., Result]

RECORD_FIELDS = {"offset", "timestamp", "sequence", "control", "key", "value", "headers"}
FLIPPED = "g-codec-none-0"


def texts(values: Any) -> list[str]:
    """Values as text, so that neither a field's place nor 1 for true goes unnoticed the wrong way round."""
    return [json.dumps(value, sort_keys=True) for value in values]


@pytest.fixture
def flipped(broker: Path, tmp_path: Path) -> tuple[Path, dict[str, Any]]:
    """A copy of a partition with one bit of one record flipped, and the batch that it is in."""
    folder = copytree(broker / FLIPPED, tmp_path / FLIPPED)
    batch = next(b for b in expected_batches(FLIPPED) if b["segment"] != f"{0:020d}.log" and b["position"] > 0)
    file = folder / batch["segment"]
    body = bytearray(file.read_bytes())
    body[batch["position"] + batch["size"] - 1] ^= 1
    file.write_bytes(body)
    return folder, batch


def test_batches_are_those_that_kafka_reads(rows: Rows, broker: Path, partition: str) -> None:
    assert texts(rows("log", "dump", broker / partition, "--batches")) == texts(expected_batches(partition))


@pytest.mark.slow
def test_records_are_those_that_kafka_reads(rows: Rows, broker: Path, partition: str) -> None:
    dumped = rows("log", "dump", broker / partition, "--records")
    assert all(set(record) == RECORD_FIELDS for record in dumped)
    assert tuple(map(record_digest, dumped)) == expected_records(partition)


def test_batches_of_older_messages_are_those_that_kafka_reads(rows: Rows, legacy: Path, legacy_partition: str) -> None:
    assert texts(rows("log", "dump", legacy / legacy_partition, "--batches")) == texts(expected_batches(legacy_partition))


def test_records_of_older_messages_are_those_that_kafka_reads(rows: Rows, legacy: Path, legacy_partition: str) -> None:
    dumped = rows("log", "dump", legacy / legacy_partition, "--records")
    assert all(set(record) == RECORD_FIELDS for record in dumped)
    assert tuple(map(record_digest, dumped)) == expected_records(legacy_partition)


def test_a_folder_of_kafka_0_7_is_dumped_by_position(run: Run, rows: Rows, tmp_path: Path) -> None:
    one, two = write_message(b"one", magic=0), write_message(b"two")
    pair = write_message(gzip.compress(one + two), codec=Codec.gzip)
    (tmp_path / position_file(100)).write_bytes(one + pair)
    second = 100 + len(one + pair)
    (tmp_path / position_file(second)).write_bytes(two + pair[:-1])
    crc = [zlib.crc32(b"one"), zlib.crc32(pair[10:]), zlib.crc32(b"two")]
    expected = [
        [position_file(100), 0, 12, 0, 100, 112, "none", crc[0], True],
        [position_file(100), 12, len(pair), 1, 112, second, "gzip", crc[1], True],
        [position_file(second), 0, 13, 1, second, second + 13, "none", crc[2], True],
    ]
    assert [list(row.values()) for row in rows("log", "dump", tmp_path, "--batches")] == expected
    values = [(row["offset"], row["next_offset"], row["value"]) for row in rows("log", "dump", tmp_path, "--records")]
    assert values == [(100, 112, "b25l"), (112, 112, "b25l"), (112, second, "dHdv"), (second, second + 13, "dHdv")]
    assert run("log", "dump", tmp_path, "--snapshots").exit_code == 4


def test_snapshots_are_those_that_kafka_reads(rows: Rows, broker: Path, partition: str) -> None:
    dumped = rows("log", "dump", broker / partition, "--snapshots")
    assert sorted(texts(dumped)) == sorted(texts(expected_snapshots(partition)))


@pytest.mark.parametrize("what", ["--batches", "--records", "--snapshots"])
def test_a_line_a_thing_is_the_default_and_json_gives_the_same_as_one_array(run: Run, broker: Path, what: str) -> None:
    folder = broker / "g-txn-0"
    lines = run("log", "dump", folder, what)
    array = run("log", "dump", f"{folder}/", what, "--output", "json")
    assert lines.exit_code == array.exit_code == 0
    values = json.loads(array.stdout)
    assert values
    assert [json.loads(line) for line in lines.stdout.splitlines()] == values


def test_the_table_has_the_fields_as_its_head(run: Run, broker: Path) -> None:
    table = run("log", "dump", broker / "g-txn-0", "--snapshots", "--output", "table").stdout.splitlines()
    assert table[0].split() == list(expected_snapshots("g-txn-0")[0])
    assert len(table) == 1 + len(expected_snapshots("g-txn-0"))


def test_nothing_to_dump_is_no_line_and_an_empty_array(run: Run, broker: Path) -> None:
    for what in ("--batches", "--records", "--snapshots"):
        assert run("log", "dump", broker / "g-empty-0", what).stdout == ""
        assert json.loads(run("log", "dump", broker / "g-empty-0", what, "--output", "json").stdout) == []


def test_batches_go_on_behind_a_flipped_bit_and_call_its_batch_invalid(rows: Rows, flipped: tuple[Path, dict[str, Any]]) -> None:
    folder, damaged = flipped
    expected = [{**b, "valid": b != damaged} for b in expected_batches(FLIPPED)]
    assert texts(rows("log", "dump", folder, "--batches")) == texts(expected)


def test_records_stop_at_a_flipped_bit_and_name_file_and_byte(run: Run, flipped: tuple[Path, dict[str, Any]]) -> None:
    folder, damaged = flipped
    stopped = run("log", "dump", folder, "--records")
    assert stopped.exit_code == 6
    assert f"{folder / damaged['segment']} at byte {damaged['position']}" in stopped.stderr
    given = [json.loads(line) for line in stopped.stdout.splitlines()]
    assert tuple(map(record_digest, given)) == expected_records(FLIPPED)[: len(given)]
    assert all(record["offset"] < damaged["base_offset"] for record in given)


@pytest.mark.slow
def test_the_process_ends_with_the_same_code_and_no_traceback(flipped: tuple[Path, dict[str, Any]]) -> None:
    command = [sys.executable, "-m", "tiering", "log", "dump", str(flipped[0]), "--records"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 6
    assert ran.stderr.startswith("tiering: ")
    assert len(ran.stderr.splitlines()) == 1


@pytest.mark.parametrize("what", ["--batches", "--records", "--snapshots"])
def test_a_folder_that_is_not_there_is_not_found(run: Run, tmp_path: Path, what: str) -> None:
    missing = run("log", "dump", tmp_path / "nowhere-0", what)
    assert (missing.exit_code, missing.stdout) == (4, "")
    assert str(tmp_path / "nowhere-0") in missing.stderr


def test_what_to_dump_has_to_be_said(run: Run, broker: Path) -> None:
    refused = run("log", "dump", broker / "g-tiny-0")
    assert refused.exit_code == 2
    assert "--records" in refused.stderr


@pytest.mark.parametrize("two", [("--batches", "--records"), ("--records", "--snapshots"), ("--snapshots", "--batches")])
def test_two_things_at_once_are_a_usage_error(run: Run, broker: Path, two: tuple[str, str]) -> None:
    refused = run("log", "dump", broker / "g-tiny-0", *two)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "choose one of" in refused.stderr


@pytest.mark.parametrize("what", ["--batches", "--records", "--snapshots"])
def test_a_log_directory_is_no_partition_s_folder(run: Run, broker: Path, what: str) -> None:
    refused = run("log", "dump", broker, what)
    assert (refused.exit_code, refused.stdout) == (4, "")
    assert f"{broker}: no segment files there; name one partition's folder" in refused.stderr
