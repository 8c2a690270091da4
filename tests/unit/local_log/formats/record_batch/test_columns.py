"""Records as Arrow columns: the golden ones all, and those that lie about themselves."""

import base64
import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden_logs import expected_records, record_digest, segments
from hand_made import (
    APPEND_TIME,
    CONTROL,
    DELETE_HORIZON,
    GZIP,
    LZ4,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    batch,
    body,
    compressed,
    decoded,
    field,
    record,
    varint,
    xerial,
)
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats.chunks import GROUP_BYTES
from local_log.formats.record import Codec
from local_log.formats.record_batch import columns
from local_log.formats.record_batch.batch_v2 import check_crcs, scan
from local_log.formats.record_batch.columns import per_record
from local_log.formats.record_batch.projection import Projection

CODECS = [0, GZIP, SNAPPY, LZ4, ZSTD]


def read(buffer: bytes, **want: bool) -> pa.RecordBatch:
    batches, stop = scan(buffer)
    assert stop == len(buffer)
    check_crcs(buffer, batches)
    records = decoded(buffer, batches, Projection(**want))
    records.validate(full=True)
    return records


def text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def digests(buffer: bytes, batches: Any) -> list[bytes]:
    records = decoded(buffer, batches)
    records.validate(full=True)
    base_sequence = per_record(batches, batches.header["base_sequence"]).tolist()
    base_offset = per_record(batches, batches.base_offset).tolist()
    control = per_record(batches, batches.is_control).tolist()
    found = []
    for row, fields in enumerate(records.to_pylist()):
        sequence = (base_sequence[row] + fields["offset"] - base_offset[row]) & 0x7FFFFFFF
        found.append(
            record_digest(
                {
                    "offset": fields["offset"],
                    "timestamp": fields["timestamp"],
                    "sequence": -1 if base_sequence[row] < 0 else sequence,
                    "control": control[row],
                    "key": text(fields["key"]),
                    "value": text(fields["value"]),
                    "headers": [[text(header["key"]), text(header["value"])] for header in fields["headers"]],
                }
            )
        )
    return found


def test_every_record_is_what_kafka_reads(broker: Path, partition: str) -> None:
    found = []
    for _, buffer in segments(broker, partition):
        for group in scan(buffer)[0].split(GROUP_BYTES):
            found += digests(buffer, group)
    assert found == list(expected_records(partition))


@settings(deadline=None, max_examples=15)
@given(weight_max=st.integers(1, GROUP_BYTES))
@example(weight_max=1)
def test_records_are_the_same_in_groups_of_any_size(broker: Path, weight_max: int) -> None:
    for name in ("g-mixed-0", "g-compacted-txn-0"):
        for _, buffer in segments(broker, name):
            batches, _ = scan(buffer)
            groups = [decoded(buffer, group) for group in batches.split(weight_max)]
            assert pa.Table.from_batches(groups).equals(pa.table(decoded(buffer, batches)))


@settings(deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(st.sampled_from(CODECS), st.lists(st.integers(0, 400), max_size=6), st.booleans()), min_size=1, max_size=12
    ),
    st.integers(1, 3_000),
    st.integers(1, 1_500),
)
def test_batches_are_grouped_as_they_inflate_and_each_record_is_that_of_its_batch(
    monkeypatch: pytest.MonkeyPatch, made: list[tuple[int, list[int], bool]], group_bytes: int, run_bytes: int
) -> None:
    monkeypatch.setattr(columns, "INFLATED_GROUP_BYTES", group_bytes)
    monkeypatch.setattr(columns, "_RUN_BYTES_MIN", run_bytes)
    headers = [(b"h", b"1"), (b"", None)]
    bodies = [
        batch(
            *(record(n, key=None if null else b"k%d" % n, value=bytes([n]) * size, headers=headers[:n]) for n, size in pairs),
            base_offset=10 * number,
            attributes=codec,
        )
        for number, (codec, sizes, null) in enumerate(made)
        for pairs in [list(enumerate(sizes))]
    ]
    buffer = b"".join(bodies)
    batches, _ = scan(buffer)
    for want in (Projection(), Projection(key=False, value=False, headers=False)):
        groups = list(columns.decode(buffer, batches, want))
        assert sum(len(of) for of, _ in groups) == len(made)
        assert [int(of.count.sum()) for of, _ in groups] == [records.num_rows for _, records in groups]
        alone = [decoded(body, scan(body)[0], want) for body in bodies]
        found = pa.Table.from_batches([records for _, records in groups])
        found.validate(full=True)
        assert found.equals(pa.Table.from_batches(alone))


