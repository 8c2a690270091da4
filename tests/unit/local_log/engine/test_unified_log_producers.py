"""What a log knows of its producers when it is opened, rolled, truncated and compacted, and which snapshots that leaves."""

from pathlib import Path

import pytest
from hand_made import batch, record
from logs_at_work import Log, batch_of, settings
from producers_at_work import DAY_MS
from small_logs import NOW


@pytest.fixture
def at(tmp_path: Path) -> Log:
    return Log(tmp_path / "t-0")


def numbered(sequence: int, *, producer: int = 1, time: int = NOW) -> bytes:
    return batch_of("v", producer=producer, sequence=sequence, time=time)


def delete_snapshots(at: Log) -> None:
    for file in at.folder.glob("*.snapshot"):
        file.unlink()


def last_sequences(at: Log) -> dict[int, int]:
    return {producer_id: producer.last_sequence for producer_id, producer in at.log.producers.producers.items()}


# Snapshots


def test_records_without_a_producer_move_the_snapshots_too(at: Log) -> None:
    at.log.append_as_leader(batch_of("value"), 0)
    at.log.producers.take_snapshot()
    assert at.log.producers.snapshot_offsets == (1,)


def test_each_roll_takes_a_snapshot_where_the_new_segment_starts_and_keeps_the_older_ones(at: Log) -> None:
    seen = []
    for offset in range(1, 4):
        at.log.append_as_leader(batch_of("a"), 0)
        at.log.roll(offset)
        seen.append(at.log.producers.snapshot_offsets)
    assert seen == [(1,), (1, 2), (1, 2, 3)]
    at.log.append_as_leader(batch_of("b"), 0)
    at.log.flush()
    assert at.files(".snapshot") == [1, 2, 3]


def test_a_snapshot_of_a_roll_during_an_append_has_what_was_before_the_append(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=1024))
    for sequence in range(2):
        at.log.append_as_leader(batch_of(bytes(512), producer=1, sequence=sequence), 0)
    assert (at.bases, at.log.producers.snapshot_offsets) == ([0, 1], (1,))

    at.log.truncate_to(1)
    assert (at.bases, at.log.local.segments.active.size) == ([0, 1], 0)
    assert at.log.producers.snapshot_offsets == (1,)
    assert [(b.first_offset, b.last_offset) for b in at.log.producers.producers[1].batches] == [(0, 0)]


def test_snapshots_behind_the_logs_end_are_deleted_when_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000042.snapshot").touch()
    assert Log(tmp_path).files(".snapshot") == []


def test_a_log_from_before_there_were_snapshots_gets_those_of_its_last_two_segments_and_its_end(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=5 * len(batch_of("a"))))
    assert at.log.producers.snapshot_offsets == ()
    for _ in range(23):
        at.log.append_as_leader(batch_of("a"), 0)
    assert at.bases == [0, 5, 10, 15, 20]

    found = []
    for clean, point in ((True, 23), (False, 23), (False, 0)):
        at.log.close()
        delete_snapshots(at)
        at.reopen(point=point, clean=clean)
        found.append(at.files(".snapshot"))
    # After a crash, each segment that is recovered leaves the snapshot that the next one starts from.
    assert found == [[15, 20, 23], [15, 20, 23], [5, 10, 15, 20, 23]]


# Truncation


def test_truncation_goes_back_to_the_snapshot_of_the_new_end(at: Log) -> None:
    at.follow(batch_of("a"), batch_of("b", offset=1))
    at.log.producers.take_snapshot()
    at.follow(batch_of("c", offset=2))
    at.log.producers.take_snapshot()
    seen = []
    for offset in (2, 1, 0):
        at.log.truncate_to(offset)
        seen.append((at.log.producers.snapshot_offsets[-1:], at.log.producers.map_end_offset))
    assert seen == [((2,), 2), ((1,), 1), ((), 0)]


def test_truncation_without_any_snapshot_reads_the_log_again(at: Log) -> None:
    at.log.append_as_leader(numbered(0), 0)
    at.log.append_as_leader(numbered(1), 0)
    delete_snapshots(at)
    at.log.truncate_to(1)
    assert last_sequences(at) == {1: 0}


def test_a_full_truncation_deletes_all_snapshots(tmp_path: Path) -> None:
    at = Log(tmp_path, settings(segment_bytes=len(batch_of("foo"))))
    for value in ("foo", "bar", "baz"):
        at.log.append_as_leader(batch_of(value), 0)
    at.log.producers.take_snapshot()
    assert (at.bases, at.log.producers.snapshot_offsets, at.log.producers.map_end_offset) == ([0, 1, 2], (1, 2, 3), 3)
    at.log.truncate_fully_and_start_at(29)
    assert (at.bases, at.files(".snapshot"), at.log.producers.map_end_offset) == ([29], [], 29)


# Compacted batches


def compacted(offset: int, kept: tuple[int, ...], *, of: int) -> bytes:
    """A producer's batch of `of` records from sequence 0 on, of which compaction has kept these."""
    records = (record(delta, value=b"kept") for delta in kept)
    return batch(
        *records,
        base_offset=offset,
        last_delta=of - 1,
        base_timestamp=NOW,
        max_timestamp=NOW,
        producer_id=1,
        producer_epoch=0,
        base_sequence=0,
    )


@pytest.mark.parametrize("kept", [(0, 2), (), (3,)])
def test_a_batch_that_compaction_has_thinned_counts_as_the_whole_one(at: Log, kept: tuple[int, ...]) -> None:
    at.follow(compacted(23, kept, of=4))
    assert last_sequences(at) == {1: 3}
    at.follow(batch_of("e", "f", offset=27))
    at.log.truncate_to(27)
    assert last_sequences(at) == {1: 3}
    at.follow(batch_of("e", "f", offset=27, producer=1, sequence=4))
    assert last_sequences(at) == {1: 5}


def test_a_batch_that_compaction_has_emptied_counts_as_the_whole_one_when_it_is_read_again(at: Log) -> None:
    at.follow(compacted(23, (), of=2), batch_of("e", "f", offset=25))
    at.log.truncate_to(25)
    assert last_sequences(at) == {1: 1}


# Idle producers


def test_a_producer_is_forgotten_after_a_day_of_silence(at: Log) -> None:
    at.log.append_as_leader(numbered(0, producer=23), 0)
    at.clock.sleep(DAY_MS - 1)
    at.log.producers.expire()
    assert last_sequences(at) == {23: 0}
    at.clock.sleep(1)
    at.log.producers.expire()
    assert last_sequences(at) == {}
