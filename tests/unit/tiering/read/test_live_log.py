"""Reads over both tiers of a log that its process writes: the log's own bytes and answers, whichever tier has them."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from archive_fakes import MemoryStore
from hand_made import batch, record
from logs_to_archive import offsets_of
from owned_logs import PARTITION, OwnedLog, drained
from small_logs import NOW

from local_log.engine.memory_records import memory_batches
from local_log.errors import Conflict, NotFound, OffsetOutOfRange
from local_log.file_range import FileRange
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.chunks import Chunk
from local_log.formats.list_offsets import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
)
from remote.keys import PartitionPath
from remote.read.context import ReadContext
from remote.read.plan import MissingRange
from remote.read.read_ahead import ReadAhead
from tiering.read.archive_reads import ArchiveReads, SequentialRead
from tiering.read.coverage import coverage_of
from tiering.read.segments_before import segments_before
from tiering.read.tiered_log import Isolation, TieredLog

COMMITTED = Isolation.read_committed


@pytest.fixture
def at(tmp_path: Path) -> OwnedLog:
    """Offsets 0 to 59 in both tiers, the older ones in the archive alone."""
    at = OwnedLog(str(tmp_path))
    at.fill(30, step_ms=10)
    at.offload()
    assert at.drop(1_500) > 2
    return at


def border(at: OwnedLog) -> int:
    return at.log.offsets.local_log_start


def test_every_offset_is_read_whichever_tier_has_it(at: OwnedLog) -> None:
    assert 0 < border(at) < at.log.log_end_offset
    for offset in range(60):
        assert at.live.fetch(offset, 1 << 20).read().startswith(at.batches[offset // 2 * 2])
    for size in (1, 300, 2_000, 1 << 20):
        assert drained(at.live, 0, size) == at.expected(0)


def test_one_fetch_goes_across_the_border_with_a_part_of_each_tier(at: OwnedLog) -> None:
    first = border(at) - 4
    archived, local = at.live.fetch(first, 1 << 20).parts
    assert archived == at.expected(first, border(at))
    assert isinstance(local, FileRange)
    assert at.expected(border(at)) == local.read() + drained(at.live, border(at) + local.size // len(at.batches[0]) * 2)
    assert os.pread(local.fileno(), local.size, local.position) == local.read()
    one = len(at.batches[0])
    assert at.live.fetch(first, one * 2).parts == (at.expected(first, border(at)),)
    assert at.live.fetch(first, one * 2 + 7).parts == (at.expected(first, border(at)),)
    assert at.live.fetch(first, one * 3).read() == at.expected(first, first + 6)


def test_what_the_local_log_has_costs_no_request(at: OwnedLog) -> None:
    assert isinstance(at.store, MemoryStore)
    at.store.calls.clear()
    at.live.fetch(border(at), 1 << 20)
    for time in (LATEST, EARLIEST, EARLIEST_LOCAL):
        at.live.list_offsets(time)
    at.live.end_offset_for(0)
    assert at.store.calls == []
    assert at.loads == 0


def test_a_fetch_is_out_of_range_only_outside_of_both_tiers(at: OwnedLog) -> None:
    at.log.maybe_increment_log_start_offset(6)
    for offset in (-1, 5, 61):
        with pytest.raises(OffsetOutOfRange):
            at.live.fetch(offset, 100)
        with pytest.raises(OffsetOutOfRange):
            next(at.live.read(offset))
    for offset in (6, 59, 60):
        at.live.fetch(offset, 100)


def test_between_the_high_watermark_and_the_log_end_nothing_is_read(at: OwnedLog) -> None:
    at.log.is_only_replica = False
    at.fill(1)
    found = at.live.fetch(60, 1 << 20)
    assert (found.parts, found.high_watermark) == ((), 60)
    assert at.live.list_offsets(LATEST).offset == 60  # type: ignore[union-attr]
    assert drained(at.live, 0) == at.expected(0, 60)


def test_a_first_batch_is_given_although_it_is_too_large_unless_that_is_not_wanted(at: OwnedLog) -> None:
    assert at.live.fetch(0, 0).parts == (at.batches[0],)
    assert at.live.fetch(0, 1, min_one_message=False).parts == ()
    assert at.live.fetch(0, len(at.batches[0]), min_one_message=False).parts == (at.batches[0],)


def test_the_manifest_is_loaded_again_once_the_local_log_has_dropped_what_it_lacks(at: OwnedLog) -> None:
    drained(at.live, 0)
    loads = at.loads
    at.fill(30)
    at.offload()
    at.drop(0)
    assert drained(at.live, 0) == at.expected(0)
    assert at.loads == loads + 1


def meanwhile(at: OwnedLog, act: Callable[[], object]) -> None:
    """Does something when the next read has taken its offsets and looks for its segment."""
    segments = at.log.local.segments
    floor = segments.floor

    def acts_first(offset: int) -> object:
        segments.floor = floor  # type: ignore[method-assign]
        act()
        return floor(offset)

    segments.floor = acts_first  # type: ignore[method-assign,assignment]


def test_a_segment_dropped_while_a_fetch_looks_for_it_is_read_from_the_archive(at: OwnedLog) -> None:
    first = border(at)
    meanwhile(at, lambda: at.drop(0))
    assert at.live.fetch(first, 100).read().startswith(at.batches[first])
    assert border(at) > first
    assert at.loads == 1


def test_a_fetch_while_the_log_is_truncated_gives_what_is_left_of_it(at: OwnedLog) -> None:
    before = border(at) - 2
    meanwhile(at, lambda: at.log.truncate_to(58))
    assert drained(at.live, before) == at.expected(before, 58)
    meanwhile(at, lambda: at.log.truncate_to(56))
    with pytest.raises(OffsetOutOfRange):
        at.live.fetch(57, 100)


@pytest.mark.parametrize("point", ["sync_folder", "rename"])
def test_a_read_while_retention_renames_files_does_not_fail(at: OwnedLog, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = border(at)
    found: list[bytes] = []
    act = getattr(at.disk, point)

    def reads_first(*args: object) -> object:
        monkeypatch.undo()
        found.append(at.live.fetch(first, 1).read())
        return act(*args)

    monkeypatch.setattr(at.disk, point, reads_first)
    at.drop(0)
    assert found == [at.batches[first]]


def test_an_object_that_the_archives_retention_has_deleted_is_looked_for_by_the_newest_manifest(at: OwnedLog) -> None:
    drained(at.live, 0)
    start = at.expire(1_500, is_log_moved=False)
    at.expire(1_500, is_log_moved=False)
    assert 0 < start <= border(at)
    with pytest.raises(OffsetOutOfRange) as raised:
        at.live.fetch(0, 100)
    assert (raised.value.offset, raised.value.start) == (0, start)
    # A consumer that resets to the earliest offset now would be told the same for ever, until the log's start has followed.
    assert at.live.list_offsets(EARLIEST).offset == start  # type: ignore[union-attr]
    assert drained(at.live, start) == at.expected(start)
    at.log.maybe_increment_log_start_offset(start)
    assert at.live.fetch(start, 100).log_start_offset == start
    assert at.live.list_offsets(EARLIEST).offset == start  # type: ignore[union-attr]


def test_offsets_that_neither_tier_has_are_missing_not_out_of_range(at: OwnedLog) -> None:
    at.fill(12)
    at.log.roll()
    at.log.highest_offset_in_archive = at.log.log_end_offset - 1  # nobody has archived them
    end = at.reader.segments[-1].base_offset
    at.drop_without_asking()
    live = at.live
    live.refresh()
    archived = at.archived_end()
    assert archived < end
    with pytest.raises(MissingRange) as raised:
        live.fetch(archived, 100)
    assert (raised.value.start, raised.value.end) == (archived, end)
    assert live.fetch(archived - 2, 1 << 20).parts == (at.batches[archived - 2],)


def test_committed_fetches_list_what_was_aborted_on_both_sides_of_the_border(tmp_path: Path) -> None:
    at = OwnedLog(str(tmp_path))
    at.transaction(1, 6, commit=None)
    at.transaction(2, 4, commit=False)
    at.transaction(3, 4, commit=True)
    at.end_transaction(1, commit=False)
    at.transaction(2, 5, sequence=4, commit=False)
    at.fill(2)
    at.transaction(4, 1, commit=None)
    at.fill(2)
    everything = at.log.local.aborted(at.log.local.segments.first, 0, 1 << 40)
    at.offload()
    stable = at.log.last_stable_offset
    assert stable < at.log.high_watermark
    for local_bytes in (1_500, 700, 0):
        at.drop(local_bytes)
        assert 0 < border(at) < stable
        for offset in range(stable):
            found = at.live.fetch(offset, 1 << 20, COMMITTED)
            end = memory_batches(found.read())[-1].last_offset + 1
            assert end <= found.last_stable_offset == stable
            among = {t for t in everything if t.first_offset < end and t.last_offset >= offset}
            assert among <= set(found.aborted or ())
            assert len(set(found.aborted or ())) == len(found.aborted or ())
        assert drained(at.live, 0, isolation=COMMITTED) == at.expected(0, stable)
        assert offsets_of(at.live.read(0, isolation=COMMITTED)) == [11, 12, 13, 14, 23, 24, 25, 26]


def test_bytes_that_a_truncation_may_have_changed_are_not_given(at: OwnedLog) -> None:
    found = at.live.fetch(border(at) - 2, 1 << 20)
    records = at.live.read(border(at) - 2)
    at.log.truncate_to(58)
    with pytest.raises(Conflict):
        found.read()
    assert offsets_of(records)[-1] == 57


def test_list_offsets_answers_as_the_log_did_before_anything_left_it(tmp_path: Path) -> None:
    at = OwnedLog(str(tmp_path))
    at.fill(30, step_ms=10)
    times = [NOW - 1, *(NOW + ms for ms in range(0, 300, 7)), NOW + 290, NOW + 291, MAX_TIMESTAMP, LATEST, EARLIEST]
    before = [at.log.offset_for(time) for time in times]
    at.offload()
    for local_bytes in (1_500, 0):
        at.drop(local_bytes)
        assert [at.live.list_offsets(time) for time in times] == before
        special = [at.live.list_offsets(time) for time in (EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD)]
        archived = at.archived_end()
        assert [found.offset for found in special if found] == [border(at), archived - 1, archived]


def test_a_log_that_is_not_archived_yet_says_so(tmp_path: Path) -> None:
    at = OwnedLog(str(tmp_path))
    at.fill(3)
    assert at.live.list_offsets(LATEST_TIERED) is None
    assert drained(at.live, 0) == at.expected(0)
    at.log.roll()
    at.offload()
    at.live.refresh()
    assert at.live.list_offsets(LATEST_TIERED).offset == 5  # type: ignore[union-attr]


def test_a_commit_while_the_manifest_is_loaded_makes_it_be_loaded_again(at: OwnedLog) -> None:
    load = at.live.load

    def commits_meanwhile() -> object:
        at.live.load = load
        found = load()
        at.fill(9)
        at.offload()
        at.live.refresh()
        return found

    at.live.load = commits_meanwhile  # type: ignore[assignment]
    before = at.archived_end()
    for end in (before, at.log.log_end_offset):
        found = at.live.list_offsets(LATEST_TIERED)
        assert found is not None
        assert found.offset == (before if end == before else at.archived_end()) - 1
    assert at.archived_end() > before


def test_epochs_end_where_they_ended_before_anything_left_the_local_log(tmp_path: Path) -> None:
    at = OwnedLog(str(tmp_path))
    for epoch in (0, 2, 5):
        for _ in range(10):
            at.log.append_as_leader(batch(record(), base_timestamp=NOW, max_timestamp=NOW), epoch)
    before = [at.live.end_offset_for(epoch) for epoch in range(-1, 7)]
    assert before[1:4] == [EpochEntry(0, 10), EpochEntry(0, 10), EpochEntry(2, 20)]
    at.offload()
    at.drop(0)
    assert [at.live.end_offset_for(epoch) for epoch in range(-1, 7)] == before
    at.log.epochs.entries = [EpochEntry(5, border(at))]  # a restored log knows its last epoch alone
    assert [at.live.end_offset_for(epoch) for epoch in range(-1, 7)] == before


def test_fetches_in_a_row_take_up_what_was_read_ahead(at: OwnedLog) -> None:
    assert isinstance(at.store, MemoryStore)
    with ThreadPoolExecutor(2) as pool:
        live = at.lived(ReadContext(ahead=ReadAhead(pool)))
        at.store.calls.clear()
        assert drained(live, 0, 200) == at.expected(0)
    ranges = [call[1:] for call in at.store.calls if call[0] == "get_range" and call[1].endswith(".log")]
    segments = {key for key, *_ in ranges}
    assert len(segments) > 3
    assert len(ranges) <= len(segments) + 2  # the first fetch asks for its own bytes


def test_a_read_that_was_begun_before_a_commit_ends_where_the_archive_did(at: OwnedLog) -> None:
    for offset in (0, 2):  # the second one is kept, and reads up to here
        assert at.live.fetch(offset, 1).parts == (at.batches[offset],)
    former = at.archived_end()
    at.fill(30)
    at.offload()
    at.drop(600)
    at.live.refresh()
    assert former < border(at)
    assert drained(at.live, 4, 1 << 20) == at.expected(4)


def test_a_read_by_an_older_manifest_whose_objects_are_gone_begins_anew(at: OwnedLog) -> None:
    class Former:
        end_offset = border(at)

        def chunks(self, start_offset: int, end_offset: int) -> Iterator[Chunk]:
            raise NotFound("compacted segments have replaced it")
            yield

        first_chunks = chunks

    path = PartitionPath(PARTITION.topic, at.reader.topic_id, 0)
    at.live.reads.end(SequentialRead(path, Former(), 2, None))  # type: ignore[arg-type]
    assert at.live.fetch(2, 1).parts == (at.batches[2],)


def test_a_committed_fetch_does_not_go_on_with_records_of_a_history_that_the_archive_has_left(tmp_path: Path) -> None:
    at, other = OwnedLog(str(tmp_path)), OwnedLog(str(tmp_path / "other"))
    for number in range(8):
        at.transaction(1, 2, sequence=2 * number, commit=False)
    at.fill(9)
    at.offload()
    at.drop()
    for offset in (0, 1):  # the second one is kept, and has read on
        assert [one.first_offset for one in at.live.fetch(offset, 1, COMMITTED).aborted or ()] == [0]
    other.fill(30)
    other.offload()
    at.live.load = other.live.load
    at.live.refresh()
    found = at.live.fetch(2, 1, COMMITTED)
    assert (found.read(), found.aborted) == (other.batches[2], ())


def test_reads_that_are_not_continued_give_way(at: OwnedLog) -> None:
    at.live.reads = reads = ArchiveReads(open_max=2)
    for offset in (0, 6, 2, 4):
        assert at.live.fetch(offset, 1).parts == (at.batches[offset],)
    assert at.live.fetch(2, 1).parts == (at.batches[2],)
    reads.forget()
    assert drained(at.live, 0) == at.expected(0)


def test_a_topic_of_the_same_name_takes_up_no_read_of_the_former_one(at: OwnedLog, tmp_path: Path) -> None:
    other = OwnedLog(str(tmp_path / "other"))
    (Path(other.folder) / "partition.metadata").write_text(f"version: 0\ntopic_id: {'A' * 21}B\n")
    for n in range(30):
        other.append(batch(record(value=b"other" * 20), record(1, value=bytes([n])), base_timestamp=NOW, max_timestamp=NOW))
    other.offload()
    other.drop(0)
    other.live = other.lived()
    other.live.reads = at.live.reads
    for offset in (0, 2):  # the second one keeps its read, which goes on at 4
        assert at.live.fetch(offset, 1).parts == (at.batches[offset],)
    assert other.live.fetch(4, 1).parts == (other.batches[4],)


def test_a_store_that_fails_in_the_middle_of_a_fetch_ends_it_and_the_next_one_goes_on(at: OwnedLog) -> None:
    assert isinstance(at.store, MemoryStore)
    objects = at.store.objects
    third = sorted(key for key in objects if key.endswith(".log"))[2]
    body = objects.pop(third)
    at.live.refresh()
    found = at.live.fetch(0, 1 << 20).read()
    assert found == at.expected(0, int(third.rpartition("/")[2][:20]))
    objects[third] = body
    assert found + drained(at.live, int(third.rpartition("/")[2][:20])) == at.expected(0)


def test_coverage_and_segments_are_told_of_both_tiers(at: OwnedLog) -> None:
    log = at.live.current()
    assert isinstance(log, TieredLog)
    coverage = coverage_of(log)
    assert coverage.local is not None
    assert coverage.archive is not None
    assert (coverage.local.offsets, coverage.archive.offsets) == (((border(at), 60),), ((0, at.archived_end()),))
    assert segments_before(log, LATEST, NOW)[-1] == 0
    assert sum(chunk.batches.size.sum() for chunk in log.local.chunks(border(at), 60)) == len(at.expected(border(at)))  # type: ignore[union-attr]
