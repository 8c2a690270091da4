"""Whole segments that compaction has emptied: readers pass over them, as Kafka's do, and nothing is said to be missing there."""

from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import MemoryStore, verbs
from golden_logs import broker_logs
from logs_to_archive import cut_finer, local_logs, path_of
from made_manifests import assert_sound_archive
from one_offload import run

from local_log.log_reader import LogReader
from remote.manifest.codec import decode, encode
from remote.manifest.entries import Entries
from remote.manifest.gaps import COMPACTED, NO_BATCH
from remote.manifest.model import Manifest
from remote.read.log import ArchivedLog
from remote.read.plan import MissingRange
from remote.scrub.coverage import CoverageCheck
from remote.segment.stitch import Link
from tiering.read.coverage import coverage_of
from tiering.read.tiered_log import TieredLog
from tiering.restore.plan import plan_restore

Folder = tuple[Path, str]
Holed = tuple[LogReader, ArchivedLog]


@pytest.fixture(params=["g-compacted-0", "g-compacted-txn-0"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Folder:
    logs = broker_logs(tmp_path / "logs", request.param)
    cut_finer(logs / request.param, 5)
    return logs, request.param


@pytest.fixture
def holed(folder: Folder) -> Holed:
    """A log whose first segment is emptied, and its archive with a gap in that place."""
    empty(folder, 0)
    store = MemoryStore()
    log, manifest = offloaded(folder, store)
    return log, ArchivedLog(store, manifest)


def bases(folder: Folder) -> list[int]:
    return [s.base_offset for s in local_logs(folder[0])[folder[1]].segments]


def log_file(folder: Folder, base: int) -> Path:
    return folder[0] / folder[1] / f"{base:020d}.log"


def empty(folder: Folder, base: int) -> None:
    for file in log_file(folder, base).parent.glob(f"{base:020d}.*"):
        if file.suffix != ".snapshot":
            file.write_bytes(b"")


def damage(folder: Folder, base: int) -> None:
    body = log_file(folder, base).read_bytes()
    log_file(folder, base).write_bytes(body[:-1] + bytes([body[-1] ^ 1]))


def offloaded(folder: Folder, store: MemoryStore, prefix: str = "") -> tuple[LogReader, Manifest]:
    log = local_logs(folder[0])[folder[1]]
    run(store, log, prefix=prefix)
    return log, assert_sound_archive(store, path_of(log))


def offsets(log: TieredLog, start: int, end: int) -> list[int]:
    read = [offset for records in log.read(start) for offset in records.column("offset").to_pylist()]
    return [offset for offset in read if offset < end]


def test_readers_pass_over_it(holed: Holed) -> None:
    log, archived = holed
    (gap,) = archived.manifest.gaps
    assert (gap.start, gap.kind, gap.reason) == (0, COMPACTED, NO_BATCH)
    for start in (0, 1, gap.end - 1, gap.end):
        theirs = offsets(TieredLog(log, None), start, archived.end_offset)
        assert theirs
        assert offsets(TieredLog(None, archived), start, archived.end_offset) == theirs
        assert offsets(TieredLog(log, archived), start, archived.end_offset) == theirs
    assert list(archived.chunks(0, gap.end)) == []
    found = archived.offset_for_time(0, 0, archived.end_offset)
    assert found == log.offset_for_time(0, 0, archived.end_offset)


def test_the_log_starts_where_it_did_as_kafka_says_too(holed: Holed) -> None:
    log, archived = holed
    assert TieredLog(None, archived).earliest().offset == TieredLog(log, None).earliest().offset == 0


def test_a_manifest_from_before_there_were_kinds_says_so_by_its_reason(holed: Holed) -> None:
    _, archived = holed
    gaps = tuple(replace(gap, kind="") for gap in archived.manifest.gaps)
    body = encode(replace(archived.manifest, gaps=gaps))
    assert b'"kind"' not in body
    before = ArchivedLog(archived.store, decode(body, "key"))
    end = archived.end_offset
    assert offsets(TieredLog(None, before), 0, end) == offsets(TieredLog(None, archived), 0, end)


def test_nothing_is_said_to_be_missing(holed: Holed) -> None:
    log, archived = holed
    coverage = coverage_of(TieredLog(log, archived))
    assert coverage.gaps == ()
    assert coverage.archive is not None
    assert coverage.archive.offsets == ((0, archived.end_offset),)
    scrub = CoverageCheck(archived.manifest)
    assert [finding for entry in archived.manifest.entries for finding in scrub.add(entry)] == []


def test_a_restore_has_no_hole_there(holed: Holed) -> None:
    _, archived = holed
    steps = list(plan_restore(Entries.of(archived.store, archived.manifest), None, {}).steps())
    assert [type(step) for step in steps] == [Link] * len(archived.manifest.entries)


def test_a_damaged_segment_before_an_emptied_one_stays_missing(folder: Folder) -> None:
    first, second, third, *_ = bases(folder)
    damage(folder, first)
    empty(folder, second)
    store = MemoryStore()
    _, manifest = offloaded(folder, store)
    (gap,) = manifest.gaps
    assert (gap.start, gap.end, gap.is_of_compaction) == (first, third, False)
    assert gap.reason.startswith("refused: ")
    with pytest.raises(MissingRange, match="refused"):
        offsets(TieredLog(None, ArchivedLog(store, manifest)), 0, manifest.end_offset)


def test_what_was_damaged_and_is_emptied_later_is_missing_no_more(folder: Folder) -> None:
    first, second, *_ = bases(folder)
    damage(folder, first)
    store = MemoryStore()
    _, before = offloaded(folder, store)
    assert [gap.is_of_compaction for gap in before.gaps] == [False]
    empty(folder, first)
    _, after = offloaded(folder, store, "b")
    assert [(gap.start, gap.end, gap.kind) for gap in after.gaps] == [(first, second, COMPACTED)]
    store.calls.clear()
    offloaded(folder, store, "c")
    assert verbs(store.calls)[:2] == ["list", "get"]
    assert not {"put_if_absent", "upload"} & set(verbs(store.calls))
