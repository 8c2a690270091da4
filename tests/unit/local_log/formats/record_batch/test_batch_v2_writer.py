"""Batches written: the same bytes that a broker wrote, and nothing that Kafka's builder would refuse."""

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden_logs import segments
from hand_made import APPEND_TIME, COMMIT_KEY, DELETE_HORIZON, batch, decoded, record
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka_judge import Judge, oracle

from local_log.errors import Corrupt, Invalid
from local_log.formats.control import ControlType
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.record import Codec, TimestampType
from local_log.formats.record_batch.batch_v2 import check_crcs, scan
from local_log.formats.record_batch.few_records import write_few, write_marker
from local_log.formats.record_batch.header import read_batch_header
from local_log.formats.record_batch.writer import RECORDS, NewBatch, joined, write_batch, write_emptied

SAME_BYTES = {Codec.none, Codec.gzip, Codec.lz4}
"""The codecs whose libraries agree with Kafka's to the byte; of the others, header and records are the same."""

T = 1_700_000_000_000


def rows(*values: bytes | None, times: list[int] | None = None, first: int = 0, **more: Any) -> pa.RecordBatch:
    """A record for each value, offsets in a row."""
    made = [
        {"offset": first + n, "timestamp": times[n] if times else T + n, "key": b"k", "value": v, "headers": []} | more
        for n, v in enumerate(values)
    ]
    return pa.RecordBatch.from_pylist(made, schema=RECORDS)


def read(buffer: bytes) -> pa.RecordBatch:
    batches, stop = scan(buffer)
    assert stop == len(buffer)
    check_crcs(buffer, batches)
    return decoded(buffer, batches)


def of_one(log: bytes) -> Iterator[bytes]:
    """Each batch of a log's bytes."""
    batches, _ = scan(log)
    for start, end in zip(batches.positions.tolist(), batches.end.tolist(), strict=True):
        yield log[start:end]


def again(one: bytes) -> bytes:
    """The batch, decoded to columns and written from them."""
    header = read_batch_header(one)
    if not header.records_count:
        return write_emptied(header)
    append_time = header.max_timestamp if header.attributes & APPEND_TIME else None
    # Read without the flag, records have the times that they were sent with.
    columns = read(joined(header._replace(attributes=header.attributes & ~APPEND_TIME), one[BATCH_HEADER_BYTES:]))
    new = NewBatch(
        base_offset=header.base_offset,
        codec=Codec(header.codec),
        append_time_ms=append_time,
        partition_leader_epoch=header.partition_leader_epoch,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        is_transactional=header.is_transactional,
        is_control=header.is_control,
        delete_horizon_ms=header.base_timestamp if header.attributes & DELETE_HORIZON else None,
    )
    return write_batch(new, columns, last_offset=header.last_offset)


@pytest.mark.slow
def test_every_batch_of_a_broker_is_written_again_as_it_was(broker: Path, partition: str) -> None:
    for _, log in segments(broker, partition):
        for one in of_one(log):
            made, header = again(one), read_batch_header(one)
            if header.codec in SAME_BYTES:
                assert made == one
            else:
                assert read_batch_header(made)._replace(crc=0, batch_length=0) == header._replace(crc=0, batch_length=0)
                assert read(made).equals(read(one))


def test_the_golden_logs_have_batches_of_every_kind(broker: Path) -> None:
    kinds = {
        (h.is_transactional, h.is_control, bool(h.attributes & DELETE_HORIZON), h.timestamp_type, not h.records_count)
        for folder in broker.glob("g-*")
        for _, log in segments(broker, folder.name)
        for h in map(read_batch_header, of_one(log))
    }
    assert {kind[:3] for kind in kinds} >= {(False, False, False), (True, False, False), (True, True, False), (True, True, True)}
    assert {kind[3] for kind in kinds} == {TimestampType.CREATE_TIME, TimestampType.LOG_APPEND_TIME}
    assert {kind[4] for kind in kinds} == {False, True}


binary = st.one_of(st.none(), st.binary(max_size=80))
headers = st.lists(st.tuples(st.text(max_size=10).map(str.encode), binary), max_size=4)
written = st.lists(st.tuples(st.integers(1, 1 << 20), st.integers(-1, 1 << 45), binary, binary, headers), min_size=1, max_size=20)


def columns_of(made: list[Any], base_offset: int) -> pa.RecordBatch:
    offset, records = base_offset - 1, []
    for step, timestamp, key, value, pairs in made:
        offset += step
        pairs = [{"key": name, "value": data} for name, data in pairs]
        records.append({"offset": offset, "timestamp": timestamp, "key": key, "value": value, "headers": pairs})
    return pa.RecordBatch.from_pylist(records, schema=RECORDS)


