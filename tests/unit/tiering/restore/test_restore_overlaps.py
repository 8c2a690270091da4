"""Two replicas rolled at different offsets, and both were archived: what is restored has each offset once."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from golden_logs import broker_logs
from logs_to_archive import all_records, cut_finer, for_applications, local_logs, offload_all, path_of
from restored_logs import downloaded, files, plans, run, run_soundly

from local_log.engine.config import LogConfig
from local_log.engine.unified_log import open_log
from local_log.errors import Corrupt
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.indexes.offset import read_offset_index
from local_log.os_disk import OsWritableDisk
from remote.manifest import codec
from remote.manifest.gaps import Gap
from remote.manifest.model import missing_ranges
from remote.manifest.segment_entry import SegmentEntry
from remote.manifest.store import load_newest
from remote.segment.repair import checked_copy
from remote.segment.stitch import DivergedSegment, Link, MissingOffsets
from remote.segment.upload import copy_segment
from tiering.offload.copy import segment_data

TXN = "g-txn-0"


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = broker_logs(tmp_path_factory.mktemp("one"), TXN)
    cut_finer(folder / TXN, 9)
    return folder


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another replica of the same log, cut at other offsets."""
    folder = broker_logs(tmp_path_factory.mktemp("other"), TXN)
    cut_finer(folder / TXN, 7)
    return folder


def copies(store: MemoryStore, replica: Path, prefix: str) -> list[SegmentEntry]:
    """All inactive segments of a replica in the store, named by nobody yet."""
    log, ids = local_logs(replica)[TXN], CountingIds(prefix)
    inactive = (checked_copy(segment_data(log, s)) for s in log.segments[:-1])
    return [copy_segment(store, path_of(log), one, FixedClock(), ids) for one in inactive]


def name(store: MemoryStore, replica: Path, entries: Iterable[SegmentEntry]) -> None:
    """A newest manifest with these entries, as replicas that took turns could have made it."""
    offload_all(replica, store)
    newest = load_newest(store, plans(store)[0].manifest.path)
    assert newest is not None
    after = replace(
        newest.manifest,
        version=newest.manifest.version + 1,
        parent_sha256=newest.sha256,
        entries=tuple(sorted(entries, key=lambda e: (e.base_offset, e.end_offset))),
    )
    after = replace(after, gaps=tuple(Gap(start, end, "lost", 7) for start, end in missing_ranges(after)))
    store.put_if_absent(after.path.manifest(after.version), codec.encode(after))


def batches(replica: Path, start: int, end: int) -> list[tuple[int, int]]:
    """Base and last offset of the batches with several records that lie in a range."""
    return [
        (base, last)
        for chunk in local_logs(replica)[TXN].chunks(start, end)
        for base, last in zip(chunk.batches.base_offset.tolist(), chunk.batches.last_offset.tolist(), strict=True)
        if start < base < last < end
    ]


def check_restored(to: Path, replica: Path, end: int) -> None:
    """Each record once, indexes that fit, the aborted transactions, and a log that our engine opens as it is."""
    log, source = local_logs(to)[TXN], local_logs(replica)[TXN]
    assert for_applications(all_records(log), 0, end).equals(for_applications(all_records(source), 0, end))
    decided = [{t for t in of.aborted(0, end) if t.last_offset < end} for of in (log, source)]
    assert decided[0] == decided[1]
    for segment in log.segments:
        index = read_offset_index(segment.read(".index") or b"", segment.base_offset)
        starts = {int(p) + chunk.position for chunk in segment.chunks(segment.base_offset) for p in chunk.batches.positions}
        assert set(index.positions.tolist()) <= starts
    open_target = open_log(
        OsWritableDisk(), str(to / TXN), LogConfig(), lambda: 0, lambda: 0.0, log_start_offset=0, recovery_point=0, clean=False
    )
    assert open_target.log_end_offset == log.log_end_offset
    assert [s.base_offset for s in open_target.local.segments] == [s.base_offset for s in log.segments]
    open_target.close()