def test_a_projection_gives_the_same_columns_as_everything(broker: Path, partition: str) -> None:
    for _, buffer in segments(broker, partition):
        batches, _ = scan(buffer)
        everything = decoded(buffer, batches, Projection(timestamp_type=True))
        assert everything.column_names == ["offset", "timestamp", "key", "value", "headers", "timestamp_type"]
        assert everything.column("timestamp_type").to_pylist() == per_record(batches, batches.timestamp_type).tolist()
        for wanted in itertools.product([False, True], repeat=4):
            want = dict(zip(("key", "value", "headers", "timestamp_type"), wanted, strict=True))
            names = ["offset", "timestamp", *(name for name, is_wanted in want.items() if is_wanted)]
            assert decoded(buffer, batches, Projection(**want)).equals(everything.select(names))


def test_the_columns_have_the_types_that_readers_rely_on() -> None:
    headers = pa.list_(pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())]))
    types = {"offset": pa.int64(), "timestamp": pa.int64(), "key": pa.binary(), "value": pa.binary(), "headers": headers}
    types["timestamp_type"] = pa.int32()
    for buffer in (b"", batch(count=0), batch(record(headers=[(b"a", None)]))):
        assert read(buffer, timestamp_type=True).schema == pa.schema(types)


@pytest.mark.parametrize("codec", CODECS)
def test_null_and_empty_keys_and_values_stay_apart(codec: int) -> None:
    pairs = [(None, None), (b"", b""), (None, b"v"), (b"k", None), (b"", None), (None, b""), (b"k" * 300, b"v" * 70_000)]
    records = read(batch(*(record(n, key=k, value=v) for n, (k, v) in enumerate(pairs)), attributes=codec))
    assert list(zip(records.column("key").to_pylist(), records.column("value").to_pylist(), strict=True)) == pairs


@pytest.mark.parametrize("codec", CODECS)
def test_headers_may_be_empty_null_many_and_alike(codec: int) -> None:
    headers = [[], [(b"", b"")], [(b"a", None), (b"a", b"1"), (b"a", b"")], [], [(b"h%d" % n, b"%d" % n) for n in range(200)], []]
    records = read(batch(*(record(n, headers=h) for n, h in enumerate(headers)), attributes=codec))
    found = [[(header["key"], header["value"]) for header in row] for row in records.column("headers").to_pylist()]
    assert found == headers


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_compaction_emptied_has_no_records(codec: int) -> None:
    bare = batch(section=b"", attributes=codec, count=0, last_delta=9, base_offset=5)
    assert read(bare).num_rows == 0
    after = batch(record(), base_offset=15)
    assert read(bare + after + bare).column("offset").to_pylist() == [15]


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_without_records_may_still_hold_an_empty_frame(codec: int) -> None:
    assert read(batch(attributes=codec, count=0)).num_rows == 0


def test_with_log_append_time_every_record_has_the_batch_s_greatest_timestamp() -> None:
    records = [record(n, timestamp_delta=n) for n in range(3)]
    buffer = batch(*records, attributes=APPEND_TIME, max_timestamp=77_777) + batch(*records, base_offset=3, max_timestamp=1_002)
    found = read(buffer, timestamp_type=True)
    assert found.column("timestamp").to_pylist() == [77_777] * 3 + [1_000, 1_001, 1_002]
    assert found.column("timestamp_type").to_pylist() == [1, 1, 1, 0, 0, 0]


