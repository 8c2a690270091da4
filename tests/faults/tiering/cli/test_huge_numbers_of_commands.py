"""Numbers that 64 bits do not hold, on the command line; and an archive that says that it goes on to the last of them."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from remote.manifest.stamped_json import stamped

Row = dict[str, Any]
Rows = Callable[..., list[Row]]
Run = Callable[..., Result]
TOPIC = ("--topic", "g-txn")
PARTITION = (*TOPIC, "--partition", 0)


@pytest.mark.parametrize("huge", [f"{2**63}", "99999999999999999999999", "9" * 400, "9" * 5000], ids=len)
@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("fetch", *PARTITION), "--offset"),
        (("fetch", *PARTITION, "--offset", 0), "--max-records"),
        (("fetch", *TOPIC, "--offset", 0), "--partition"),
        (("manifest", "show", *PARTITION), "--version"),
        (("restore", *TOPIC, "--to", "to"), "--until-offset"),
        (("restore", *TOPIC, "--to", "to"), "--until-timestamp"),
        (("expire", *PARTITION, "--archive-alone", "--dry-run"), "--log-start-offset"),
        (("sweep", "--dry-run"), "--grace-ms"),
        (("scrub",), "--requests-max"),
    ],
    ids=str,
)
def test_an_option_with_such_a_number_is_refused_by_name(
    run: Run, archive: str, command: tuple[object, ...], option: str, huge: str
) -> None:
    found = run(*command, option, huge, "--archive", archive)
    assert found.exit_code == 2
    assert option in found.stderr


def test_a_time_of_any_digits_is_no_time_of_a_record(run: Run, archive: str) -> None:
    found = run("offsets", *TOPIC, "--time", "9" * 5000, "--archive", archive)
    assert (found.exit_code, "--time" in found.stderr) == (2, True)
    for huge in (2**63, 10**99):
        assert run("offsets", *TOPIC, "--time", huge, "--archive", archive).stdout == "g-txn:0:\n"


def test_a_partition_is_a_number_of_32_bits_on_the_command_line_too(run: Run, archive: str) -> None:
    found = run("fetch", *TOPIC, "--partition", 2**31, "--offset", 0, "--archive", archive)
    assert (found.exit_code, "--partition" in found.stderr) == (2, True)


def with_end(archive: str, to: Path, number: int, end: int) -> tuple[Path, str]:
    """A copy of the archive in which a segment says that it ends there, and the key of the manifest that says so."""
    hostile = Path(shutil.copytree(archive, to / "hostile"))
    newest = min(hostile.glob("g-txn/*/0/manifest/*.json"))
    value = json.loads(newest.read_bytes())
    del value["~crc32c"]
    value["entries"][number]["end_offset"] = end
    newest.write_bytes(stamped(value))
    return hostile, str(newest.relative_to(hostile))


@pytest.mark.parametrize("number", [0, -1])
@pytest.mark.parametrize("end", [2**63 - 1, 2**63 - 2, 2**63 - 2**31 + 1])
def test_a_log_that_would_end_where_no_log_does_is_not_restored(
    run: Run, rows: Rows, archive: str, tmp_path: Path, number: int, end: int
) -> None:
    hostile, key = with_end(archive, tmp_path, number, end)
    refused = run("restore", *TOPIC, "--to", tmp_path / "to", "--archive", hostile)
    assert refused.exit_code == 6
    assert f"{key}" in refused.stderr
    assert f"ends at offset {end}" in refused.stderr
    assert not (tmp_path / "to" / "g-txn-0").exists()
    assert rows("restore", *TOPIC, "--to", tmp_path / "to", "--archive", hostile, "--until-offset", 50)