def test_segments_of_both_replicas_make_one_log(one: Path, other: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    ours, theirs = copies(store, one, "a"), copies(store, other, "b")
    lost = ours[3]  # and of the other replica what fills the hole, as little as may be
    entries = [e for e in ours if e is not lost]
    entries += [e for e in theirs if e.base_offset < lost.end_offset and e.end_offset > lost.base_offset]
    name(store, one, entries)
    assert any(isinstance(s, Link) and not s.is_whole for s in plans(store)[0].steps())
    run_soundly(store, str(tmp_path / "to"))
    check_restored(tmp_path / "to", one, max(e.end_offset for e in entries))


def test_of_two_whole_replicas_no_segment_is_cut(one: Path, other: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    ours, theirs = copies(store, one, "a"), copies(store, other, "b")
    name(store, one, [*ours, *theirs])
    links = [s for s in plans(store)[0].steps() if isinstance(s, Link)]
    end = max(e.end_offset for e in (*ours, *theirs))
    assert all(link.is_whole for link in links[:-1])
    run_soundly(store, str(tmp_path / "to"))
    check_restored(tmp_path / "to", one, end)


def test_a_second_restore_of_cut_segments_changes_nothing(one: Path, other: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    ours, theirs = copies(store, one, "a"), copies(store, other, "b")
    name(store, one, [*ours[:3], *theirs, *ours[4:]])
    run_soundly(store, str(tmp_path / "to"))
    before = files(tmp_path / "to")
    again = run_soundly(store, str(tmp_path / "to"))
    assert files(tmp_path / "to") == before
    cut = sum(s.entry.log_size for s in plans(store)[0].steps() if isinstance(s, Link) and not s.is_whole)
    assert downloaded(again) == cut  # what they should be is known only by cutting them again


def test_a_hole_between_segments_is_told_and_the_log_goes_on_behind_it(one: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    entries = copies(store, one, "a")
    lost = entries[3]
    name(store, one, [e for e in entries if e is not lost])
    steps = [done.step for done in run_soundly(store, str(tmp_path / "to"))]
    assert MissingOffsets(lost.base_offset, lost.end_offset, "lost") in steps
    log = local_logs(tmp_path / "to")[TXN]
    assert [s.base_offset for s in log.segments] == [e.base_offset for e in entries if e is not lost] + [entries[-1].end_offset]


def test_a_segment_of_another_history_is_left_out(one: Path, other: Path, tmp_path: Path) -> None:
    store = MemoryStore()
    ours, theirs = copies(store, one, "a"), copies(store, other, "b")
    stray = replace(theirs[2], leader_epochs=(EpochEntry(7, theirs[2].base_offset),))
    name(store, one, [*ours, stray])
    results = run_soundly(store, str(tmp_path / "to"))
    assert [done.step for done in results if isinstance(done.step, DivergedSegment)] == [
        DivergedSegment(stray, stray.base_offset)
    ]
    check_restored(tmp_path / "to", one, ours[-1].end_offset)


def test_segments_whose_batches_do_not_meet_are_refused(one: Path, other: Path, tmp_path: Path) -> None:
    """The first one ends, so its entry says, in the middle of a batch of the second: they cannot be of one log."""
    store = MemoryStore()
    ours, theirs = copies(store, one, "a"), copies(store, other, "b")
    before, first, covering = next(
        (b, f, c)
        for b, f in pairwise(ours)
        for c in theirs
        if f.base_offset < c.base_offset < f.end_offset < c.end_offset and batches(one, c.base_offset, f.end_offset)
    )
    base, last = batches(one, covering.base_offset, first.end_offset)[-1]
    torn = replace(first, end_offset=last, last_offset=base)
    name(store, one, [*ours[: ours.index(before) + 1], torn, covering])
    errors = [done.error for done in run(store, str(tmp_path / "to")) if done.error]
    assert [type(e) for e in errors] == [Corrupt]
    assert "these are not the same log's" in str(errors[0])


@pytest.mark.parametrize("offset", [0, 1, 102, 103, 777, 1000, 2000, 2743, 2744, 10**6])
def test_nothing_at_or_above_a_limit_is_restored_and_less_than_a_batch_below_it_is_lacking(
    one: Path, tmp_path: Path, offset: int
) -> None:
    store = MemoryStore()
    offload_all(one, store)
    archive_end = plans(store)[0].manifest.end_offset
    run_soundly(store, str(tmp_path / "to"), until_offset=offset)
    log = local_logs(tmp_path / "to")[TXN]
    end = min(offset, archive_end)
    if offset < archive_end:
        assert log.log_end_offset <= offset
    kept = min(log.log_end_offset, end)
    lost = for_applications(all_records(local_logs(one)[TXN]), kept, end)
    batch = next(
        (
            b
            for c in local_logs(one)[TXN].chunks(kept, kept + 1)
            for b in zip(c.batches.base_offset.tolist(), c.batches.last_offset.tolist(), strict=True)
            if b[0] <= kept <= b[1]
        ),
        None,
    )
    assert len(lost) == 0 or (batch is not None and batch[0] == kept and batch[1] >= end)
    if kept:
        check_restored(tmp_path / "to", one, kept)