@settings(deadline=None, max_examples=100)
@given(made=written, base_offset=st.integers(0, 1 << 60), codec=st.sampled_from(Codec), cut=st.integers(0, 19))
def test_what_is_written_is_read(made: list[Any], base_offset: int, codec: Codec, cut: int) -> None:
    columns = columns_of(made, base_offset)
    assert read(write_batch(NewBatch(base_offset, codec), columns)).equals(columns)
    rest = columns.slice(cut)  # Arrow's columns may start anywhere in their buffers
    if rest.num_rows:
        assert read(write_batch(NewBatch(base_offset, codec), rest)).equals(rest)


@settings(deadline=None, max_examples=100)
@given(made=written, base_offset=st.integers(0, 1 << 60))
def test_the_records_are_those_made_by_hand(made: list[Any], base_offset: int) -> None:
    columns = columns_of(made, base_offset)
    offsets, times = columns.column("offset").to_pylist(), columns.column("timestamp").to_pylist()
    records = [
        record(o - base_offset, timestamp_delta=t - times[0], key=k, value=v, headers=h)
        for o, t, (_, _, k, v, h) in zip(offsets, times, made, strict=True)
    ]
    header = {"base_offset": base_offset, "base_timestamp": times[0], "max_timestamp": max(times)}
    by_hand = batch(*records, last_delta=offsets[-1] - base_offset, epoch=-1, **header)
    assert write_batch(NewBatch(base_offset), columns) == by_hand


def test_timestamps_count_from_the_first_one_and_the_greatest_is_in_the_header() -> None:
    header = read_batch_header(write_batch(NewBatch(5), rows(b"a", b"b", b"c", times=[T + 7, T + 9, T - 1], first=5)))
    assert (header.base_timestamp, header.max_timestamp, header.last_offset_delta) == (T + 7, T + 9, 2)


def test_records_without_a_timestamp_give_a_batch_without_one() -> None:
    header = read_batch_header(write_batch(NewBatch(0), rows(b"a", b"b", times=[-1, -1])))
    assert (header.base_timestamp, header.max_timestamp) == (-1, -1)


def test_with_an_append_time_the_records_keep_their_own_but_nobody_reads_it() -> None:
    made = write_batch(NewBatch(0, append_time_ms=T + 99), rows(b"a", b"b"))
    header = read_batch_header(made)
    assert (header.timestamp_type, header.base_timestamp, header.max_timestamp) == (TimestampType.LOG_APPEND_TIME, T, T + 99)
    assert read(made).column("timestamp").to_pylist() == [T + 99, T + 99]
    assert made[BATCH_HEADER_BYTES:] == write_batch(NewBatch(0), rows(b"a", b"b"))[BATCH_HEADER_BYTES:]


def test_a_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    made = write_batch(NewBatch(0, delete_horizon_ms=T + 500), rows(None, times=[T]))
    assert scan(made)[0].delete_horizon_ms.tolist() == [T + 500]
    assert read(made).column("timestamp").to_pylist() == [T]


def test_a_batch_that_compaction_thinned_out_keeps_its_offsets() -> None:
    header = read_batch_header(write_batch(NewBatch(10), rows(b"left", first=14), last_offset=19))
    assert (header.base_offset, header.last_offset, header.records_count) == (10, 19, 1)


def test_a_batch_that_compaction_emptied_is_a_bare_header() -> None:
    old = read_batch_header(
        write_batch(
            NewBatch(3, Codec.zstd, append_time_ms=T, producer_id=4, producer_epoch=1, base_sequence=9, is_transactional=True),
            rows(b"a", b"b", first=3),
        )
    )
    made = write_emptied(old)
    new = read_batch_header(made)
    assert len(made) == BATCH_HEADER_BYTES
    assert (new.codec, new.base_timestamp, new.max_timestamp, new.records_count) == (Codec.none, -1, T, 0)
    assert (new.last_offset, new.producer_id, new.base_sequence, new.is_transactional) == (4, 4, 9, True)
    check_crcs(made, scan(made)[0])


def test_a_marker_says_how_its_transaction_ended_and_by_whom() -> None:
    marker = {"producer_id": 7, "producer_epoch": 2, "coordinator_epoch": 5, "partition_leader_epoch": 3}
    made = write_marker(20, T, ControlType.COMMIT, **marker)
    header, records = read_batch_header(made), read(made)
    assert (header.is_control, header.is_transactional, header.base_sequence) == (True, True, -1)
    assert (header.base_offset, header.producer_id, header.producer_epoch, header.partition_leader_epoch) == (20, 7, 2, 3)
    assert records.column("key").to_pylist() == [COMMIT_KEY]
    assert records.column("value").to_pylist() == [b"\0\0\0\0\0\5"]


large = st.builds(lambda part, size: (part * size)[:size], st.binary(min_size=1, max_size=9), st.integers(8_000, 20_000))
few = st.lists(st.tuples(binary | large, binary), max_size=80)
owners = [
    NewBatch(3),
    NewBatch(0, partition_leader_epoch=5, producer_id=7, producer_epoch=2, base_sequence=0, is_transactional=True),
]