def test_timestamps_count_from_the_base_even_where_it_is_a_delete_horizon() -> None:
    buffer = batch(record(0, timestamp_delta=-900), attributes=DELETE_HORIZON, base_timestamp=5_000, max_timestamp=4_100)
    assert read(buffer).column("timestamp").to_pylist() == [4_100]
    assert scan(buffer)[0].delete_horizon_ms.tolist() == [5_000]


@pytest.mark.parametrize("delta", [-1, -64, -65, -(2**20), -(2**31), 2**31, 2**41, -1_001, 63, 64, 8_191, 8_192, 2**62])
def test_timestamp_deltas_of_any_sign_and_size_add_up(delta: int) -> None:
    assert read(batch(record(timestamp_delta=delta))).column("timestamp").to_pylist() == [1_000 + delta]


@pytest.mark.parametrize("delta", [0, 63, 64, 8_191, 8_192, 2**20, 2**27, 2**28, 2**31 - 1])
def test_offset_deltas_take_up_to_five_bytes(delta: int) -> None:
    buffer = batch(record(delta), base_offset=10**12, last_delta=delta)
    assert read(buffer).column("offset").to_pylist() == [10**12 + delta]


def test_a_varint_may_be_longer_than_it_must() -> None:
    short = body(0, key=b"", value=b"v")
    long = b"\0" + b"\x80\0" + b"\x80\x80\x80\x80\0" + b"\x80\x80\0" + b"\x82\x80\0" + b"v" + b"\x80\0"
    records = read(batch(field(short), field(long)))
    assert records.slice(0, 1).select(["key", "value", "headers"]).equals(records.slice(1).select(["key", "value", "headers"]))


def test_batches_of_every_codec_are_decoded_in_one_group() -> None:
    parts = []
    for n, codec in enumerate([*CODECS, 0, SNAPPY, 0]):
        rows = [record(i, key=b"%d" % codec, value=b"%d-%d" % (n, i), headers=[(b"n", b"%d" % n)]) for i in range(3)]
        section = xerial(b"".join(rows)) if n == 6 else None
        parts.append(batch(*rows, attributes=codec, base_offset=n * 3, section=section))
    records = read(b"".join(parts))
    assert records.column("offset").to_pylist() == list(range(24))
    assert records.column("value").to_pylist() == [b"%d-%d" % (n, i) for n in range(8) for i in range(3)]
    assert [h[0]["value"] for h in records.column("headers").to_pylist()] == [b"%d" % n for n in range(8) for _ in range(3)]


def test_control_and_transactional_batches_are_decoded_like_others() -> None:
    marker = batch(record(key=b"\0\0\0\1", value=b"\0\0\0\0\0\0"), attributes=TRANSACTIONAL | CONTROL, producer_id=4)
    assert read(marker).column("key").to_pylist() == [b"\0\0\0\1"]


binary = st.one_of(st.none(), st.binary(max_size=80))


@settings(deadline=None, max_examples=80)
@given(
    rows=st.lists(
        st.tuples(st.integers(-(2**40), 2**40), binary, binary, st.lists(st.tuples(st.binary(max_size=20), binary), max_size=4)),
        max_size=8,
    ),
    codec=st.sampled_from(CODECS),
)
def test_whatever_is_encoded_is_decoded(rows: list, codec: int) -> None:
    made = [record(n, timestamp_delta=t, key=k, value=v, headers=h) for n, (t, k, v, h) in enumerate(rows)]
    before = batch(record(value=b"before"), attributes=GZIP)
    found = read(before + batch(*made, attributes=codec, base_offset=1)).to_pylist()[1:]
    assert [(r["timestamp"] - 1_000, r["key"], r["value"], [(h["key"], h["value"]) for h in r["headers"]]) for r in found] == rows
    assert [r["offset"] for r in found] == list(range(1, len(rows) + 1))


