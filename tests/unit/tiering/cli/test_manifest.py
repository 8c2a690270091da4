"""`tiering manifest`: what the archive says of a topic, on a partition with pages, gaps and entries that are being deleted."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from archive_fakes import CountingIds, FixedClock
from click.testing import Result
from made_manifests import PATH, entry

from local_log.formats.checkpoints import EpochEntry
from remote.archive import create_archive
from remote.clock import SystemClock
from remote.manifest import pins
from remote.manifest.model import Limits, Manifest, never_archived
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.stamped_json import MAJOR
from remote.manifest.store import ManifestWriter, claim, load_newest
from remote.manifest.transitions import deleted, retained, segment_copied, source_seen
from remote.store.folder.store import FolderStore
from remote.store.open import open_store

Rows = Callable[..., list[dict[str, Any]]]
Run = Callable[..., Result]
LIMITS = Limits(inline_max=4, page_entries=2, fan_out=2, deleting_max=20)
FIRST = never_archived(PATH.topic, PATH.topic_id, 0, 0)
ENTRIES = [entry(10 * n, 10 * n + 10) for n in range(20) if n != 6]
FINISHED, DELETING, GONE = "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED"


def copied(one: SegmentEntry) -> Callable[[Manifest], Manifest]:
    return lambda m: segment_copied(m, one, (EpochEntry(0, 0),), "refused: bad CRC", 7)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """19 copies, a retention that moves three of them to be deleted, their deletion, a claim, and a source that was seen."""
    folder = str(tmp_path_factory.mktemp("archive"))
    store, clock, ids = FolderStore(folder), FixedClock(), CountingIds()
    create_archive(store, clock, ids)
    writer = ManifestWriter(store, PATH, clock, ids, "writer a", 0, LIMITS)
    for one in ENTRIES:
        newest = writer.commit(FIRST, copied(one))
    assert newest.version == 19
    assert newest.pages[0].level == 2
    writer.commit(FIRST, lambda m: retained(m, 35, 9))
    writer.commit(FIRST, lambda m: deleted(m, [e.segment_id for e in ENTRIES] + [d.id for d in m.deleting]))
    writer = claim(store, FIRST, clock, ids, "writer b", LIMITS)
    writer.commit(FIRST, lambda m: source_seen(m, "broker 1", 100))
    return folder


def of(url: str) -> tuple[str, ...]:
    return ("--archive", url, "--topic", "topic")


def test_the_newest_manifest_is_a_line_of_a_table_or_all_of_it(run: Run, rows: Rows, url: str) -> None:
    stored = load_newest(open_store(url), PATH)
    assert stored is not None
    (row,) = rows("manifest", "show", *of(url))
    body = json.loads(Path(url, PATH.manifest(stored.manifest.version)).read_text())
    assert row["pages"] == body["pages"] != []
    assert [{k: v for k, v in e.items() if k != "state"} for e in row["entries"]] == body["entries"]
    assert {e["state"] for e in row["entries"]} == {FINISHED}
    assert (row["segments"], row["end_offset"], row["bytes"]) == (16, 200, 16 * 110)
    header, line = run("manifest", "show", *of(url)).stdout.splitlines()
    shown = dict(zip(header.split(), line.replace("writer b", "b").split(), strict=True))
    assert (shown["version"], shown["writer"], shown["writer_epoch"]) == ("23", "b", "1")
    assert (shown["log_start_offset"], shown["segments"], shown["gaps"], shown["pins"]) == ("35", "16", "1", "0")


def test_any_stored_version_is_shown_with_what_was_being_deleted_then(rows: Rows, url: str) -> None:
    (row,) = rows("manifest", "show", *of(url), "--version", 20)
    assert (row["version"], row["segments"]) == (20, 16)
    assert {d["state"] for d in row["deleting"]} == {DELETING}
    (first,) = rows("manifest", "show", *of(url), "--version", 1)
    assert [e["base_offset"] for e in first["entries"]] == [0]


def test_pins_are_shown(rows: Rows, url: str) -> None:
    pin = pins.create(open_store(url), PATH, "backfill", 23, 40, 50, 60_000, SystemClock(), CountingIds("c"))
    try:
        (row,) = rows("manifest", "show", *of(url))
        assert row["pins"]["live"] == [
            {"id": pin.id, "owner": "backfill", "start": 40, "end": 50, "expires_at_ms": pin.expires_at_ms}
        ]
    finally:
        pins.release(open_store(url), PATH, pin)


def test_history_says_who_changed_what_in_each_version_newest_first(rows: Rows, url: str) -> None:
    found = rows("manifest", "history", *of(url))
    assert [row["version"] for row in found] == [*range(23, 0, -1)]
    changes = {row["version"]: row["changes"] for row in found}
    assert changes[23] == "the local log of broker 1 starts at 100"
    assert changes[22] == "claimed with writer epoch 1"
    assert changes[21].startswith(GONE)
    assert changes[20].startswith(f"log start offset 0 to 35; {DELETING}")
    assert changes[7] == f"{FINISHED} [70, 80); 1 new page; gap [60, 70)"
    assert changes[1] == f"{FINISHED} [0, 10)"
    assert {row["writer"] for row in found} == {"writer a", "writer b"}


def test_diff_shows_each_segment_gap_and_offset_that_two_versions_do_not_have_alike(rows: Rows, url: str) -> None:
    found = rows("manifest", "diff", *of(url), 6, 20)
    offsets = [(r["what"], r["before"], r["after"]) for r in found if r["what"].endswith("offset")]
    assert offsets == [("log_start_offset", 0, 35), ("end_offset", 60, 200)]
    segments = {r["start"]: (r["before"], r["after"]) for r in found if r["what"] == "segment"}
    assert segments == {
        **dict.fromkeys((0, 10, 20), (FINISHED, DELETING)),
        **dict.fromkeys(range(70, 200, 10), (None, FINISHED)),
    }
    assert [(r["start"], r["end"], r["after"]) for r in found if r["what"] == "gap"] == [(60, 70, "refused: bad CRC")]
    gone = rows("manifest", "diff", *of(url), 20, 21)
    assert {r["start"]: (r["before"], r["after"]) for r in gone} == dict.fromkeys((0, 10, 20), (DELETING, GONE))
    assert rows("manifest", "diff", *of(url), 20, 20) == []


def test_all_entries_of_all_pages_are_exported_as_one_parquet_file(run: Run, url: str, tmp_path: Path) -> None:
    target = tmp_path / "manifest.parquet"
    assert run("manifest", "export", *of(url), "--to", target).exit_code == 0
    found = pq.read_table(target).to_pylist()
    assert [r["base_offset"] for r in found] == [e.base_offset for e in ENTRIES[3:]]
    assert [r["log_name"] for r in found] == [e.log_name for e in ENTRIES[3:]]
    assert {(r["topic"], r["partition"], r["version"], r["state"]) for r in found} == {("topic", 0, 23, FINISHED)}
    assert run("manifest", "export", *of(url), "--version", 20, "--to", target).exit_code == 0
    states = {r["base_offset"]: r["state"] for r in pq.read_table(target).to_pylist()}
    assert states == {e.base_offset: DELETING if e.end_offset <= 35 else FINISHED for e in ENTRIES}


def test_what_is_not_there_is_not_found(run: Run, url: str, tmp_path: Path) -> None:
    for args in (
        ("show", "--archive", url, "--topic", "other"),
        ("history", *of(url), "--partition", 7),
        ("show", *of(url), "--version", 99),
        ("show", "--archive", tmp_path / "none", "--topic", "topic"),
        ("diff", *of(url), 1, 99),
        ("export", *of(url), "--version", 99, "--to", tmp_path / "file"),
    ):
        result = run("manifest", *args)
        assert (result.exit_code, result.stdout.strip()) in ((4, ""), (4, "[]")), args
    assert [*tmp_path.iterdir()] == []


def test_a_partition_that_cannot_be_read_is_named_and_hides_no_other(run: Run, url: str, tmp_path: Path) -> None:
    store = FolderStore(str(tmp_path))
    create_archive(store, FixedClock(), CountingIds())
    for number in (0, 1):
        first = never_archived("topic", PATH.topic_id, number, 0)
        ManifestWriter(store, first.path, FixedClock(), CountingIds(), "w", 0).commit(first, copied(ENTRIES[0]))
    for body, code in ((b"{", 6), (json.dumps({"format": {"major": MAJOR + 1}}).encode(), 3)):
        Path(tmp_path, first.path.manifest(1)).write_bytes(body)
        for verb in ("show", "history"):
            result = run("manifest", verb, *of(str(tmp_path)), "--output", "jsonl")
            assert (result.exit_code, len(result.stdout.splitlines())) == (code, 1)
            assert first.path.manifest(1) in result.stderr
    result = run("manifest", "show", *of(str(tmp_path)), "--version", 1)
    assert result.exit_code == 2
    assert "--partition" in result.stderr


def test_a_damaged_page_is_corruption_and_leaves_no_file_behind(run: Run, url: str, tmp_path: Path) -> None:
    stored = load_newest(open_store(url), PATH)
    assert stored is not None
    page = Path(url, PATH.page(stored.manifest.pages[0].name))
    sound = page.read_bytes()
    try:
        page.chmod(0o644)
        page.write_bytes(sound[:-1] + b"?")
        result = run("manifest", "export", *of(url), "--to", tmp_path / "file")
        assert (result.exit_code, [*tmp_path.iterdir()]) == (6, [])
        assert PATH.page(stored.manifest.pages[0].name) in result.stderr
    finally:
        page.write_bytes(sound)
