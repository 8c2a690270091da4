"""Which segments of a log go by its retention, and what goes and stays with them."""

from pathlib import Path

import pytest
from logs_at_work import Log, batch_of, settings, values_of
from small_logs import NOW

from local_log.engine.manager.retention import delete_old_segments
from local_log.formats.checkpoints import EpochEntry

SIZE = len(batch_of("test"))
KEYED = len(batch_of("test", keys=(b"test",)))
OLD = 10
"""A timestamp of 1970."""


def delete_old(at: Log) -> int:
    return delete_old_segments(at.log, at.clock())


def replicated(at: Log) -> int:
    """The same, once everything is replicated."""
    at.log.update_high_watermark(at.log.log_end_offset)
    return delete_old(at)


def fill(at: Log, count: int = 15, *, time: int = NOW, key: bytes | None = None) -> None:
    """Appends batches of one record as a leader."""
    for _ in range(count):
        at.log.append_as_leader(batch_of("test", time=time, keys=(key,)), 0)


# Size


def test_the_oldest_segments_go_while_the_log_is_no_smaller_without_them_than_it_may_be(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=5 * SIZE, retention_bytes=10 * SIZE))
    fill(at)
    assert (replicated(at), at.bases, at.log.log_start_offset) == (1, [5, 10], 5)


def test_a_log_that_is_no_larger_than_it_may_be_keeps_its_segments(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=5 * SIZE, retention_bytes=15 * SIZE))
    fill(at)
    assert (replicated(at), at.bases) == (0, [0, 5, 10])


@pytest.mark.parametrize("is_tiered", [True, False])
@pytest.mark.parametrize("copies", [True, False])
def test_a_size_is_kept_whether_segments_are_copied_or_not(tmp_path: Path, is_tiered: bool, copies: bool) -> None:
    given = settings(
        segment_bytes=5 * SIZE,
        retention_bytes=10 * SIZE,
        remote_storage_enable=is_tiered,
        remote_log_copy_disable=not copies,
    )
    at = Log(tmp_path, given)
    fill(at)
    at.log.highest_offset_in_archive = 9
    assert (replicated(at), at.bases) == (1, [5, 10])


# Time


def test_segments_whose_greatest_timestamp_is_too_old_go_the_last_one_too(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=15 * SIZE, retention_ms=10_000))
    fill(at, time=OLD)
    assert at.bases == [0]
    assert (replicated(at), at.bases, at.log.log_start_offset) == (1, [15], 15)


def test_segments_that_are_not_too_old_stay(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=5 * SIZE, retention_ms=10_000_000))
    fill(at)
    assert (replicated(at), at.bases) == (0, [0, 5, 10])


def test_a_younger_segment_keeps_the_older_ones_behind_it_until_the_log_starts_behind_it(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(retention_ms=900))
    for time in (NOW + 100, NOW, NOW + 100):
        fill(at, 1, time=time)
        at.log.roll()
    at.clock.sleep(901)
    assert replicated(at) == 0
    at.log.maybe_increment_log_start_offset(1)
    assert (delete_old(at), delete_old(at), at.bases) == (2, 0, [2, 3])


def test_deleting_segments_moves_neither_the_end_nor_what_an_append_is_given(tmp_path: Path) -> None:
    for count in (0, 1, 25):
        at = Log(tmp_path / f"{count}", settings(segment_bytes=100, retention_ms=0))
        fill(at, count, time=NOW - 10)
        replicated(at)
        assert (at.log.log_end_offset, len(at.bases)) == (count, 1)
        assert delete_old(at) == 0
        assert at.log.append_as_leader(batch_of("hello"), 0).first_offset == count


# Policy


def test_a_compacted_log_keeps_segments_however_old(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=5 * KEYED, retention_ms=10_000, cleanup_policy="compact"))
    fill(at, time=OLD, key=b"test")
    at.log.folder.disk.set_modified_ms(at.log.local.segments.first.log_file, NOW - 20_000)
    assert (replicated(at), at.bases) == (0, [0, 5, 10])


def test_a_log_that_is_compacted_and_deleted_loses_old_segments(tmp_path: Path) -> None:
    given = settings(segment_bytes=5 * KEYED, retention_bytes=10 * KEYED, cleanup_policy="compact,delete")
    at = Log(tmp_path, given)
    fill(at, time=OLD, key=b"test")
    assert (replicated(at), at.bases) == (3, [15])


def test_a_compacted_log_loses_segments_below_its_start(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=5 * KEYED, cleanup_policy="compact"))
    fill(at, time=OLD, key=b"test")
    at.log.update_high_watermark(15)
    at.log.maybe_increment_log_start_offset(5)
    assert (delete_old(at), at.bases) == (1, [5, 10])


def test_a_tiered_log_without_a_policy_keeps_its_local_size_all_the_same(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=2 * SIZE, retention_bytes=SIZE // 2, cleanup_policy="", remote_storage_enable=True))
    fill(at, 10)
    at.log.highest_offset_in_archive = 9
    # The last segment is more than what is too much without it.
    assert (replicated(at), at.bases) == (4, [8])
    assert (at.log.log_start_offset, at.log.local_log_start_offset) == (0, 8)


def test_a_tiered_log_without_a_policy_keeps_its_local_age_all_the_same(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=2 * SIZE, local_retention_ms=5000, cleanup_policy="", remote_storage_enable=True))
    fill(at, 10, time=NOW - 20_000)
    fill(at, 5)
    at.log.highest_offset_in_archive = 14
    assert (replicated(at), at.bases) == (5, [10, 12, 14])


def test_a_tiered_log_keeps_what_the_archive_does_not_have(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=2 * SIZE, local_retention_ms=5000, remote_storage_enable=True))
    fill(at, 10, time=NOW - 20_000)
    at.log.highest_offset_in_archive = 4
    assert (replicated(at), at.bases) == (2, [4, 6, 8])