# A record of 5 bytes' body after its attributes: timestamp delta, offset delta, null key, null value, no headers.
NULLS = b"\0\0\0\x01\x01\0"
ELEVEN = b"\x80" * 10 + b"\0"

LIES = {
    "more records than there are": lambda: batch(record(), count=2),
    "more records than there is room for": lambda: batch(record(), count=2**31 - 1),
    "fewer records than there are": lambda: batch(record(), record(1), count=1),
    "no records but bytes": lambda: batch(record(), count=0),
    "a negative count": lambda: batch(record(), count=-1),
    "the least count": lambda: batch(record(), count=-(2**31)),
    "records but no bytes": lambda: batch(count=1),
    "a record past the batch": lambda: batch(varint(len(NULLS) + 1) + NULLS),
    "a record past the next batch": lambda: batch(varint(100_000) + NULLS),
    "a record as long as can be": lambda: batch(varint(2**62) + NULLS),
    "a record of negative length": lambda: batch(varint(-1) + NULLS),
    "a record of no bytes": lambda: batch(varint(0) + NULLS),
    "a record of one byte": lambda: batch(varint(1) + NULLS),
    "a record that its fields outgrow": lambda: batch(varint(5) + NULLS),
    "a record with bytes left over": lambda: batch(varint(len(NULLS) + 1) + NULLS + b"\0"),
    "a record length that does not end": lambda: batch(b"\x80" * 7, count=1),
    "a record length of 11 bytes": lambda: batch(ELEVEN + NULLS),
    "a timestamp of 11 bytes": lambda: batch(field(b"\0" + ELEVEN + b"\0\1\1\0")),
    "an offset of 11 bytes": lambda: batch(field(b"\0\0" + ELEVEN + b"\1\1\0")),
    "a key length of 11 bytes": lambda: batch(field(b"\0\0\0" + ELEVEN + b"\1\0")),
    "a value length of 11 bytes": lambda: batch(field(b"\0\0\0\1" + ELEVEN + b"\0")),
    "a header count of 11 bytes": lambda: batch(field(b"\0\0\0\1\1" + ELEVEN)),
    "a header name's length of 11 bytes": lambda: batch(field(b"\0\0\0\1\1\2" + ELEVEN + b"\1")),
    "a header value's length of 11 bytes": lambda: batch(field(b"\0\0\0\1\1\2\0" + ELEVEN)),
    "a key past the record": lambda: batch(field(b"\0\0\0" + varint(4) + b"abc"), record(1)),
    "a key as long as can be": lambda: batch(field(b"\0\0\0" + varint(2**62) + b"abc")),
    "a value past the record": lambda: batch(field(b"\0\0\0\1" + varint(4) + b"abc"), record(1)),
    "no room for a value": lambda: batch(field(b"\0\0\0\1"), count=0 + 1, section=field(b"\0\0\0\1") + b"\0\0"),
    "a record that ends before its header count": lambda: batch(field(b"\0\0\0\1\1"), record(1)),
    "a negative number of headers": lambda: batch(field(b"\0\0\0\1\1" + varint(-1))),
    "more headers than bytes": lambda: batch(field(b"\0\0\0\1\1" + varint(2**31 - 1))),
    "one header more than there is": lambda: batch(field(b"\0\0\0\1\1" + varint(2) + field(b"n") + field(b"v"))),
    "one header fewer than there is": lambda: batch(field(b"\0\0\0\1\1" + varint(1) + 2 * (field(b"n") + field(b"v")))),
    "no headers but bytes": lambda: batch(field(b"\0\0\0\1\1" + varint(0) + field(b"n") + field(b"v"))),
    "a header without a name": lambda: batch(field(b"\0\0\0\1\1" + varint(1) + field(None) + field(b"v"))),
    "a header name past the record": lambda: batch(field(b"\0\0\0\1\1" + varint(1) + varint(9) + b"name"), record(1)),
    "a header value past the record": lambda: batch(field(b"\0\0\0\1\1" + varint(1) + field(b"n") + varint(9) + b"v"), record(1)),
    "a header name's length that does not end": lambda: batch(field(b"\0\0\0\1\1" + varint(1) + b"\x80")),
    "a header without a value": lambda: batch(field(b"\0\0\0\1\1" + varint(1) + field(b"n"))),
    "a header without a value, before another record": lambda: batch(field(b"\0\0\0\1\1" + varint(1) + field(b"n")), record(1)),
}


