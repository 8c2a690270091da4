"""One round of cleaning: which records stay, until when, and in which segments."""

from pathlib import Path

import pytest
from hand_made import TRANSACTIONAL, batch, message, record
from logs_at_work import Log, settings
from small_logs import INT32_MAX, NOW, Clock, marker

from local_log.engine.cleaner import CleaningAborted, OffsetMap, clean
from local_log.engine.memory_records import MemoryBatch, memory_batches
from local_log.errors import Corrupt
from local_log.formats.batches import decode, scan

DELETE_RETENTION_MS = 1_000


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path, settings(segment_bytes=400, index_interval_bytes=1, delete_retention_ms=DELETE_RETENTION_MS), Clock())


def put(log: Log, *pairs: tuple[bytes | None, bytes | None], **fields: int) -> None:
    made = (record(delta, key=key, value=value) for delta, (key, value) in enumerate(pairs))
    log.follow(batch(*made, base_offset=log.log.log_end_offset, base_timestamp=NOW, max_timestamp=NOW, **fields))  # type: ignore[arg-type]


def compact(log: Log, dirty: int = 0, memory: int = 2_400) -> int:
    log.log.update_high_watermark(log.log.log_end_offset)
    return clean(log.log, dirty, log.log.last_stable_offset, OffsetMap(memory))


def compact_more(log: Log, dirty: int) -> int:
    """Another round, with one more record to clean."""
    put(log, (b"more", b"1"))
    log.log.roll()
    return compact(log, dirty)


