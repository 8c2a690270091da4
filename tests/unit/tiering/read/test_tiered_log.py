"""One log over both tiers: a reader cannot tell which of them answered."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from archive_fakes import MemoryStore
from golden_logs import broker_logs, live, partitions
from logs_to_archive import (
    copy_of,
    cut_finer,
    drop_segments_below,
    for_applications,
    local_logs,
    offload_all,
    offsets_of,
    path_of,
    set_checkpoint,
    table_of,
)
from tiered_worlds import ARCHIVED, World

from local_log.errors import OffsetOutOfRange
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.formats.list_offsets import TimestampOffset
from local_log.formats.record_batch.projection import Projection
from remote.manifest.store import load_newest
from remote.read.log import ArchivedLog
from remote.read.plan import MissingRange
from tiering.read.tiered_log import Isolation, TieredLog

COMMITTED = Isolation.read_committed


def answer(found: TimestampOffset | None) -> list[int]:
    """As the broker's ListOffsets answers: offset, timestamp, leader epoch."""
    return [-1, -1, -1] if found is None else [found.offset, found.timestamp, found.leader_epoch]


# records


@pytest.mark.slow
def test_the_local_log_really_starts_where_the_shape_says(world: World) -> None:
    for partition in ARCHIVED:
        dropped = world.log("archived dropped", partition)
        assert dropped.local is not None
        assert dropped.archived is not None
        assert dropped.local.log_start_offset == dropped.archived.end_offset
        some = world.log("some archived dropped", partition)
        assert some.local is not None
        assert some.archived is not None
        assert some.local.log_start_offset < some.archived.end_offset


