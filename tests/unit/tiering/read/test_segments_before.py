"""ListOffsets version 0 over both tiers: base offsets of segments, by when they were last written."""

import os
import shutil
from pathlib import Path

import pytest
from logs_to_archive import local_logs
from tiered_worlds import World

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.formats.list_offsets import EARLIEST, LATEST
from tiering.read.segments_before import segments_before
from tiering.read.tiered_log import TieredLog

PARTITION = "g-codec-lz4-0"
NOW = 4_000_000_000_000


def bases(folder: Path) -> list[int]:
    return sorted(int(file.stem) for file in (folder / PARTITION).glob("*.log"))


def written_by_offset(log: TieredLog, folder: Path) -> dict[int, int]:
    """Makes each local segment as old as the archived one of the same base offset; gives all times, oldest segment first."""
    assert log.archived is not None
    times = {entry.base_offset: entry.written_ms for entry in log.archived.entries}
    for base in bases(folder):
        written_ms = times.setdefault(base, max(times.values()) + 1)
        os.utime(folder / PARTITION / f"{base:020}.log", ns=(0, written_ms * 1_000_000))
    return times


def test_the_segments_of_both_tiers_are_listed_newest_first_and_the_end_before_them(world: World, shape: str) -> None:
    log, all_bases = world.log(shape, PARTITION), bases(world.folders["local alone"])
    assert segments_before(log, LATEST, NOW) == [log.end_offset(), *reversed(all_bases)]
    assert segments_before(log, EARLIEST, NOW) == [all_bases[0]]
    assert segments_before(log, NOW, NOW)[0] == log.end_offset()
    assert segments_before(log, NOW - 1, NOW) == [*reversed(all_bases)]


@pytest.mark.parametrize("shape", ["all in both", "some archived dropped", "archived dropped"])
def test_a_time_ends_the_list_at_the_last_segment_that_was_written_by_then(world: World, shape: str, tmp_path: Path) -> None:
    shutil.copytree(world.folders[shape] / PARTITION, tmp_path / PARTITION)
    shutil.copy(world.folders[shape] / HIGH_WATERMARK_CHECKPOINT, tmp_path)
    log = TieredLog(local_logs(tmp_path)[PARTITION], world.log(shape, PARTITION).archived)
    times = written_by_offset(log, tmp_path)
    offsets = list(times)
    assert len(offsets) > 3
    for written_ms in times.values():
        for asked in (written_ms - 1, written_ms):
            last = max((n for n, ms in enumerate(times.values()) if ms <= asked), default=-1)
            assert segments_before(log, asked, NOW) == offsets[: last + 1][::-1]
    assert segments_before(log, 0, NOW) == []


def test_the_archive_alone_lists_its_own_segments_and_its_end(world: World) -> None:
    log = world.archived(PARTITION)
    assert log.archived is not None
    own = [entry.base_offset for entry in log.archived.entries]
    assert segments_before(log, LATEST, NOW) == [log.end_offset(), *reversed(own)]


def test_what_is_not_replicated_is_hidden_behind_the_end_offset(world: World) -> None:
    log, all_bases = world.log("local alone", "g-codec-lz4-0"), bases(world.folders["local alone"])
    assert log.local is not None
    middle = all_bases[len(all_bases) // 2] + 1
    reader = type(log.local)(log.local.disk, log.local.folder, log.local.partition, log.local.segments, None, middle)
    hidden = TieredLog(reader, None)
    assert segments_before(hidden, LATEST, NOW) == [middle, *(base for base in reversed(all_bases) if base < middle)]
    assert segments_before(hidden, EARLIEST, NOW) == [all_bases[0]]


def test_an_empty_log_has_its_one_segment_and_no_end_of_its_own(world: World) -> None:
    log = world.log("local alone", "g-empty-0")
    assert segments_before(log, LATEST, NOW) == [0]
