"""One segment's way into the archive: checked on the way, verified before anyone may name it."""

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import Corrupts, CountingIds, FailsBefore, FixedClock, KeepsNoChecksum, LosesAnswer, MemoryStore, Nth, verbs
from crc32c import crc32c
from golden_logs import broker_logs
from logs_to_archive import local_logs
from made_manifests import PATH

from local_log.errors import Corrupt, NotFound
from local_log.formats.batch_v2 import CRC_FROM, HEADER, HEADER_BYTES, Batches, scan
from local_log.formats.checkpoints import EpochEntry, read_epochs
from local_log.formats.producer_snapshot import read_producer_snapshot
from local_log.formats.txn_index import AbortedTxn, read_txn_index, write_txn_index
from remote.errors import Unavailable, Unknown
from remote.manifest.model import (
    ABORTED_LATER,
    LEADER_EPOCH_CHECKPOINT,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
    SegmentEntry,
)
from remote.object_keys import segment_name
from remote.object_store import ObjectStore
from remote.segment_check import LogSegmentData, SegmentFile
from remote.uploader import PART_BYTES, copy_segment, verify
from tiering.offload import segment_data

PARTITIONS = ("g-txn-0", "g-codec-lz4-0", "g-compacted-txn-0", "g-trimmed-0", "g-big-0")


@pytest.fixture(scope="module")
def inactive(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[LogSegmentData]]:
    """The inactive segments of some golden partitions."""
    logs = local_logs(broker_logs(tmp_path_factory.mktemp("broker"), *PARTITIONS))
    return {name: [segment_data(log, s, lambda _: None) for s in log.segments[:-1]] for name, log in logs.items()}


@pytest.fixture(scope="module")
def segment(inactive: dict[str, list[LogSegmentData]]) -> LogSegmentData:
    """A segment of 1 MB with aborted transactions and a snapshot."""
    return inactive["g-txn-0"][1]


@pytest.fixture(scope="module")
def body(segment: LogSegmentData) -> bytes:
    return segment.read(0, segment.size)


@pytest.fixture(scope="module")
def batches(body: bytes) -> Batches:
    return scan(body)[0]


def with_body(segment: LogSegmentData, body: bytes | bytearray) -> LogSegmentData:
    return replace(segment, size=len(body), read=lambda start, end: bytes(body[start:end]))


def copy(store: ObjectStore, segment: LogSegmentData) -> SegmentEntry:
    return copy_segment(store, PATH, segment, FixedClock(), CountingIds())


def refused(segment: LogSegmentData) -> Corrupt:
    """The finding for which a segment is refused before anything is written."""
    store = MemoryStore()
    with pytest.raises(Corrupt) as raised:
        copy(store, segment)
    assert store.calls == []
    return raised.value


def flipped(body: bytes, position: int, bit: int = 0) -> bytearray:
    damaged = bytearray(body)
    damaged[position] ^= 1 << bit
    return damaged


# what is stored


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_objects_hold_the_segments_files_byte_for_byte(inactive: dict[str, list[LogSegmentData]], partition: str) -> None:
    assert inactive[partition]
    for one in inactive[partition]:
        store = MemoryStore()
        entry = copy(store, one)
        log, aux = store.objects[PATH.segment(entry.log_name)], store.objects[PATH.segment(entry.aux_name)]
        assert log == Path(one.path).read_bytes()
        parts = {name: aux[r.start : r.end] for name, r in entry.aux_ranges.items()}
        files = {
            OFFSET_INDEX: one.offset_index.body,
            TIME_INDEX: one.time_index.body,
            TRANSACTION_INDEX: one.txn_index.body if one.txn_index else b"",
            PRODUCER_SNAPSHOT: one.producer_snapshot.body if one.producer_snapshot else b"",
        }
        assert {name: parts.pop(name, b"") for name in files} == files
        assert read_epochs(parts.pop(LEADER_EPOCH_CHECKPOINT)) == one.lineage
        assert read_txn_index(parts.pop(ABORTED_LATER, b"")) == one.aborted_later
        assert parts == {}
        assert sum(r.end - r.start for r in entry.aux_ranges.values()) == len(aux)