@pytest.mark.parametrize("partition", ARCHIVED)
@pytest.mark.slow
def test_reads_give_the_brokers_records_whichever_tier_has_them(world: World, shape: str, partition: str) -> None:
    log, records = world.log(shape, partition), world.records[partition]
    first, last = log.log_start_offset, log.end_offset()
    assert (first, last) == (live(partition)["earliest"][0], live(partition)["latest"][0])
    local_start = world.log("archived dropped", partition).local.log_start_offset  # type: ignore[union-attr]
    edges = {first, last, *(local_start + d for d in (-1, 0, 1)), *range(first, last, max(1, (last - first) // 7))}
    for start in sorted(o for o in edges if first <= o <= last):
        expected = for_applications(records, start, last)
        assert table_of(log.read(start), expected).equals(expected), start
        expected = for_applications(records, start, start + 60)
        assert table_of(log.read(start, start + 60), expected).equals(expected), start


@pytest.mark.parametrize("partition", partitions())
def test_read_committed_gives_what_the_broker_gave(world: World, shape: str, partition: str) -> None:
    log = world.log(shape, partition)
    committed = live(partition)["read_committed_offsets"]
    assert log.end_offset(COMMITTED) == live(partition)["last_stable_offset"]
    assert offsets_of(log.read(log.log_start_offset, isolation=COMMITTED)) == committed
    assert sum(b.num_rows for b in log.read(log.log_start_offset)) == live(partition)["read_uncommitted_count"]


def test_read_committed_across_the_boundary_from_anywhere(world: World, shape: str) -> None:
    log = world.log(shape, "g-txn-0")
    committed = live("g-txn-0")["read_committed_offsets"]
    for start in range(0, 3_671, 173):
        for end in (start + 40, start + 900, None):
            got = offsets_of(log.read(start, end, COMMITTED))
            assert got == [o for o in committed if o >= start and (end is None or o < end)]


def test_only_the_wanted_columns_come_from_either_tier(world: World, shape: str) -> None:
    log = world.log(shape, "g-mixed-0")
    want = Projection(key=False, headers=False, timestamp_type=True)
    for batch in log.read(0, want=want):
        assert batch.schema.names == ["offset", "timestamp", "value", "timestamp_type"]


def test_a_read_that_ends_before_it_starts_gives_nothing(world: World, shape: str) -> None:
    log = world.log(shape, "g-txn-0")
    assert list(log.read(700, 700)) == list(log.read(700, 600)) == list(log.read(3_706)) == []
    assert list(log.read(3_680, isolation=COMMITTED)) == []


def test_an_offset_outside_the_log_is_out_of_range(world: World, shape: str) -> None:
    log = world.log(shape, "g-trimmed-0")
    for offset in (-1, 0, 1_233, 3_001):
        with pytest.raises(OffsetOutOfRange) as raised:
            list(log.read(offset))
        assert (raised.value.partition, raised.value.offset) == ("g-trimmed-0", offset)
        assert (raised.value.start, raised.value.end) == (1_234, 3_000)


# offsets


@pytest.mark.parametrize("partition", partitions())
def test_the_logs_own_offsets_are_those_that_the_broker_told(world: World, shape: str, partition: str) -> None:
    log, told = world.log(shape, partition), live(partition)
    assert answer(log.latest()) == told["latest"]
    assert answer(log.earliest()) == told["earliest"]
    assert answer(log.latest_timestamp()) == told["max_timestamp"]
    assert log.local is not None
    earliest_local, latest_tiered = log.earliest_local(), log.latest_tiered()
    assert earliest_local is not None
    assert earliest_local.offset == log.local.log_start_offset
    if shape in ("local alone", "all in both"):
        assert answer(earliest_local) == told["earliest_local"]
    if log.archived is None:
        assert answer(latest_tiered) == told["latest_tiered"]
    else:
        assert latest_tiered is not None
        assert latest_tiered.offset == log.archived.end_offset - 1
        assert latest_tiered.leader_epoch == epoch_at(world.records[partition], latest_tiered.offset)


def epoch_at(records: pa.Table, offset: int) -> int:
    row = int(np.searchsorted(records.column("offset").to_numpy(), offset, side="right")) - 1
    epoch: int = records.column("leader_epoch")[row].as_py()
    return epoch


@pytest.mark.parametrize("partition", partitions())
@pytest.mark.slow
def test_the_offset_for_a_time_is_the_one_that_the_broker_told(world: World, shape: str, partition: str) -> None:
    log = world.log(shape, partition)
    wrong = [
        (timestamp_ms, expected, found)
        for timestamp_ms, *expected in live(partition)["offset_for_timestamp"]
        if (found := answer(log.offset_for_time(timestamp_ms))) != expected
    ]
    assert wrong == []


def test_nothing_counts_above_the_high_watermark(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-mixed-0", 1_000)
    log = TieredLog(local_logs(folder)["g-mixed-0"], None)
    assert log.end_offset() == 1_000
    assert offsets_of(log.read(900)) == list(range(900, 1_000))
    latest = log.latest_timestamp()
    assert latest is not None
    assert latest.offset < 1_000
    assert log.offset_for_time(latest.timestamp + 1) is None
    with pytest.raises(OffsetOutOfRange):
        list(log.read(1_001))


# one tier alone


def test_the_archive_alone_is_a_log_that_ends_with_the_archive(world: World) -> None:
    for partition in ARCHIVED:
        log = world.archived(partition)
        assert log.archived is not None
        end = log.archived.end_offset
        assert (log.name, log.end_offset(), log.end_offset(COMMITTED)) == (partition, end, end)
        assert log.earliest_local() is None
        assert log.latest().offset == end
        assert answer(log.earliest()) == live(partition)["earliest"]
        expected = for_applications(world.records[partition], log.log_start_offset, end)
        assert table_of(log.read(log.log_start_offset), expected).equals(expected)
        with pytest.raises(OffsetOutOfRange):
            list(log.read(end + 1))


def test_a_tier_that_knows_less_does_not_shorten_the_log(world: World) -> None:
    both = world.log("all in both", "g-codec-none-0")
    assert both.local is not None
    lagging = TieredLog(replace(both.local, checkpointed_high_watermark=10), both.archived)
    assert both.archived is not None
    assert lagging.end_offset() == both.archived.end_offset
    assert lagging.log_start_offset == 0


def test_where_both_tiers_have_an_offset_the_local_log_answers(world: World) -> None:
    log = world.log("all in both", "g-txn-0")
    assert log.archived is not None
    without = TieredLog(log.local, replace(log.archived, store=NoStore()))
    assert offsets_of(without.read(0)) == offsets_of(log.read(0))
    assert without.offset_for_time(0) == log.offset_for_time(0)


class NoStore:
    """Nobody should ask it anything."""

    def get(self, key: str) -> bytes:
        raise AssertionError(key)

    def get_range(self, key: str, start: int, end: int) -> bytes:
        raise AssertionError(key)

    def head(self, key: str) -> Any:
        raise AssertionError(key)


# a hole between the tiers


@pytest.fixture(scope="module")
def torn(tmp_path_factory: pytest.TempPathFactory) -> tuple[TieredLog, int, int]:
    """A log whose local tier was cut before the archive had caught up, and the hole's ends."""
    folder = broker_logs(tmp_path_factory.mktemp("torn"), "g-mixed-0")
    cut_finer(folder / "g-mixed-0", 12)
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-mixed-0", 900)
    store = MemoryStore()
    offload_all(folder, store)
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-mixed-0", 2_319)
    drop_segments_below(folder, "g-mixed-0", 1_500)
    local = local_logs(folder)["g-mixed-0"]
    newest = load_newest(store, path_of(local))
    assert newest is not None
    start, end = newest.manifest.end_offset, local.log_start_offset
    assert 0 < start < end
    return TieredLog(local, ArchivedLog(store, newest.manifest)), start, end


Ends = Callable[[int, int], tuple[int, int | None]]

over_the_hole: list[Ends] = [
    lambda start, end: (0, None),
    lambda start, end: (start - 1, start + 1),
    lambda start, end: (start, start + 1),
    lambda start, end: (start + 1, end - 1),
    lambda start, end: (end - 1, end + 1),
    lambda start, end: (end - 1, None),
]


@pytest.mark.parametrize("ends", over_the_hole)
def test_a_read_over_a_hole_between_the_tiers_is_refused(torn: tuple[TieredLog, int, int], ends: Ends) -> None:
    log, hole_start, hole_end = torn
    start, end = ends(hole_start, hole_end)
    with pytest.raises(MissingRange) as raised:
        list(log.read(start, end))
    error = raised.value
    assert error.partition == "g-mixed-0"
    assert (error.start, error.end) == (max(start, hole_start), min(end or hole_end, hole_end))
    assert f"read from {error.end} on" in str(error)


def test_a_read_beside_a_hole_between_the_tiers_is_answered(torn: tuple[TieredLog, int, int]) -> None:
    log, hole_start, hole_end = torn
    assert offsets_of(log.read(0, hole_start)) == list(range(hole_start))
    assert offsets_of(log.read(hole_end)) == list(range(hole_end, 2_319))