@settings(deadline=None, max_examples=100)
@given(new=st.sampled_from(owners), pairs=few, timestamp=st.integers(-1, 1 << 45))
def test_a_few_records_are_written_as_columns_of_them(new: NewBatch, pairs: list[Any], timestamp: int) -> None:
    columns = columns_of([(1, timestamp, key, value, []) for key, value in pairs], new.base_offset)
    assert write_few(new, timestamp, pairs) == write_batch(new, columns)


@pytest.mark.parametrize(
    "new",
    [NewBatch(0, Codec.lz4), NewBatch(0, append_time_ms=T), NewBatch(0, delete_horizon_ms=T), NewBatch(0, is_transactional=True)],
)
def test_a_few_records_are_neither_compressed_nor_have_other_times_than_their_own(new: NewBatch) -> None:
    with pytest.raises(Invalid):
        write_few(new, T, [(b"", b"")])


@pytest.mark.parametrize("codec", Codec)
def test_no_records_make_no_batch(codec: Codec) -> None:
    assert write_batch(NewBatch(0, codec), rows()) == b""
    assert write_few(NewBatch(0), T, []) == b""


REFUSED = {
    "an offset twice": (NewBatch(0), [(0, T), (0, T)]),
    "an offset that falls": (NewBatch(0), [(1, T), (0, T)]),
    "an offset below the base": (NewBatch(1), [(0, T)]),
    "an offset too far from the base": (NewBatch(0), [(0, T), (1 << 31, T)]),
    "a negative timestamp": (NewBatch(0), [(0, T), (1, -2)]),
    "a transaction without a producer": (NewBatch(0, is_transactional=True), [(0, T)]),
    "a producer without an epoch": (NewBatch(0, producer_id=1, base_sequence=0), [(0, T)]),
    "a producer without a sequence": (NewBatch(0, producer_id=1, producer_epoch=0), [(0, T)]),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_kafka_would_not_build_is_invalid(case: str) -> None:
    new, pairs = REFUSED[case]
    records = [{"offset": o, "timestamp": t, "key": None, "value": None, "headers": []} for o, t in pairs]
    with pytest.raises(Invalid):
        write_batch(new, pa.RecordBatch.from_pylist(records, schema=RECORDS))


def test_the_farthest_offset_and_the_longest_varints_fit() -> None:
    columns = rows(b"a", b"b" * 70_000, times=[1 << 62, -1])
    columns = columns.set_column(0, "offset", pa.array([0, (1 << 31) - 1], pa.int64()))
    assert read(write_batch(NewBatch(0), columns)).equals(columns)


def test_many_records_with_the_longest_numbers_stay_within_their_memory() -> None:
    columns = rows(*[None] * 1_000, times=[1 << 62, *[-1] * 999])
    columns = columns.set_column(0, "offset", pa.array([0, *range((1 << 31) - 999, 1 << 31)], pa.int64()))
    assert read(write_batch(NewBatch(0), columns)).equals(columns)


def test_a_header_is_read_as_it_was_packed_and_is_corrupt_where_it_is_cut() -> None:
    header = read_batch_header(write_batch(NewBatch(8, producer_id=3, producer_epoch=1, base_sequence=2), rows(b"a", first=8)))
    assert read_batch_header(b"xx" + header.pack(), 2) == header
    for size in range(BATCH_HEADER_BYTES):
        with pytest.raises(Corrupt):
            read_batch_header(header.pack()[:size])


@oracle
@pytest.mark.parametrize("codec", Codec)
def test_kafka_reads_what_is_written(kafka: Judge, codec: Codec) -> None:
    pairs = [{"key": "näme".encode(), "value": None}, {"key": b"", "value": b""}]
    made = [
        {
            "offset": 5 + 3 * n,
            "timestamp": T - n * n,
            "key": b"k" * (n % 70) or None,
            "value": b"v%d" % n * n,
            "headers": pairs[: n % 3],
        }
        for n in range(300)
    ]
    producer = {"producer_id": 4, "producer_epoch": 1, "base_sequence": (1 << 31) - 100}
    buffer = write_batch(NewBatch(2, codec, **producer), pa.RecordBatch.from_pylist(made, schema=RECORDS))
    status, *lines = kafka.ask("read", buffer)
    assert status == "ok"
    expected = [
        [
            str(r["offset"]), str(r["timestamp"]), str((producer["base_sequence"] + r["offset"] - 2) & 0x7FFFFFFF),
            text(r["key"]), text(r["value"]), *(text(half) for pair in r["headers"] for half in (pair["key"], pair["value"])),
        ]
        for r in made
    ]  # fmt: skip
    assert [line.split(",") for line in lines] == expected


@oracle
@pytest.mark.parametrize("end", ControlType)
def test_kafka_writes_the_same_marker(kafka: Judge, end: ControlType) -> None:
    ours = write_marker(9, T, end, producer_id=1, producer_epoch=2, coordinator_epoch=77, partition_leader_epoch=4)
    assert kafka.ask("marker", 9, T, 4, 1, 2, end.name, 77) == ["ok", text(ours)]


def text(data: bytes | None) -> str:
    return "-" if data is None else base64.b64encode(data).decode()