def test_the_entry_says_what_is_in_the_objects(segment: LogSegmentData, body: bytes, batches: Batches) -> None:
    store = MemoryStore()
    entry = copy(store, segment)
    aux = store.objects[PATH.segment(entry.aux_name)]
    assert (entry.base_offset, entry.end_offset, entry.last_offset) == (102, 2683, 2682)
    assert (entry.log_size, entry.log_crc32c) == (len(body), crc32c(body))
    assert (entry.aux_size, entry.aux_crc32c) == (len(aux), crc32c(aux))
    assert entry.max_timestamp_ms == int(batches.max_timestamp.max())
    assert entry.record_count == int(batches.count.sum()) == 2683 - 102
    assert entry.leader_epochs == (EpochEntry(0, 102),)
    assert (entry.encoding, entry.copied_at_ms, entry.txn_index_empty) == ("identity", FixedClock().now_ms(), False)
    assert entry.segment_id == CountingIds().new_id()
    assert entry.log_name == segment_name(102, 0, entry.segment_id, ".log")
    assert entry.aux_name == segment_name(102, 0, entry.segment_id, ".aux")


def test_an_entry_knows_whether_reads_of_it_need_a_transaction_index(inactive: dict[str, list[LogSegmentData]]) -> None:
    first, second, third = inactive["g-txn-0"]
    plain = inactive["g-codec-lz4-0"][0]
    assert copy(MemoryStore(), plain).txn_index_empty
    for one in (first, second, third):
        empty = one.txn_index is None and not one.aborted_later
        assert copy(MemoryStore(), one).txn_index_empty is empty
    later = (AbortedTxn(2_700, 2_750, 1, 2_750),)
    assert not copy(MemoryStore(), replace(third, txn_index=None, aborted_later=later)).txn_index_empty


def test_an_entry_names_the_epochs_inside_and_where_each_starts(segment: LogSegmentData, body: bytes, batches: Batches) -> None:
    changed = bytearray(body)
    rows = len(batches) // 3, len(batches) // 2
    for row, position in enumerate(batches.positions.tolist()):
        struct.pack_into(">i", changed, position + 12, 4 + 2 * sum(row >= r for r in rows))
    starts = [102, *(int(batches.base_offset[r]) for r in rows)]
    lineage = tuple(EpochEntry(4 + 2 * i, start) for i, start in enumerate(starts))
    entry = copy(MemoryStore(), replace(with_body(segment, changed), lineage=lineage))
    assert entry.leader_epochs == lineage
    assert entry.log_name == segment_name(102, 4, entry.segment_id, ".log")


def test_data_goes_up_before_aux_and_both_are_verified_and_nothing_else_happens(segment: LogSegmentData) -> None:
    store = MemoryStore()
    entry = copy(store, segment)
    log, aux = PATH.segment(entry.log_name), PATH.segment(entry.aux_name)
    assert store.calls == [("upload", log), ("upload", aux), ("head", log), ("head", aux)]


def test_each_copy_has_a_name_of_its_own(segment: LogSegmentData) -> None:
    store, ids = MemoryStore(), CountingIds()
    names = {copy_segment(store, PATH, segment, FixedClock(), ids).log_name for _ in range(3)}
    assert len(names) == 3
    assert len(store.objects) == 6


def test_a_segment_of_several_parts_goes_up_in_parts_of_one_size(inactive: dict[str, list[LogSegmentData]]) -> None:
    big = inactive["g-big-0"][0]
    once, (found, _) = big.read(0, big.size), scan(big.read(0, big.size))
    span, times = found.next_offset, PART_BYTES // big.size + 2
    body = bytearray(once * times)
    for n in range(times):
        for position, base in zip(found.positions.tolist(), found.base_offset.tolist(), strict=True):
            struct.pack_into(">q", body, n * big.size + position, base + n * span)
    sizes: list[int] = []

    class Measures(MemoryStore):
        def upload(self, key: str, parts: object, *, size: int, crc32c: int) -> None:
            kept = [bytes(part) for part in parts]  # type: ignore[attr-defined]
            sizes.extend(len(part) for part in kept if key.endswith(".log"))
            super().upload(key, kept, size=size, crc32c=crc32c)

    store = Measures()
    entry = copy(KeepsNoChecksum(store), replace(with_body(big, body), end_offset=times * span))
    assert sizes == [PART_BYTES, len(body) - PART_BYTES]
    assert store.objects[PATH.segment(entry.log_name)] == body
    reads = [call[2:] for call in store.calls if call[:2] == ("get_range", PATH.segment(entry.log_name))]
    assert reads == [(0, PART_BYTES), (PART_BYTES, len(body))]


