"""A log of Kafka 0.7 appended to a log of today."""

import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from local_log.formats.filenames import position_file
from local_log.formats.messages.kafka_0_7 import write_message
from tiering.cli import main
from tiering.log_tools import dump, import_0_7

GZIP = 1


def run(*words: Any) -> Result:
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Plain messages of both magics, an empty one, a compressed set, and one that is large; in two segments."""
    packed = zlib.compressobj(wbits=31)
    inner = b"".join(write_message(b"inner %d" % n) for n in range(3))
    wrapper = write_message(packed.compress(inner) + packed.flush(), codec=GZIP)
    first = write_message(b"a", magic=0) + write_message(b"", magic=1) + wrapper
    second = b"".join(write_message(b"%d" % n) for n in range(1200)) + write_message(b"x" * 600_000) + write_message(b"end")
    folder = tmp_path / "old-0"
    folder.mkdir()
    (folder / position_file(0)).write_bytes(first)
    (folder / position_file(len(first))).write_bytes(second)
    return folder


def test_every_value_is_there_in_its_order_under_new_offsets(old: Path, tmp_path: Path) -> None:
    result = run("log", "append", old, tmp_path / "new-0", "--leader-epoch", 4)
    assert result.exit_code == 0, result.output
    records = list(dump.records(str(tmp_path / "new-0")))
    assert [r["offset"] for r in records] == list(range(len(records)))
    values = [b"a", b"", *(b"inner %d" % n for n in range(3)), *(b"%d" % n for n in range(1200)), b"x" * 600_000, b"end"]
    assert [r["value"] for r in records] == [b64encode(value).decode() for value in values]
    assert {(r["key"], r["timestamp"]) for r in records} == {(None, -1)}


def test_batches_are_bounded_in_records_and_bytes(old: Path, tmp_path: Path) -> None:
    run("log", "append", old, tmp_path / "new-0", "--leader-epoch", 0)
    batches = list(dump.batches(str(tmp_path / "new-0")))
    assert max(b["count"] for b in batches) == import_0_7.BATCH_RECORDS_MAX
    assert [b["count"] for b in batches if b["size"] > import_0_7.BATCH_BYTES] == [
        201
    ]  # the last 200 before the large one, and it
    assert all(b["valid"] and b["leader_epoch"] == 0 for b in batches)


def test_a_follower_cannot_take_them_as_they_are(old: Path, tmp_path: Path) -> None:
    result = run("log", "append", old, tmp_path / "new-0", "--follower")
    assert result.exit_code == 1
    assert "--leader-epoch" in result.output
