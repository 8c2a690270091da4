"""What is proved of a segment before it is copied: damage of every kind is told by file and position."""

import struct
from collections.abc import Callable
from dataclasses import replace

import pytest
from archive_fakes import MemoryStore
from segments_to_copy import copy, flipped, found_beside, refused, with_body

from local_log.formats.checkpoints import EpochEntry
from local_log.formats.header_layout import ATTRIBUTES_AT, BATCH_HEADER_BYTES
from local_log.formats.header_rows import BATCH_HEADER
from local_log.formats.indexes.transaction import read_txn_index, write_txn_index
from local_log.formats.producer_snapshot import read_producer_snapshot
from local_log.formats.record_batch.batch_v2 import Batches
from remote.manifest.segment_entry import PRODUCER_SNAPSHOT
from remote.segment.check import LogSegmentData, SegmentFile

# damage in the log file


def fields(covered: bool) -> list[str]:
    """The header's fields that the CRC covers, or those that it does not."""
    assert BATCH_HEADER.fields is not None
    return [name for name, (_, at, *_) in BATCH_HEADER.fields.items() if (at >= ATTRIBUTES_AT) is covered]


def rows_of(batches: Batches) -> tuple[int, ...]:
    return (0, len(batches) // 2, len(batches) - 1)


@pytest.mark.parametrize("name", [*fields(covered=True), "crc"])
def test_a_flipped_bit_in_a_header_is_refused_by_file_and_batch(
    segment: LogSegmentData, body: bytes, batches: Batches, name: str
) -> None:
    assert BATCH_HEADER.fields is not None
    kind, at, *_ = BATCH_HEADER.fields[name]
    for row in rows_of(batches):
        for byte in range(kind.itemsize):
            start = int(batches.positions[row])
            found = refused(with_body(segment, flipped(body, start + at + byte, (row + byte) % 8)))
            assert (found.file, found.position) == (segment.path, start)


@pytest.mark.parametrize("name", ["base_offset", "batch_length", "magic"])
def test_a_flipped_bit_that_no_crc_covers_is_refused_by_file_and_position(
    segment: LogSegmentData, body: bytes, batches: Batches, name: str
) -> None:
    assert BATCH_HEADER.fields is not None
    kind, at, *_ = BATCH_HEADER.fields[name]
    for row in rows_of(batches):
        for byte in range(kind.itemsize):
            for bit in range(8):
                found = refused(with_body(segment, flipped(body, int(batches.positions[row]) + at + byte, bit)))
                near = batches.positions[max(0, row - 1) : row + 2].tolist()
                assert found.file == segment.path
                assert found.position in near, (name, row, byte, bit)


def test_a_flipped_bit_in_a_leader_epoch_is_refused(segment: LogSegmentData, body: bytes, batches: Batches) -> None:
    """No CRC covers it, but the segment's lineage says what it must be."""
    for row in rows_of(batches):
        start = int(batches.positions[row])
        found = refused(with_body(segment, flipped(body, start + 15, 1)))
        assert (found.file, found.position) == (segment.path, start)


def test_a_batch_of_an_epoch_that_had_ended_is_refused(segment: LogSegmentData, body: bytes, batches: Batches) -> None:
    """The first batch of epoch 6 says 4, as the batches before it do: nothing goes back, and yet it is wrong."""
    changed, row = bytearray(body), len(batches) // 2
    for number, position in enumerate(batches.positions.tolist()):
        struct.pack_into(">i", changed, position + 12, 6 if number >= row else 4)
    lineage = (EpochEntry(4, 102), EpochEntry(6, int(batches.base_offset[row])))
    sound = replace(with_body(segment, changed), lineage=lineage)
    assert copy(MemoryStore(), sound).leader_epochs == lineage
    for number in (row, row + 1):
        struct.pack_into(">i", changed, int(batches.positions[number]) + 12, 4)
        found = refused(replace(with_body(segment, changed), lineage=lineage))
        assert (found.file, found.position) == (segment.path, int(batches.positions[row]))


def test_a_flipped_bit_in_the_records_is_refused_by_file_and_batch(
    segment: LogSegmentData, body: bytes, batches: Batches
) -> None:
    for row in range(0, len(batches), 5):
        start, end = int(batches.positions[row]), int(batches.end[row])
        for position in (start + BATCH_HEADER_BYTES, (start + BATCH_HEADER_BYTES + end) // 2, end - 1):
            found = refused(with_body(segment, flipped(body, position, row % 8)))
            assert (found.file, found.position) == (segment.path, start)


def test_a_torn_tail_is_refused_where_it_starts(segment: LogSegmentData, body: bytes, batches: Batches) -> None:
    ends = batches.end.tolist()
    for cut in [*range(1, len(body), 10_007), len(body) - 1, len(body) - 70, 1, 12, 60, 61]:
        found = refused(with_body(segment, body[:cut]))
        whole = max((end for end in ends if end <= cut), default=0)
        assert found.file == segment.path
        assert found.position == whole


def test_bytes_behind_the_last_batch_are_refused(segment: LogSegmentData, body: bytes) -> None:
    for tail in (b"\0", b"\0" * 11, b"\0" * 4096, body[:50]):
        found = refused(with_body(segment, body + tail))
        assert (found.file, found.position) == (segment.path, len(body))


def test_an_inactive_segment_without_a_batch_is_refused(segment: LogSegmentData) -> None:
    assert refused(with_body(segment, b"")).file == segment.path


def test_batches_out_of_order_are_refused_where_the_order_breaks(segment: LogSegmentData, body: bytes, batches: Batches) -> None:
    starts, ends = batches.positions.tolist(), batches.end.tolist()
    for row in (0, 7, len(batches) - 2):
        one, two = body[starts[row] : ends[row]], body[starts[row + 1] : ends[row + 1]]
        found = refused(with_body(segment, body[: starts[row]] + two + one + body[ends[row + 1] :]))
        assert (found.file, found.position) == (segment.path, starts[row] + len(two))
        twice = refused(with_body(segment, body[: ends[row]] + body[starts[row] :]))
        assert (twice.file, twice.position) == (segment.path, ends[row])


def test_a_batch_below_the_base_offset_is_refused(segment: LogSegmentData) -> None:
    found = refused(replace(segment, base_offset=segment.base_offset + 1))
    assert (found.file, found.position) == (segment.path, 0)


def test_a_batch_past_the_end_offset_is_refused(segment: LogSegmentData, batches: Batches) -> None:
    for end_offset in (segment.end_offset - 1, int(batches.base_offset[-1])):
        found = refused(replace(segment, end_offset=end_offset))
        assert (found.file, found.position) == (segment.path, int(batches.positions[-1]))


# damage beside the log file


def with_file(segment: LogSegmentData, name: str, change: Callable[[bytes], bytes]) -> tuple[LogSegmentData, SegmentFile]:
    file = getattr(segment, name)
    damaged = replace(file, body=change(file.body))
    assert damaged.body != file.body
    return replace(segment, **{name: damaged}), damaged


def repack(form: str, change: Callable[[int, list[int]], None]) -> Callable[[bytes], bytes]:
    """The same index with each entry changed."""

    def changed(body: bytes) -> bytes:
        entries = [list(e) for e in struct.iter_unpack(form, body)]
        for number, one in enumerate(entries):
            change(number, one)
        return b"".join(struct.pack(form, *one) for one in entries)

    return changed


def add(column: int, by: int) -> Callable[[int, list[int]], None]:
    def change(_: int, one: list[int]) -> None:
        one[column] += by

    return change


def only(wanted: int, column: int, value: int) -> Callable[[int, list[int]], None]:
    def change(number: int, one: list[int]) -> None:
        if number == wanted:
            one[column] = value

    return change


OFFSETS, TIMES, TXNS = ">ii", ">qi", ">hqqqq"


@pytest.mark.parametrize(
    ("name", "change"),
    [
        pytest.param("offset_index", lambda b: b[:-1], id="offset index truncated"),
        pytest.param("offset_index", lambda b: b[:-7], id="offset index truncated to a byte"),
        pytest.param("offset_index", repack(OFFSETS, only(3, 1, 1)), id="offset index whose positions go back"),
        pytest.param("offset_index", repack(OFFSETS, only(3, 0, 1)), id="offset index whose offsets go back"),
        pytest.param("offset_index", repack(OFFSETS, add(1, 1)), id="offset index that points into batches"),
        pytest.param("offset_index", repack(OFFSETS, add(0, 2_581)), id="offset index past the end"),
        pytest.param("offset_index", repack(OFFSETS, only(0, 0, -1)), id="offset index below the base"),
        pytest.param("offset_index", lambda b: b + struct.pack(OFFSETS, 2_580, 2**30), id="offset index past the log"),
        pytest.param("time_index", lambda b: b[:-1], id="time index truncated"),
        pytest.param("time_index", lambda b: b[:-11], id="time index truncated to a byte"),
        pytest.param("time_index", repack(TIMES, only(3, 0, 5)), id="time index whose timestamps go back"),
        pytest.param("time_index", repack(TIMES, only(3, 1, 0)), id="time index whose offsets go back"),
        pytest.param("time_index", repack(TIMES, add(1, 2_581)), id="time index past the end"),
        pytest.param("txn_index", lambda b: b[:-1], id="transaction index truncated"),
        pytest.param("txn_index", lambda b: b[:-33], id="transaction index truncated to a byte"),
        pytest.param("txn_index", repack(TXNS, only(1, 0, 1)), id="transaction index of a newer version"),
        pytest.param("txn_index", repack(TXNS, only(1, 2, 3_000)), id="transaction that ends before it starts"),
        pytest.param("producer_snapshot", lambda b: b[:-1], id="snapshot truncated"),
        pytest.param("producer_snapshot", lambda b: b[:5], id="snapshot truncated in its header"),
        pytest.param("producer_snapshot", lambda _: b"", id="snapshot empty"),
        pytest.param("producer_snapshot", lambda b: b + b"\0", id="snapshot with a byte more"),
        pytest.param("producer_snapshot", lambda b: bytes(flipped(b, 30)), id="snapshot with a flipped bit"),
        pytest.param("producer_snapshot", lambda b: bytes(flipped(b, 1, 1)), id="snapshot of a newer version"),
    ],
)
def test_a_broken_file_beside_the_log_is_found_out_by_name(
    segment: LogSegmentData, name: str, change: Callable[[bytes], bytes]
) -> None:
    damaged, file = with_file(segment, name, change)
    found = found_beside(damaged)
    assert found.file == file.path
    assert 0 <= found.position <= len(file.body) + 1
    assert str(found).startswith(f"{file.path} at byte ")


@pytest.mark.parametrize("by", [-400, -50, 50, 400])
def test_an_offset_index_whose_offsets_are_not_those_of_its_batches_is_found_out(segment: LogSegmentData, by: int) -> None:
    """Every position is a batch's, but a reader who trusted the offsets would start behind the record that it wants."""
    entries = [e for e in struct.iter_unpack(OFFSETS, segment.offset_index.body) if 0 <= e[0] + by <= 2_580]
    shifted = b"".join(struct.pack(OFFSETS, offset + by, position) for offset, position in entries)
    assert (
        found_beside(replace(segment, offset_index=replace(segment.offset_index, body=shifted))).file == segment.offset_index.path
    )


def test_a_time_index_that_lies_about_what_came_before_is_found_out(segment: LogSegmentData) -> None:
    """An entry (T, O) says that no record before O is later than T; a reader who trusted it would skip records."""
    damaged, file = with_file(segment, "time_index", repack(TIMES, add(0, -60_000)))
    assert found_beside(damaged).file == file.path


@pytest.mark.parametrize(("name", "entry"), [("offset_index", 8), ("time_index", 12)])
@pytest.mark.parametrize("kept", [0, 1, 20])
def test_an_index_cut_between_two_entries_is_found_out_by_name(segment: LogSegmentData, name: str, entry: int, kept: int) -> None:
    hurt, file = with_file(segment, name, lambda body: body[: entry * kept])
    found = found_beside(hurt)
    assert (found.file, found.position) == (file.path, entry * kept)
    assert "cut short" in found.problem


def test_an_index_without_its_last_entry_is_found_out_where_kafka_always_writes_one(segment: LogSegmentData) -> None:
    hurt, file = with_file(segment, "time_index", lambda body: body[:-12])
    assert found_beside(hurt).file == file.path


@pytest.mark.parametrize("offset", [0, 101, 2_683, 5_000])
def test_a_transaction_index_with_a_marker_outside_of_its_segment_is_found_out(segment: LogSegmentData, offset: int) -> None:
    assert segment.txn_index is not None
    last = list(struct.iter_unpack(TXNS, segment.txn_index.body))[-1]
    extra = struct.pack(TXNS, 0, last[1], min(offset, last[2]), offset, last[4])
    damaged, file = with_file(segment, "txn_index", lambda b: b + extra)
    assert found_beside(damaged).file == file.path


@pytest.mark.parametrize("kept", [0, 1, -1])
def test_a_transaction_index_that_lacks_an_abort_marker_of_the_segment_is_found_out(segment: LogSegmentData, kept: int) -> None:
    """Without the entry read_committed would give out aborted records, for ever once the local segment is deleted.

    (A marker whose records compaction has removed needs no entry, and has none in a compacted log.)
    """
    assert segment.txn_index is not None
    aborted = read_txn_index(segment.txn_index.body)
    damaged, file = with_file(segment, "txn_index", lambda _: write_txn_index(aborted[:kept]))
    assert found_beside(damaged).file == file.path


def test_files_that_a_segment_need_not_have_may_be_missing(segment: LogSegmentData) -> None:
    bare = replace(segment, producer_snapshot=None, lineage=(), aborted_later=lambda _: ())
    entry = copy(MemoryStore(), bare)
    assert PRODUCER_SNAPSHOT not in entry.aux_ranges
    assert read_producer_snapshot(segment.producer_snapshot.body if segment.producer_snapshot else b"")