# damage in the log file


def fields(covered: bool) -> list[str]:
    """The header's fields that the CRC covers, or those that it does not."""
    assert HEADER.fields is not None
    return [name for name, (_, at, *_) in HEADER.fields.items() if (at >= CRC_FROM) is covered]


def rows_of(batches: Batches) -> tuple[int, ...]:
    return (0, len(batches) // 2, len(batches) - 1)


@pytest.mark.parametrize("name", [*fields(covered=True), "crc"])
def test_a_flipped_bit_in_a_header_is_refused_by_file_and_batch(
    segment: LogSegmentData, body: bytes, batches: Batches, name: str
) -> None:
    assert HEADER.fields is not None
    kind, at, *_ = HEADER.fields[name]
    for row in rows_of(batches):
        for byte in range(kind.itemsize):
            start = int(batches.positions[row])
            found = refused(with_body(segment, flipped(body, start + at + byte, (row + byte) % 8)))
            assert (found.file, found.position) == (segment.path, start)


@pytest.mark.parametrize("name", ["base_offset", "batch_length", "magic"])
def test_a_flipped_bit_that_no_crc_covers_is_refused_by_file_and_position(
    segment: LogSegmentData, body: bytes, batches: Batches, name: str
) -> None:
    assert HEADER.fields is not None
    kind, at, *_ = HEADER.fields[name]
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
        for position in (start + HEADER_BYTES, (start + HEADER_BYTES + end) // 2, end - 1):
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
def test_a_broken_file_beside_the_log_is_refused_by_name(
    segment: LogSegmentData, name: str, change: Callable[[bytes], bytes]
) -> None:
    damaged, file = with_file(segment, name, change)
    found = refused(damaged)
    assert found.file == file.path
    assert 0 <= found.position <= len(file.body) + 1
    assert str(found).startswith(f"{file.path} at byte ")


@pytest.mark.parametrize("by", [-400, -50, 50, 400])
def test_an_offset_index_whose_offsets_are_not_those_of_its_batches_is_refused(segment: LogSegmentData, by: int) -> None:
    """Every position is a batch's, but a reader who trusted the offsets would start behind the record that it wants."""
    entries = [e for e in struct.iter_unpack(OFFSETS, segment.offset_index.body) if 0 <= e[0] + by <= 2_580]
    shifted = b"".join(struct.pack(OFFSETS, offset + by, position) for offset, position in entries)
    assert refused(replace(segment, offset_index=replace(segment.offset_index, body=shifted))).file == segment.offset_index.path


def test_a_time_index_that_lies_about_what_came_before_is_refused(segment: LogSegmentData) -> None:
    """An entry (T, O) says that no record before O is later than T; a reader who trusted it would skip records."""
    damaged, file = with_file(segment, "time_index", repack(TIMES, add(0, -60_000)))
    assert refused(damaged).file == file.path


@pytest.mark.parametrize(("name", "entry"), [("offset_index", 8), ("time_index", 12)])
@pytest.mark.parametrize("kept", [0, 1, 20])
def test_an_index_cut_between_two_entries_is_refused_by_name(segment: LogSegmentData, name: str, entry: int, kept: int) -> None:
    hurt, file = with_file(segment, name, lambda body: body[: entry * kept])
    found = refused(hurt)
    assert (found.file, found.position) == (file.path, entry * kept)
    assert "cut short" in found.problem


def test_an_index_without_its_last_entry_is_refused_where_kafka_always_writes_one(segment: LogSegmentData) -> None:
    hurt, file = with_file(segment, "time_index", lambda body: body[:-12])
    assert refused(hurt).file == file.path


@pytest.mark.parametrize("offset", [0, 101, 2_683, 5_000])
def test_a_transaction_index_with_a_marker_outside_of_its_segment_is_refused(segment: LogSegmentData, offset: int) -> None:
    assert segment.txn_index is not None
    last = list(struct.iter_unpack(TXNS, segment.txn_index.body))[-1]
    extra = struct.pack(TXNS, 0, last[1], min(offset, last[2]), offset, last[4])
    damaged, file = with_file(segment, "txn_index", lambda b: b + extra)
    assert refused(damaged).file == file.path


@pytest.mark.parametrize("kept", [0, 1, -1])
def test_a_transaction_index_that_lacks_an_abort_marker_of_the_segment_is_refused(segment: LogSegmentData, kept: int) -> None:
    """Without the entry read_committed would give out aborted records, for ever once the local segment is deleted.

    (A marker whose records compaction has removed needs no entry, and has none in a compacted log.)
    """
    assert segment.txn_index is not None
    aborted = read_txn_index(segment.txn_index.body)
    damaged, file = with_file(segment, "txn_index", lambda _: write_txn_index(aborted[:kept]))
    assert refused(damaged).file == file.path


def test_files_that_a_segment_need_not_have_may_be_missing(segment: LogSegmentData) -> None:
    bare = replace(segment, producer_snapshot=None, lineage=(), aborted_later=())
    entry = copy(MemoryStore(), bare)
    assert PRODUCER_SNAPSHOT not in entry.aux_ranges
    assert read_producer_snapshot(segment.producer_snapshot.body if segment.producer_snapshot else b"")


# a store or a file that fails


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    "damage", [lambda b: bytes(flipped(b, len(b) // 2)), lambda b: b[:-1], lambda b: b + b"\0", lambda _: b""]
)
@pytest.mark.parametrize("keeps_checksum", [True, False])
def test_a_store_that_holds_other_bytes_than_it_was_given_is_found_out(
    segment: LogSegmentData, number: int, damage: Callable[[bytes], bytes], keeps_checksum: bool
) -> None:
    store = Corrupts(MemoryStore(), Nth("upload", number), damage)
    with pytest.raises(Corrupt) as raised:
        copy(store if keeps_checksum else KeepsNoChecksum(store), segment)
    assert raised.value.file == store.calls[number - 1][1]
    assert "put_if_absent" not in verbs(store.calls)
    assert "delete" not in verbs(store.calls)


def test_a_store_without_checksums_is_read_back_whole(segment: LogSegmentData) -> None:
    store = KeepsNoChecksum(MemoryStore())
    entry = copy(store, segment)
    log, aux = PATH.segment(entry.log_name), PATH.segment(entry.aux_name)
    assert store.calls == [
        ("upload", log),
        ("upload", aux),
        ("head", log),
        ("get_range", log, 0, entry.log_size),
        ("head", aux),
        ("get_range", aux, 0, entry.aux_size),
    ]


def test_verify_finds_every_flipped_bit() -> None:
    body = bytes(range(256))
    for position in range(0, 256, 17):
        store = MemoryStore()
        store.put_if_absent("key", bytes(flipped(body, position)))
        for door in (store, KeepsNoChecksum(store)):
            with pytest.raises(Corrupt, match="key"):
                verify(door, "key", 256, crc32c(body))


@pytest.mark.parametrize("change", [lambda b: flipped(b, 500_000), lambda b: b[:-100], lambda b: b[:10], lambda _: b""])
def test_a_file_that_changes_after_its_check_is_not_stored(
    segment: LogSegmentData, body: bytes, change: Callable[[bytes], bytes]
) -> None:
    later = bytes(change(body))
    seen = 0

    def read(start: int, end: int) -> bytes:
        nonlocal seen
        source = body if seen < len(body) else later
        part = source[start:end]
        seen += end - start
        return part

    store = MemoryStore()
    with pytest.raises(Corrupt) as raised:
        copy(store, replace(segment, read=read))
    assert store.objects == {}
    assert store.calls == [("upload", raised.value.file)]


def test_a_file_that_goes_between_check_and_upload_is_not_found(segment: LogSegmentData, body: bytes) -> None:
    seen = 0

    def read(start: int, end: int) -> bytes:
        nonlocal seen
        if seen >= len(body):
            raise NotFound("the broker has deleted it")
        seen += end - start
        return body[start:end]

    store = MemoryStore()
    with pytest.raises(NotFound):
        copy(store, replace(segment, read=read))
    assert store.objects == {}


@pytest.mark.parametrize("number", [1, 2])
def test_an_uploader_that_fails_deletes_nothing(segment: LogSegmentData, number: int) -> None:
    for make, error in ((failing, Unavailable), (losing, Unknown)):
        store = MemoryStore()
        with pytest.raises(error):
            copy(make(store, number), segment)
        assert set(verbs(store.calls)) <= {"upload"}


def failing(store: MemoryStore, number: int) -> ObjectStore:
    return FailsBefore(store, Unavailable("down"), Nth("upload", number))


def losing(store: MemoryStore, number: int) -> ObjectStore:
    return LosesAnswer(store, Nth("upload", number))