# What is not replicated, and where the log starts


def test_nothing_that_is_not_replicated_goes(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=5 * SIZE, segment_index_bytes=1000, retention_ms=999))
    fill(at, 100, time=NOW - 1000)
    at.log.epochs.assign(0, 40)
    at.log.epochs.assign(1, 90)
    assert (delete_old(at), len(at.bases), at.log.log_start_offset) == (0, 20, 0)
    for high_watermark in range(25, 31):
        at.log.update_high_watermark(high_watermark)
        delete_old(at)
        assert at.bases[0] == at.log.log_start_offset == high_watermark // 5 * 5
    assert (replicated(at), at.bases) == (14, [100])
    assert at.log.epochs.entries == [EpochEntry(1, 100)]


def test_segments_below_the_start_go_once_the_log_starts_in_a_later_one(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=5 * SIZE))
    fill(at)
    at.log.update_high_watermark(15)
    seen = []
    for offset in (1, 6, 15):
        at.log.maybe_increment_log_start_offset(offset)
        seen.append((delete_old(at), at.bases, at.log.log_start_offset))
    assert seen == [(0, [0, 5, 10], 1), (1, [5, 10], 6), (1, [10], 15)]


# What goes with them


@pytest.mark.parametrize(("starts", "left"), [((0, 5, 10), [(1, 5), (2, 10)]), ((0, 7, 10), [(0, 5), (1, 7), (2, 10)])])
def test_leader_epochs_that_end_before_the_new_start_go_and_the_one_that_it_lies_in_starts_there(
    tmp_path: Path, starts: tuple[int, ...], left: list[tuple[int, int]]
) -> None:
    at = Log(tmp_path, settings(segment_bytes=5 * SIZE, retention_bytes=10 * SIZE))
    fill(at)
    for epoch, start in enumerate(starts):
        at.log.epochs.assign(epoch, start)
    assert replicated(at) == 1
    assert [(entry.epoch, entry.start_offset) for entry in at.log.epochs.entries] == left


def sequenced(at: Log, *producers: int) -> None:
    """A record of each producer, each in a segment of its own; the last one is not rolled."""
    for offset, producer in enumerate(producers):
        if offset:
            at.log.roll()
        at.log.append_as_leader(batch_of("v", producer=producer, sequence=producers[:offset].count(producer), time=at.clock()), 0)


@pytest.mark.parametrize("is_empty", [True, False])
def test_the_snapshots_of_segments_go_with_them_after_the_same_delay(tmp_path: Path, is_empty: bool) -> None:
    at = Log(tmp_path, settings(retention_bytes=0, retention_ms=60_000, file_delete_delay_ms=0))
    sequenced(at, 1, 1, 1)
    if is_empty:
        at.log.roll()
    assert at.files(".snapshot") == ([1, 2, 3] if is_empty else [1, 2])
    at.clock.sleep(60_001)
    assert replicated(at) == 3
    at.log.folder.delete_due()
    assert (at.files(".snapshot"), at.files(".deleted"), at.log.log_start_offset) == ([3], [], 3)


def test_the_snapshots_below_the_start_go_with_their_segments(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(file_delete_delay_ms=0))
    sequenced(at, 1, 1, 1)
    at.log.update_high_watermark(3)
    assert at.files(".snapshot") == [1, 2]
    at.log.maybe_increment_log_start_offset(2)
    assert delete_old(at) == 2
    at.log.folder.delete_due()
    assert (at.files(".snapshot"), at.files(".deleted")) == ([2], [])


def just_deleted(folder: Path) -> Log:
    """A log that has given up two segments, whose files go a second later."""
    at = Log(folder, settings(file_delete_delay_ms=1000))
    sequenced(at, 1, 2)
    at.log.roll()
    at.log.update_high_watermark(2)
    at.log.maybe_increment_log_start_offset(2)
    assert delete_old(at) == 2
    return at


def test_files_that_were_given_up_stay_for_the_delay(tmp_path: Path) -> None:
    at = just_deleted(tmp_path)
    assert at.files(".snapshot") == [2]
    assert at.files(".log.deleted") == [0, 1]
    assert at.files(".snapshot.deleted") == [1]
    at.log.folder.delete_due()
    assert at.files(".log.deleted") == [0, 1]
    at.clock.sleep(1000)
    at.log.folder.delete_due()
    assert at.files(".deleted") == []
    assert {p: e.last_sequence for p, e in at.log.producers.producers.items()} == {1: 0, 2: 0}


def test_files_that_were_given_up_do_not_stay_longer_because_the_clock_is_set_back(tmp_path: Path) -> None:
    at = just_deleted(tmp_path)
    at.clock.sleep(-3_600_000)
    at.log.folder.delete_due()
    assert at.files(".log.deleted") == [0, 1], "who reads them may do so yet"
    at.clock.sleep(1000)
    at.log.folder.delete_due()
    assert at.files(".deleted") == []


def test_producers_are_remembered_when_their_records_are_deleted(tmp_path: Path) -> None:
    size = len(batch_of("v", producer=1, sequence=0))
    at = Log(tmp_path, settings(segment_bytes=size, retention_bytes=2 * size))
    for producer, sequence in ((1, 0), (2, 0), (2, 1)):
        at.log.append_as_leader(batch_of("v", producer=producer, sequence=sequence), 0)
    assert at.bases == [0, 1, 2]
    assert (replicated(at), at.bases) == (1, [1, 2])
    assert set(at.log.producers.producers) == {1, 2}
    assert values_of(at.log.read(1, 1 << 20).records)[0] == (1, "v")
