"""Texts that whoever may write to the archive has put there, as commands show them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from made_archive import TOPIC_ID, made

from remote.keys import PartitionPath
from remote.manifest.stamped_json import stamped
from remote.manifest.store import newest_version
from remote.store.open import open_store
from tiering.cli import main

PATH = PartitionPath("made", TOPIC_ID, 0)
HOSTILE = "\x1b]0;owned\x07 \x1b[2J\r\nfake line\x9b31m \u202e"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A partition with a gap whose reason, and whose writer and sources, are hostile."""
    folder = tmp_path_factory.mktemp("hostile") / "archive"
    store = open_store(str(folder))
    made(store, [[[1_000, 1_001]], [[1_002]]])
    file = folder / PATH.manifest(newest_version(store, PATH))
    value = json.loads(file.read_bytes())
    del value["~crc32c"]
    later = {**value["entries"][-1], "segment_id": "d" * 32, "base_offset": 9, "end_offset": 10, "last_offset": 9}
    value |= {
        "entries": [*value["entries"], later],
        "gaps": [{"start": 3, "end": 9, "reason": HOSTILE, "noticed_at_ms": 1}],
        "writer": HOSTILE,
        "local_log_start_offsets": {HOSTILE: 0},
    }
    file.write_bytes(stamped(value))
    return folder


@pytest.mark.parametrize(
    "words",
    [
        ["describe"],
        ["describe", "--topic", "made"],
        ["scrub"],
        ["scrub", "--deep"],
        ["manifest", "show", "--topic", "made", "--partition", "0"],
        ["manifest", "history", "--topic", "made", "--partition", "0"],
        ["fetch", "--topic", "made", "--partition", "0", "--offset", "5"],
        ["expire", "--archive-alone", "--dry-run"],
    ],
    ids=" ".join,
)
def test_no_command_sends_them_to_the_terminal(archive: Path, words: list[str]) -> None:
    done = CliRunner().invoke(main, [*words, "--archive", str(archive)])
    assert done.exception is None or isinstance(done.exception, SystemExit)
    assert done.output
    assert not {c for c in done.output if not c.isprintable()} - {"\n"}
    assert "\nfake line" not in done.output
