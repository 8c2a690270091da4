"""Fetch and ListOffsets over both tiers: the bytes and the numbers that the log alone would give, whichever tier has them."""

from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import Door, MemoryStore
from golden_logs import broker_logs, live, partitions
from logs_to_archive import copy_of, cut_finer, drop_segments_below, local_logs, offload_all, path_of, set_checkpoint
from tiered_worlds import ARCHIVED, World, batches_of, expected_fetch

from local_log.errors import Corrupt, Invalid, OffsetOutOfRange
from local_log.formats.batches import decode, scan
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from local_log.formats.indexes.transaction import read_txn_index
from local_log.formats.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    TimestampOffset,
)
from local_log.formats.record_batch.projection import Projection
from remote.manifest.store import load_newest
from remote.read.log import ArchivedLog
from remote.read.plan import MissingRange
from tiering.read.fetched import Fetched
from tiering.read.tiered_log import Isolation, TieredLog

COMMITTED = Isolation.read_committed
SIZES = (0, 1, 700, 5_000, 40_000, 1 << 30)


@pytest.mark.parametrize("partition", partitions())
@pytest.mark.slow
def test_a_fetch_gives_the_log_s_own_bytes_from_any_offset_whatever_its_size(world: World, shape: str, partition: str) -> None:
    log, batches = world.log(shape, partition), batches_of(world.folders["local alone"], partition)
    start, end = log.log_start_offset, log.end_offset()
    edges = {b.base_offset + d for b in batches[:: max(1, len(batches) // 12)] for d in (-1, 0, 1)} | {start, end - 1, end}
    for offset in sorted(o for o in edges if start <= o <= end):
        for size in SIZES:
            fetched = log.fetch(offset, size)
            assert (fetched.records, fetched.next_offset) == expected_fetch(batches, offset, size, end), (offset, size)
            assert fetched.aborted == ()


@pytest.mark.parametrize("partition", ["g-txn-0", "g-mixed-0", "g-epochs-0", "g-compacted-txn-0"])
def test_fetches_one_after_the_other_give_every_batch_once(world: World, shape: str, partition: str) -> None:
    log, batches = world.log(shape, partition), batches_of(world.folders["local alone"], partition)
    for size in (1, 20_000):
        offset, got = log.log_start_offset, []
        while (fetched := log.fetch(offset, size)).records:
            got.append(fetched.records)
            assert fetched.next_offset > offset
            offset = fetched.next_offset
        assert offset >= log.end_offset() - 1
        assert b"".join(got) == b"".join(b.body for b in batches if b.last_offset >= log.log_start_offset)


def test_a_fetch_where_compaction_has_left_no_batch_is_empty(world: World) -> None:
    archived = world.archived("g-mixed-0").archived
    assert archived is not None
    last = archived.manifest.entries[-1]
    end = last.end_offset + 50
    emptied = replace(archived.manifest, entries=(*archived.manifest.entries[:-1], replace(last, end_offset=end)))
    log = TieredLog(None, replace(archived, manifest=emptied))
    assert log.end_offset() == end
    for offset in (last.end_offset, end - 1, end):
        assert log.fetch(offset, 1 << 30) == Fetched(b"", offset, ())
    assert log.fetch(last.last_offset, 1 << 30).next_offset == last.last_offset + 1


def test_one_fetch_goes_across_the_boundary_of_the_tiers(world: World) -> None:
    for partition in ARCHIVED:
        for shape in ("archived dropped", "some archived dropped"):
            log = world.log(shape, partition)
            assert log.local is not None
            border = log.local.log_start_offset
            batches = batches_of(world.folders["local alone"], partition)
            across = log.fetch(border - 1, 1 << 30)
            assert (across.records, across.next_offset) == expected_fetch(batches, border - 1, 1 << 30, log.end_offset())
            assert across.next_offset > border


def test_a_local_log_that_starts_within_a_batch_gives_no_batch_twice(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["some archived dropped"], tmp_path / "logs")
    batches = batches_of(world.folders["local alone"], "g-mixed-0")
    within = next(b for b in batches if b.last_offset > b.base_offset and b.base_offset > 1_500)
    set_checkpoint(folder / "log-start-offset-checkpoint", "g-mixed-0", within.last_offset)
    log = TieredLog(local_logs(folder)["g-mixed-0"], world.log("all in both", "g-mixed-0").archived)
    assert log.local is not None
    assert log.local.log_start_offset == within.last_offset
    for offset in (within.base_offset - 1, within.base_offset, within.last_offset):
        fetched = log.fetch(offset, 1 << 30)
        assert (fetched.records, fetched.next_offset) == expected_fetch(batches, offset, 1 << 30, log.end_offset())


@pytest.mark.parametrize("partition", ["g-txn-0", "g-compacted-txn-0"])
def test_a_committed_fetch_ends_at_the_last_stable_offset_and_lists_what_was_aborted_in_it(
    world: World, shape: str, partition: str
) -> None:
    log, batches = world.log(shape, partition), batches_of(world.folders["local alone"], partition)
    files = (world.folders["local alone"] / partition).glob("*.txnindex")
    everything = {t for file in files for t in read_txn_index(file.read_bytes())}
    end = live(partition)["last_stable_offset"]
    for offset in range(log.log_start_offset, end, 131):
        for size in (1, 6_000, 1 << 30):
            fetched = log.fetch(offset, size, COMMITTED)
            assert (fetched.records, fetched.next_offset) == expected_fetch(batches, offset, size, end)
            among = {t for t in everything if t.first_offset < fetched.next_offset and t.last_offset >= offset}
            assert set(fetched.aborted) == among
            assert len(fetched.aborted) == len(among)
    assert log.fetch(end, 1 << 30, COMMITTED) == Fetched(b"", end, ())


def test_without_one_message_at_least_a_first_batch_that_is_too_large_is_not_given(world: World, shape: str) -> None:
    log = world.log(shape, "g-big-0")
    first = log.fetch(0, 0).records
    assert len(first) > 1_000
    assert log.fetch(0, len(first) - 1, min_one_message=False) == Fetched(b"", 0, ())
    assert log.fetch(0, len(first), min_one_message=False).records == first
    assert log.fetch(0, 0, min_one_message=False).records == b""


def test_a_fetch_outside_the_log_is_out_of_range_and_one_at_its_end_is_empty(world: World, shape: str) -> None:
    log = world.log(shape, "g-trimmed-0")
    for offset in (-1, 0, 1_233, 3_001):
        with pytest.raises(OffsetOutOfRange) as raised:
            log.fetch(offset, 1_000)
        assert (raised.value.offset, raised.value.start) == (offset, 1_234)
    assert log.fetch(3_000, 1_000) == Fetched(b"", 3_000, ())
    with pytest.raises(Invalid):
        log.fetch(2_000, -1)


def test_between_high_watermark_and_log_end_there_is_nothing_yet(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "logs")
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-mixed-0", 1_000)
    log, batches = TieredLog(local_logs(folder)["g-mixed-0"], None), batches_of(folder, "g-mixed-0")
    for offset in (1_000, 1_500, 2_319):
        assert log.fetch(offset, 1 << 30) == Fetched(b"", offset, ())
    fetched = log.fetch(900, 1 << 30)
    assert (fetched.records, fetched.next_offset) == expected_fetch(batches, 900, 1 << 30, 1_000)
    with pytest.raises(OffsetOutOfRange):
        log.fetch(2_320, 1)


def test_a_fetch_over_a_hole_gives_what_comes_before_it_and_then_says_so(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path / "torn", "g-mixed-0")
    cut_finer(folder / "g-mixed-0", 12)
    batches = batches_of(folder, "g-mixed-0")
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-mixed-0", 900)
    store = MemoryStore()
    offload_all(folder, store)
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-mixed-0", 2_319)
    drop_segments_below(folder, "g-mixed-0", 1_500)
    local = local_logs(folder)["g-mixed-0"]
    newest = load_newest(store, path_of(local))
    assert newest is not None
    log, hole = TieredLog(local, ArchivedLog(store, newest.manifest)), newest.manifest.end_offset
    fetched = log.fetch(0, 1 << 30)
    assert (fetched.records, fetched.next_offset) == expected_fetch(batches, 0, 1 << 30, hole)
    for offset in (hole, local.log_start_offset - 1):
        with pytest.raises(MissingRange):
            log.fetch(offset, 1 << 30)
    assert log.fetch(local.log_start_offset, 1 << 30).records


def test_a_damaged_batch_is_not_handed_on(world: World) -> None:
    archived = world.archived("g-mixed-0").archived
    assert archived is not None
    store = MemoryStore()
    store.objects.update(world.store.objects)
    entry = archived.manifest.entries[0]
    key = archived.manifest.path.segment(entry.log_name)
    store.objects[key] = store.objects[key][:-1] + bytes([store.objects[key][-1] ^ 1])
    with pytest.raises(Corrupt) as raised:
        TieredLog(None, replace(archived, store=store)).fetch(entry.last_offset, 10)
    assert raised.value.file == key


def test_a_fetch_asks_for_about_what_it_gives(world: World) -> None:
    archived = world.archived("g-codec-none-0").archived
    assert archived is not None
    door = Door(world.store)
    log = TieredLog(None, replace(archived, store=door, first_bytes=4_096))
    log.fetch(700, 20_000)
    ranges = [call[2:] for call in door.calls if call[1].endswith(".log")]
    assert len(ranges) == 1
    assert sum(end - start for start, end in ranges) <= 20_000 + (32 << 10)


# ListOffsets


def told(found: TimestampOffset | None) -> list[int]:
    return [-1, -1, -1] if found is None else [found.offset, found.timestamp, found.leader_epoch]


@pytest.mark.parametrize("partition", partitions())
@pytest.mark.slow
def test_list_offsets_answers_by_number_and_by_time_as_the_broker_did(world: World, shape: str, partition: str) -> None:
    log, answers = world.log(shape, partition), live(partition)
    assert told(log.list_offsets(LATEST)) == answers["latest"]
    assert told(log.list_offsets(EARLIEST)) == answers["earliest"]
    assert told(log.list_offsets(MAX_TIMESTAMP)) == answers["max_timestamp"]
    wrong = [asked for asked, *answer in answers["offset_for_timestamp"] if told(log.list_offsets(asked)) != answer]
    assert wrong == []
    if shape == "local alone":
        assert told(log.list_offsets(EARLIEST_LOCAL)) == answers["earliest_local"]
        assert told(log.list_offsets(LATEST_TIERED)) == answers["latest_tiered"]
        assert log.list_offsets(EARLIEST_PENDING_UPLOAD) is None


@pytest.mark.parametrize("partition", ARCHIVED)
def test_what_is_pending_starts_where_the_archive_ends_with_that_offset_s_epoch(world: World, partition: str) -> None:
    for shape in ("all in both", "archived dropped", "some archived dropped"):
        log = world.log(shape, partition)
        assert log.archived is not None
        assert log.local is not None
        pending, tiered = log.list_offsets(EARLIEST_PENDING_UPLOAD), log.list_offsets(LATEST_TIERED)
        assert pending is not None
        assert tiered is not None
        assert (pending.offset, tiered.offset) == (log.archived.end_offset, log.archived.end_offset - 1)
        assert pending.leader_epoch == log.local.at(pending.offset).leader_epoch


def test_where_nothing_is_archived_yet_all_is_pending_unless_the_local_log_has_lost_its_start(world: World) -> None:
    whole = world.log("all in both", "g-mixed-0")
    cut = world.log("archived dropped", "g-mixed-0")
    assert whole.archived is not None
    none = replace(whole.archived, manifest=replace(whole.archived.manifest, entries=()))
    assert told(TieredLog(whole.local, none).list_offsets(EARLIEST_PENDING_UPLOAD)) == told(whole.earliest())
    assert TieredLog(cut.local, none).list_offsets(EARLIEST_PENDING_UPLOAD) is None
    assert TieredLog(cut.local, none).list_offsets(LATEST_TIERED) is None


@pytest.mark.slow
def test_for_committed_readers_the_log_ends_at_the_last_stable_offset(world: World, shape: str) -> None:
    log, stable = world.log(shape, "g-txn-0"), live("g-txn-0")["last_stable_offset"]
    assert stable < log.end_offset()
    latest = log.list_offsets(LATEST, COMMITTED)
    assert latest is not None
    assert latest.offset == stable
    records = world.records["g-txn-0"]
    times = set(records.column("timestamp").slice(3_000).to_pylist()) | {MAX_TIMESTAMP}
    found = {asked: log.list_offsets(asked) for asked in times}
    assert any(answer is not None and answer.offset >= stable for answer in found.values())
    for asked, answer in found.items():
        assert log.list_offsets(asked, COMMITTED) == (answer if answer is not None and answer.offset < stable else None)


def test_a_number_that_means_nothing_is_refused(world: World) -> None:
    with pytest.raises(Invalid):
        world.log("all in both", "g-txn-0").list_offsets(-7)


def test_an_older_client_gets_every_record_that_its_format_can_have_across_the_tiers(world: World, shape: str) -> None:
    log = world.log(shape, "g-codec-lz4-0")
    first_offset = log.log_start_offset
    parts = list(log.fetch_older(first_offset, 1 << 30, to_magic=1))
    messages, _ = scan(b"".join(parts))
    wanted = [b for records in log.read(first_offset, want=Projection()) for b in records.column("offset").to_pylist()]
    assert len(parts) > 1
    assert messages.are_messages
    assert [o for _, records in decode(b"".join(parts), messages) for o in records.column("offset").to_pylist()] == wanted
    assert [len(part) for part in log.fetch_older(first_offset, 1, to_magic=1)] == [len(parts[0])]
    with pytest.raises(OffsetOutOfRange):
        next(log.fetch_older(log.end_offset() + 1_000_000, 1, to_magic=0))
