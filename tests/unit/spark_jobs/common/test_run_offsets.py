"""The offsets of a run, resolved once."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from made_archive import made

from local_log.errors import Corrupt, Newer
from remote.store.open import open_store
from spark_jobs.common.offset_ranges import OffsetRanges
from spark_jobs.common.run_offsets import key_of, run_offsets
from spark_jobs.errors import OptionError
from spark_jobs.jobs.backfill import main

FIRST: OffsetRanges = {"orders": {0: (0, 1200), 3: (5, 5)}}
ASKED = {"topics": ["orders"], "from_ms": 5}


def never() -> OffsetRanges:
    raise AssertionError("resolved again")


def test_the_first_run_of_a_name_resolves_and_all_others_get_what_it_has_resolved(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert run_offsets(store, "daily/1", ASKED, lambda: FIRST) == FIRST
    assert run_offsets(store, "daily/1", ASKED, never) == FIRST
    assert run_offsets(store, "daily/2", ASKED, dict) == {}


def test_of_two_first_runs_both_get_what_one_has_resolved(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))

    def after_another() -> OffsetRanges:
        run_offsets(store, "daily/1", ASKED, lambda: FIRST)
        return {"orders": {0: (0, 7)}}

    assert run_offsets(store, "daily/1", ASKED, after_another) == FIRST


def test_a_dry_run_keeps_nothing(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    assert run_offsets(store, "daily/1", ASKED, lambda: FIRST, keep=False) == FIRST
    assert list(store.list("")) == []


def test_who_asks_for_something_else_is_refused(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    run_offsets(store, "daily/1", ASKED, lambda: FIRST)
    with pytest.raises(OptionError, match=r"run 'daily/1' was asked for from_ms 5, not 6; give another --run"):
        run_offsets(store, "daily/1", {**ASKED, "from_ms": 6}, never)


@pytest.mark.parametrize(
    ("body", "error"), [(b"", Corrupt), (b"[1]", Corrupt), (b"{}", Corrupt), (b'{"format":2,"asked":{},"offsets":{}}', Newer)]
)
def test_what_is_damaged_or_newer_is_not_taken_for_offsets(tmp_path: Path, body: bytes, error: type[Exception]) -> None:
    store = open_store(str(tmp_path))
    store.put_if_absent(key_of("daily/1"), body)
    with pytest.raises(error):
        run_offsets(store, "daily/1", ASKED, never)


def resolved(archive: Path, out: Path, *args: str) -> Result:
    return CliRunner().invoke(main, ["--archive", str(archive), "--to", str(out), "--resolve-only", *args])


def offsets(result: Result) -> Any:
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_run_with_a_name_stays_with_its_offsets_whatever_is_archived_later(tmp_path: Path) -> None:
    archive, out = tmp_path / "archive", tmp_path / "out"
    asked = ["--topic", "made*", "--from-timestamp", "20", "--to-timestamp", "90"]
    made(open_store(str(archive)), [[[10, 20], [30, 40]]])
    first = offsets(resolved(archive, out, "--run", "daily/1", *asked))
    assert first == {"made": {"0": [1, 4]}}
    made(open_store(str(archive)), [[[10, 100]]], partition=1)
    assert offsets(resolved(archive, out, "--run", "daily/1", *asked)) == first
    assert offsets(resolved(archive, out, *asked)) == {"made": {"0": [1, 4], "1": [1, 1]}}
    refused = resolved(archive, out, "--run", "daily/1", *asked[:-1], "91")
    assert refused.exit_code == 2
    assert "was asked for to_ms 90, not 91" in refused.stderr
