"""Compacted topics: segments as they stand, with holes in their offsets, merged or emptied; what was archived stays."""

from pathlib import Path

import pytest
from archive_fakes import MemoryStore, verbs
from golden_logs import broker_logs
from logs_to_archive import copy_of, cut_finer, local_logs, path_of
from made_manifests import assert_sound_archive
from one_offload import named, run

from local_log.log_reader import LogReader
from remote.manifest.gaps import NO_BATCH
from remote.read.log import ArchivedLog
from tiering.offload.due import plan
from tiering.offload.plan import Action

COMPACTED = ("g-compacted-0", "g-compacted-txn-0")


@pytest.fixture(params=COMPACTED)
def logs(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    folder = broker_logs(tmp_path / "logs", request.param)
    cut_finer(folder / request.param, 5)
    return folder, request.param


def files(folder: Path, base: int) -> list[Path]:
    return [f for f in folder.glob(f"{base:020d}.*") if f.suffix != ".snapshot"]


def empty(folder: Path, base: int) -> None:
    """What the cleaner leaves of a segment whose records have all been written again since."""
    for file in files(folder, base):
        file.write_bytes(b"")


def inactive(log: LogReader) -> list[tuple[int, int]]:
    return [(s.base_offset, s.next_base_offset) for s in log.segments if s.next_base_offset is not None]


def batches(log: LogReader | ArchivedLog, start: int, end: int) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for chunk in log.chunks(start, end):
        found += zip(chunk.batches.base_offset.tolist(), chunk.batches.last_offset.tolist(), strict=True)
    return [(base, last) for base, last in found if start <= last and base < end]


def test_holes_in_the_offsets_are_archived_as_they_stand_and_no_gaps(logs: tuple[Path, str]) -> None:
    folder, name = logs
    log, store = local_logs(folder)[name], MemoryStore()
    run(store, log)
    manifest = assert_sound_archive(store, path_of(log))
    assert named(manifest) == inactive(log)
    assert manifest.gaps == ()
    fewer = [e for e in manifest.entries if e.record_count < e.end_offset - e.base_offset]
    assert fewer, "an entry says by its records that offsets are missing in it"
    end = manifest.end_offset
    assert batches(ArchivedLog(store, manifest), 0, end) == batches(log, 0, end)


def test_what_was_archived_stays_when_the_local_log_is_compacted_further(logs: tuple[Path, str], tmp_path: Path) -> None:
    folder, name = logs
    log, store = local_logs(folder)[name], MemoryStore()
    run(store, log)
    before = assert_sound_archive(store, path_of(log))
    later = copy_of(folder, tmp_path / "later")
    (first, _), (second, _), *_ = inactive(log)
    body = (later / name / f"{second:020d}.log").read_bytes()
    for base in (first, second):  # both become one, of which only the second's batches are left
        for file in files(later / name, base):
            file.unlink()
    (later / name / f"{first:020d}.log").write_bytes(body)
    store.calls.clear()
    results = run(store, local_logs(later)[name], prefix="b")
    assert [d.error for d in results if d.error] == []
    assert {d.decision.action for d in results if d.decision} == {Action.archived, Action.keep}
    assert verbs(store.calls) == ["list", "get"]
    assert assert_sound_archive(store, path_of(log)) == before


@pytest.mark.parametrize("which", [[1], [2], [1, 2], [1, 3], [2, 3]])
def test_an_emptied_segment_s_offsets_go_with_the_segment_before_it(logs: tuple[Path, str], which: list[int]) -> None:
    folder, name = logs
    ranges = inactive(local_logs(folder)[name])
    which = [at for at in which if at < len(ranges)]
    for at in which:
        empty(folder / name, ranges[at][0])
    log, store = local_logs(folder)[name], MemoryStore()
    results = run(store, log)
    assert [d.error for d in results if d.error] == []
    told = [d.decision.segment.base_offset for d in results if d.decision and d.decision.reason == NO_BATCH]
    assert told == [ranges[at][0] for at in which]
    manifest = assert_sound_archive(store, path_of(log))
    assert manifest.gaps == ()
    assert manifest.end_offset == ranges[-1][1]
    assert [base for base, _ in named(manifest)] == [base for at, (base, _) in enumerate(ranges) if at not in which]
    assert batches(ArchivedLog(store, manifest), 0, manifest.end_offset) == batches(log, 0, manifest.end_offset)
    store.calls.clear()
    assert {d.decision.action for d in run(store, log, prefix="b") if d.decision} == {Action.archived, Action.keep}
    assert verbs(store.calls) == ["list", "get"]


def test_emptied_segments_at_the_very_start_are_a_gap_that_says_so(logs: tuple[Path, str]) -> None:
    folder, name = logs
    ranges = inactive(local_logs(folder)[name])
    empty(folder / name, 0)
    log, store = local_logs(folder)[name], MemoryStore()
    assert [d.error for d in run(store, log) if d.error] == []
    manifest = assert_sound_archive(store, path_of(log))
    assert named(manifest) == ranges[1:]
    assert [(g.start, g.end, g.reason) for g in manifest.gaps] == [(*ranges[0], NO_BATCH)]
    store.calls.clear()
    run(store, log, prefix="b")
    assert verbs(store.calls) == ["list", "get"]


def test_an_emptied_segment_that_is_not_stable_yet_waits(logs: tuple[Path, str]) -> None:
    folder, name = logs
    ranges = inactive(local_logs(folder)[name])
    empty(folder / name, ranges[1][0])
    log = local_logs(folder)[name]
    below = LogReader(log.disk, log.folder, log.partition, log.segments, 0, ranges[1][1] - 1)
    decisions = plan(below, MemoryStore()).decisions
    assert [(d.action, d.segment.end_offset) for d in decisions[:2]] == [
        (Action.copy, ranges[0][1]),
        (Action.keep, ranges[1][1]),
    ]