def left(log: Log) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of the records, markers among them."""
    found = []
    for segment in log.log.local.segments:
        data = segment.read(0, segment.size)
        batches, _ = scan(data)
        for _, rows in decode(data, batches):
            found += [(row["offset"], row["key"], row["value"]) for row in rows.to_pylist()]
    return found


def headers(log: Log) -> list[MemoryBatch]:
    return [header for segment in log.log.local.segments for header in memory_batches(segment.read(0, segment.size))]


def test_the_last_record_of_each_key_stays_and_the_active_segment_is_left_alone(log: Log) -> None:
    put(log, (b"a", b"1"), (b"b", b"1"))
    put(log, (b"a", b"2"), (None, b"no key"))
    log.log.roll()
    put(log, (b"a", b"3"), (b"a", b"4"))
    assert compact(log) == 4
    assert left(log) == [(1, b"b", b"1"), (2, b"a", b"2"), (4, b"a", b"3"), (5, b"a", b"4")]


def test_segments_that_fit_into_one_become_one(log: Log) -> None:
    for n in range(5):
        put(log, (b"a", b"%d" % n))
        log.log.roll()
    compact(log)
    assert log.bases == [0, 5]
    assert left(log) == [(4, b"a", b"4")]


def test_the_snapshots_of_segments_that_were_joined_go_with_them(log: Log) -> None:
    for n in range(4):
        put(log, (b"a", b"%d" % n), producer_id=n, producer_epoch=0, base_sequence=0)
        log.log.roll()
    assert log.files(".snapshot") == [1, 2, 3, 4]
    compact(log)
    assert log.files(".snapshot") == [4]
    assert log.files(".snapshot.deleted") == [1, 2, 3]
    assert sorted(log.log.producers.producers) == [0, 1, 2, 3]


def test_a_tombstone_gets_its_horizon_when_it_is_first_cleaned_and_goes_after_it(log: Log) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", None))
    put(log, (b"b", b"1"))
    log.log.roll()
    end = compact(log)
    assert left(log) == [(1, b"a", None), (2, b"b", b"1")]
    log.clock.sleep(DELETE_RETENTION_MS - 1)
    end = compact_more(log, end)
    assert [offset for offset, *_ in left(log)] == [1, 2, 3]
    log.clock.sleep(1)
    compact_more(log, end)
    assert [offset for offset, *_ in left(log)] == [2, 4]


def test_an_aborted_transactions_records_go_at_once_and_its_marker_after_the_horizon(log: Log) -> None:
    put(log, (b"a", b"kept"))
    put(log, (b"a", b"gone"), producer_id=1, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    log.follow(marker(2, 1, commit=False))
    put(log, (b"b", b"1"), producer_id=1, producer_epoch=0, base_sequence=1)
    put(log, (b"c", b"1"))
    log.log.roll()
    end = compact(log)
    assert [offset for offset, *_ in left(log)] == [0, 2, 3, 4]
    end = compact_more(log, end)  # no records of the transaction are left: the marker gets its horizon
    assert [offset for offset, *_ in left(log)] == [0, 2, 3, 4, 5]
    log.clock.sleep(DELETE_RETENTION_MS)
    compact_more(log, end)
    assert [offset for offset, *_ in left(log)] == [0, 3, 4, 6]


def test_a_key_like_that_of_a_marker_is_a_key_like_any_other(log: Log) -> None:
    commit = b"\x00\x00\x00\x01"
    put(log, (commit, b"1"), producer_id=1, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    log.follow(marker(1, 1, commit=True))
    put(log, (b"b", b"1"))
    log.log.roll()
    compact(log)
    assert [(offset, key) for offset, key, _ in left(log)] == [(0, commit), (1, commit), (2, b"b")]


def test_the_last_batch_of_a_round_stays_without_records(log: Log) -> None:
    put(log, (b"a", b"1"))
    put(log, (None, b"no key"))
    log.log.roll()
    assert compact(log) == 2
    assert [(header.base_offset, header.last_offset) for header in headers(log)] == [(0, 0), (1, 1)]
    assert left(log) == [(0, b"a", b"1")]


def test_a_batch_larger_than_what_is_read_at_a_time_is_read_whole(log: Log) -> None:
    put(log, (b"a", b"v" * 300))
    log.log.roll()
    put(log, (b"b", b"v" * 300))
    log.log.roll()
    log.log.update_high_watermark(log.log.log_end_offset)
    assert clean(log.log, 0, 2, OffsetMap(2_400), io_bytes=100) == 2
    assert len(left(log)) == 2


def test_a_producers_last_batch_stays_without_records(log: Log) -> None:
    put(log, (b"a", b"1"), producer_id=1, producer_epoch=0, base_sequence=7)
    put(log, (b"a", b"2"))
    put(log, (b"b", b"2"))
    log.log.roll()
    compact(log)
    first = headers(log)[0]
    assert (first.base_offset, first.producer_id, first.last_sequence) == (0, 1, 7)
    assert [offset for offset, *_ in left(log)] == [1, 2]
    before = log.log.producers.producers[1].last_sequence
    log.log.flush()
    assert log.reopen(clean=False).producers.producers[1].last_sequence == before


def test_a_round_ends_where_the_map_is_full_and_the_next_one_goes_on_there(log: Log) -> None:
    for n in range(8):
        put(log, (b"%d" % (n % 4), b"%d" % n))
    log.log.roll()
    end = compact(log, memory=24 * 4)
    assert end == 3
    assert compact(log, end) == 8
    assert left(log) == [(4 + n, b"%d" % n, b"%d" % (4 + n)) for n in range(4)]


def test_without_anything_dirty_the_next_round_begins_where_this_one_would_have(log: Log) -> None:
    put(log, (b"a", b"1"), (b"a", b"2"))
    assert compact(log) == 0
    log.log.roll()
    assert compact(log) == 2
    assert compact(log, 2) == 2
    assert left(log) == [(1, b"a", b"2")]


def test_older_messages_that_stay_become_batches_of_the_current_format(log: Log) -> None:
    for n, (key, value) in enumerate([(b"a", b"1"), (b"b", b"1"), (b"a", None)]):
        log.follow(message(1, value, key=key, offset=n))
    log.log.roll()
    assert compact(log) == 3
    assert left(log) == [(1, b"b", b"1"), (2, b"a", None)]
    assert [header.magic for header in headers(log)] == [2, 2]


def test_an_older_message_that_ends_a_round_stays_as_it_is(log: Log) -> None:
    log.follow(message(1, b"no key", offset=0))
    log.log.roll()
    before = log.log.read(0, 1000).records
    assert compact(log) == 1
    assert log.log.read(0, 1000).records == before


def test_an_old_tombstone_goes_when_its_segment_is_older_than_the_last_clean_one(log: Log) -> None:
    put(log, (b"clean", b"1"))
    log.log.roll()
    log.follow(message(1, None, key=b"a", offset=1))
    log.log.roll()
    put(log, (b"b", b"1"))
    log.log.roll()
    clean_ms, tombstone_ms = (f"{log.folder}/{base:020}.log" for base in (0, 1))
    log.log.folder.disk.set_modified_ms(clean_ms, NOW + DELETE_RETENTION_MS)
    log.log.folder.disk.set_modified_ms(tombstone_ms, NOW)
    assert compact(log, 1) == 3
    assert [offset for offset, *_ in left(log)] == [0, 2]


def test_a_damaged_batch_stops_the_round_and_leaves_no_new_file(log: Log) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.log.roll()
    file = log.folder / "00000000000000000000.log"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    with pytest.raises(Corrupt, match="CRC-32C"):
        compact(log)
    assert not log.files(".cleaned")


def test_a_log_that_is_truncated_while_it_is_cleaned_stays_as_the_truncation_left_it(log: Log) -> None:
    for value in (b"1", b"2", b"3", b"4"):
        put(log, (b"a", value))
    log.log.roll()
    log.log.update_high_watermark(log.log.log_end_offset)
    sizes: list[int] = []

    def truncate_at_last(size: int) -> None:
        sizes.append(size)
        if not size:
            log.log.truncate_to(2)

    with pytest.raises(CleaningAborted, match="truncated"):
        clean(log.log, 0, log.log.last_stable_offset, OffsetMap(2_400), truncate_at_last)
    assert [offset for offset, *_ in left(log)] == [0, 1]
    assert sum(sizes) > 0
    assert not log.files(".cleaned")


def test_a_round_ends_where_it_is_told_to_and_leaves_no_new_file(log: Log) -> None:
    put(log, (b"a", b"1"), (b"a", b"2"))
    log.log.roll()
    log.log.update_high_watermark(log.log.log_end_offset)

    def stop(size: int) -> None:
        if not size:
            raise CleaningAborted("stopped")

    with pytest.raises(CleaningAborted, match="stopped"):
        clean(log.log, 0, 2, OffsetMap(2_400), stop)
    assert len(left(log)) == 2
    assert not log.files(".cleaned")


def test_a_segment_with_offsets_too_far_apart_is_split_and_cleaned_in_the_next_round(log: Log) -> None:
    far = INT32_MAX + 5
    put(log, (b"a", b"1"), (b"a", b"2"))
    far_batch = batch(record(key=b"b", value=b"1"), base_offset=far, base_timestamp=NOW, max_timestamp=NOW)
    file = log.folder / f"{0:020}.log"
    log.log.close()
    file.write_bytes(file.read_bytes() + far_batch)
    (log.folder / f"{far + 1:020}.log").write_bytes(b"")
    log.reopen(clean=True)
    assert log.bases == [0, far + 1]
    with pytest.raises(CleaningAborted, match="split"):
        compact(log)
    assert log.bases == [0, far, far + 1]
    assert compact(log) == far + 1
    assert left(log) == [(1, b"a", b"2"), (far, b"b", b"1")]


def test_a_round_reads_no_more_at_a_time_than_it_may(log: Log) -> None:
    for n in range(8):
        put(log, (b"%d" % n, b"v" * 60))
    log.log.roll()
    sizes: list[int] = []
    log.log.update_high_watermark(log.log.log_end_offset)
    clean(log.log, 0, log.log.last_stable_offset, OffsetMap(2_400), sizes.append, io_bytes=200)
    assert max(sizes) == 200


def test_a_segment_that_ends_within_a_batch_is_not_cleaned(log: Log) -> None:
    put(log, (b"a", b"1"))
    put(log, (b"a", b"2"))
    log.log.roll()
    segment = log.log.local.segments.first
    log.log.folder.disk.truncate(segment.log_file, segment.size - 1)
    with pytest.raises(Corrupt, match="not whole"):
        compact(log)
    assert not log.files(".cleaned")


def test_a_round_covers_offsets_that_no_batch_has(log: Log) -> None:
    put(log, (b"a", b"1"))
    log.follow(batch(record(key=b"a", value=b"2"), base_offset=7, base_timestamp=NOW, max_timestamp=NOW))
    log.log.roll()
    log.log.truncate_to(5)
    log.log.roll()
    assert compact(log) == log.log.local.segments.active.base_offset == 5


def test_a_cleaned_segment_is_not_preallocated(tmp_path: Path) -> None:
    log = Log(tmp_path, settings(segment_bytes=4_000, preallocate=True), Clock())
    put(log, (b"a", b"1"), (b"b", b"1"))
    log.log.roll()
    compact(log)
    assert (log.folder / f"{0:020}.log").stat().st_size == log.log.local.segments.first.size