def with_codec(bad: bytes, codec: int) -> bytes:
    """The same batch with its records section compressed."""
    count = int.from_bytes(bad[57:61], "big", signed=True)
    return batch(section=compressed(codec, bad[61:]), attributes=codec, count=count)


@pytest.mark.parametrize("codec", [0, ZSTD])
@pytest.mark.parametrize("last", [False, True], ids=["before a sound batch", "last"])
@pytest.mark.parametrize("lie", LIES)
def test_a_batch_that_lies_is_corrupt_at_its_first_byte(lie: str, last: bool, codec: int) -> None:
    good = batch(record(), record(1))
    bad = LIES[lie]()
    if codec:
        bad = with_codec(bad, codec)
    with pytest.raises(Corrupt) as caught:
        read(good + bad + (b"" if last else good))
    assert caught.value.position == len(good)


def test_a_lie_in_headers_is_found_beside_sound_headers_too() -> None:
    good = batch(record(headers=[(b"n", b"v")]))
    for lie in ("no headers but bytes", "a header without a value", "a header name's length that does not end"):
        with pytest.raises(Corrupt) as caught:
            read(good + LIES[lie]() + good)
        assert caught.value.position == len(good), lie


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_kafka_does_not_have_is_corrupt_at_its_batch(codec: int) -> None:
    good = batch(record())
    with pytest.raises(Corrupt, match=f"codec {codec}") as caught:
        read(good + batch(record(), attributes=codec) + good)
    assert caught.value.position == len(good)


@pytest.mark.parametrize("codec", CODECS[1:])
def test_a_broken_frame_is_corrupt_at_its_batch(codec: int) -> None:
    good = batch(record(), attributes=codec)
    for section in (b"", b"\0", b"no frame of any codec", compressed(codec, record())[:-3]):
        with pytest.raises(Corrupt) as caught:
            read(good + batch(section=section, attributes=codec, count=1) + good)
        assert caught.value.position == len(good)


@settings(deadline=None, max_examples=300)
@given(
    section=st.one_of(
        st.binary(max_size=60),
        st.builds(
            lambda rows, at, to: bytes((*b"".join(rows)[:at], *to, *b"".join(rows)[at + len(to) :])),
            st.just([record(n, headers=[(b"a", b"1"), (b"", None)]) for n in range(3)]),
            st.integers(0, 70),
            st.binary(min_size=1, max_size=3),
        ),
    ),
    count=st.integers(0, 8),
    codec=st.sampled_from([0, LZ4]),
)
@example(section=field(b"\0\0\0\1\1" + varint(1) + b"\x80"), count=1, codec=0)
def test_any_records_section_is_decoded_or_corrupt(section: bytes, count: int, codec: int) -> None:
    good = batch(record(headers=[(b"a", b"b")]))
    bad = batch(section=compressed(codec, section), count=count, attributes=codec, base_offset=1)
    buffer = good + bad + good
    batches, _ = scan(buffer)
    for want in (Projection(), Projection(headers=False), Projection(key=False, value=False, headers=False)):
        try:
            records = decoded(buffer, batches, want)
        except Corrupt as e:
            position = e.position
        else:
            position = len(good)
            records.validate(full=True)
            assert records.num_rows == count + 2
        assert position == len(good)


def test_codecs_have_kafka_s_names() -> None:
    assert [codec.name for codec in Codec] == ["none", "gzip", "snappy", "lz4", "zstd"]
