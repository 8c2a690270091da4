"""Messages of magic 0 and 1: what Kafka reads in the golden ones, and what no log may hold."""

import struct
import zlib
from contextlib import suppress
from pathlib import Path

import lz4.frame
import numpy as np
import pytest
from golden_logs import expected_batches, segments
from hand_made import APPEND_TIME, GZIP, LZ4, SNAPPY, ZSTD, compressed, decoded, message, wrapper, xerial
from hypothesis import given, settings
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats.batch_v2 import check_crcs
from local_log.formats.columns import HEADERS_TYPE, Projection
from local_log.formats.message_set import decode_messages, scan_messages

CODECS = [GZIP, SNAPPY, LZ4]
OFFSET, LENGTH = range(8), range(8, 12)


def rows(buffer: bytes) -> list[tuple]:
    batches, _ = scan_messages(buffer)
    records = decoded(buffer, batches, Projection(timestamp_type=True)).to_pylist()
    return [(r["offset"], r["timestamp"], r["timestamp_type"], r["key"], r["value"]) for r in records]


def wrong(buffer: bytes) -> str:
    """What is said of the message after a sound one, which every finding has to be placed at."""
    sound = message(1, offset=-1)
    scanned, stop = scan_messages(sound + buffer)
    assert (len(scanned), stop) == (1, len(sound))
    with pytest.raises(Corrupt) as caught:
        scan_messages(sound + buffer, stop)
    assert caught.value.position == len(sound)
    return caught.value.problem


def damaged(buffer: bytes) -> str:
    """What decoding says of a message that a scan has nothing against."""
    batches, _ = scan_messages(buffer)
    with pytest.raises(Corrupt) as caught:
        list(decode_messages(buffer, batches))
    assert caught.value.position == 0
    return caught.value.problem


def test_every_header_field_is_what_kafka_reads(legacy: Path, legacy_partition: str) -> None:
    lines = expected_batches(legacy_partition)
    seen = 0
    for segment, buffer in segments(legacy, legacy_partition):
        of_segment = {line["position"]: line for line in lines if line["segment"] == segment and line["magic"] < 2}
        pos = 0
        while pos in of_segment:
            batches, pos = scan_messages(buffer, pos)
            check_crcs(buffer, batches)
            columns = {
                "size": batches.size,
                "magic": batches.header["magic"],
                "base_offset": batches.base_offset,
                "last_offset": batches.last_offset,
                "timestamp_type": batches.timestamp_type,
                "max_timestamp": batches.max_timestamp,
                "leader_epoch": batches.header["partition_leader_epoch"],
                "producer_id": batches.header["producer_id"],
                "producer_epoch": batches.header["producer_epoch"],
                "base_sequence": batches.header["base_sequence"],
                "last_sequence": batches.last_sequence,
                "transactional": batches.is_transactional,
                "control": batches.is_control,
            }
            for name, column in columns.items():
                assert column.tolist() == [of_segment[p][name] for p in batches.positions.tolist()], name
            assert (batches.delete_horizon_ms == -1).all()
            assert batches.next_offset == of_segment[int(batches.positions[-1])]["last_offset"] + 1
            seen += len(batches)
            if legacy_partition == "g-upgraded-0":
                pos = next((p for p in sorted(of_segment) if p >= pos), pos)
    assert seen == sum(line["magic"] < 2 for line in lines)


def test_a_message_alone_is_a_batch_of_one(legacy: Path) -> None:
    for name in ("g-v0-none-0", "g-v1-none-create-0"):
        for _, buffer in segments(legacy, name):
            batches, stop = scan_messages(buffer)
            assert stop == len(buffer)
            assert (batches.count == 1).all()
            assert (batches.base_offset == batches.last_offset).all()


def test_only_the_wanted_columns_come(legacy: Path) -> None:
    _, buffer = segments(legacy, "g-v1-lz4-create-0")[0]
    batches, _ = scan_messages(buffer)
    whole = decoded(buffer, batches, Projection(timestamp_type=True))
    assert whole.schema.names == ["offset", "timestamp", "key", "value", "headers", "timestamp_type"]
    assert whole.column("headers").type == HEADERS_TYPE
    assert set(map(tuple, whole.column("headers").to_pylist())) == {()}
    for want, names in [
        (Projection(value=False, headers=False), ["offset", "timestamp", "key"]),
        (Projection(key=False, headers=False), ["offset", "timestamp", "value"]),
        (Projection(key=False, value=False, headers=False), ["offset", "timestamp"]),
        (Projection(key=False, value=False, headers=False, timestamp_type=True), ["offset", "timestamp", "timestamp_type"]),
    ]:
        assert decoded(buffer, batches, want).equals(whole.select(names))


def test_any_selection_of_messages_decodes_to_its_records(legacy: Path) -> None:
    _, buffer = segments(legacy, "g-v0-snappy-0")[0]
    batches, _ = scan_messages(buffer)
    whole = decoded(buffer, batches).to_pylist()
    picked = np.arange(len(batches)) % 3 == 1
    expected = [r for r, keep in zip(whole, np.repeat(picked, batches.count), strict=True) if keep]
    assert decoded(buffer, batches[picked]).to_pylist() == expected


@pytest.mark.parametrize("magic", [0, 1])
def test_null_and_empty_keys_and_values_stay_apart(magic: int) -> None:
    fields = [(None, None), (b"", b""), (b"k", None), (None, b"v"), (b"", b"v"), (b"key", b"value")]
    buffer = b"".join(message(magic, value, key=key, offset=n) for n, (key, value) in enumerate(fields))
    assert [row[3:] for row in rows(buffer)] == fields
    assert [row[3:] for row in rows(wrapper(magic, GZIP, buffer, offset=5))] == fields


def test_magic_0_has_no_timestamps_and_no_type_of_them() -> None:
    assert rows(message(0, attributes=APPEND_TIME)) == [(0, -1, -1, None, b"value")]
    batches, _ = scan_messages(message(0, attributes=APPEND_TIME))
    assert (batches.max_timestamp.tolist(), batches.timestamp_type.tolist()) == ([-1], [-1])


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_of_magic_0_are_absolute_gaps_and_all(codec: int) -> None:
    buffer = wrapper(0, codec, *(message(0, offset=n) for n in (70, 71, 75)), offset=75)
    batches, _ = scan_messages(buffer)
    assert (batches.base_offset.tolist(), batches.last_offset.tolist(), batches.count.tolist()) == ([70], [75], [3])
    assert [row[0] for row in rows(buffer)] == [70, 71, 75]


@pytest.mark.parametrize("codec", CODECS)
def test_inner_offsets_of_magic_1_end_at_the_wrapper_s(codec: int) -> None:
    buffer = wrapper(1, codec, *(message(1, offset=n) for n in (0, 1, 5)), offset=75)
    batches, _ = scan_messages(buffer)
    assert (batches.base_offset.tolist(), batches.last_offset.tolist(), batches.count.tolist()) == ([70], [75], [3])
    assert [row[0] for row in rows(buffer)] == [70, 71, 75]


def test_inner_offsets_of_magic_1_that_compaction_left_start_where_they_did() -> None:
    buffer = wrapper(1, GZIP, message(1, offset=3), message(1, offset=5), offset=75)
    assert [row[0] for row in rows(buffer)] == [73, 75]
    assert scan_messages(buffer)[0].base_offset.tolist() == [73]


def test_a_wrapper_of_offset_0_has_its_inner_offsets_as_they_are() -> None:
    assert [row[0] for row in rows(wrapper(1, GZIP, message(1, offset=0), message(1, offset=1), offset=0))] == [0, 1]


def test_offsets_as_large_as_int64_do_not_overflow() -> None:
    last = 2**63 - 1
    assert [row[0] for row in rows(wrapper(1, GZIP, message(1, offset=0), message(1, offset=1), offset=last))] == [last - 1, last]
    assert rows(message(0, offset=last))[0][0] == last


def test_inner_messages_have_times_of_their_own_unless_the_broker_set_the_wrapper_s() -> None:
    inner = [message(1, offset=n, timestamp=10 * n) for n in range(3)]
    assert [row[1:3] for row in rows(wrapper(1, GZIP, *inner, offset=2, timestamp=20))] == [(0, 0), (10, 0), (20, 0)]
    appended = wrapper(1, GZIP, *inner, offset=2, timestamp=99, attributes=APPEND_TIME)
    assert [row[1:3] for row in rows(appended)] == [(99, 1)] * 3
    assert [row[1:3] for row in rows(message(1, timestamp=99, attributes=APPEND_TIME))] == [(99, 1)]


def test_an_inner_message_of_magic_0_keeps_being_without_a_time() -> None:
    mixed = wrapper(1, GZIP, message(0, offset=0), message(1, offset=1), offset=1, timestamp=99, attributes=APPEND_TIME)
    assert [row[:2] for row in rows(mixed)] == [(0, -1), (1, 99)]


def test_a_wrapper_s_key_is_nobody_s() -> None:
    assert rows(wrapper(0, GZIP, message(0), key=b"ignored")) == [(0, -1, -1, None, b"value")]


def test_snappy_is_read_in_both_framings() -> None:
    inner = message(1, b"a" * 50) + message(1, b"b", offset=1)
    section = xerial(inner[:60], inner[60:])
    assert rows(wrapper(1, SNAPPY, section=section, offset=1)) == rows(wrapper(1, SNAPPY, inner, offset=1))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_last_inner_message_that_is_cut_is_not_there(magic: int) -> None:
    cut = message(magic, offset=1)[:-1]
    assert [row[0] for row in rows(wrapper(magic, GZIP, message(magic), cut, offset=0))] == [0]


def test_bytes_after_the_value_are_nobody_s() -> None:
    whole = bytearray(message(0) + b"rest")
    whole[8:12] = struct.pack(">i", len(whole) - 12)
    assert [row[4] for row in rows(wrapper(0, GZIP, with_crc(whole)))] == [b"value"]
    assert [row[4] for row in rows(with_crc(whole))] == [b"value"]


def with_crc(whole: bytes | bytearray) -> bytes:
    return bytes(whole[:12]) + struct.pack(">I", zlib.crc32(whole[16:])) + bytes(whole[16:])


# What lz4 frames of old clients look like


def broken_header(frame: bytes) -> bytes:
    at = 6 + (8 if frame[4] & 0x08 else 0)
    return frame[:at] + bytes([frame[at] ^ 0x5A]) + frame[at + 1 :]


def test_kafka_itself_writes_magic_0_with_a_wrong_lz4_header(legacy: Path) -> None:
    _, buffer = segments(legacy, "g-v0-lz4-0")[0]
    value_at = buffer.index(b"\x04\x22\x4d\x18")
    with pytest.raises(RuntimeError, match="headerChecksum_invalid"):
        lz4.frame.decompress(buffer[value_at : int(scan_messages(buffer)[0].end[0])])


@pytest.mark.parametrize("block_size", [4, 5, 6, 7])
@pytest.mark.parametrize("block_checksum", [False, True])
@pytest.mark.parametrize("content_checksum", [False, True])
@pytest.mark.parametrize("store_size", [False, True])
def test_the_checksum_of_an_lz4_header_does_not_matter_in_magic_0_and_does_in_magic_1(
    block_size: int, block_checksum: bool, content_checksum: bool, store_size: bool
) -> None:
    for magic, value in ((0, b"v" * 300_000), (1, b"v" * 300_000)):
        frame = lz4.frame.compress(
            message(magic, value),
            block_size=block_size,
            block_linked=False,
            block_checksum=block_checksum,
            content_checksum=content_checksum,
            store_size=store_size,
        )
        assert rows(wrapper(magic, LZ4, section=frame))[0][4] == value
        broken = wrapper(magic, LZ4, section=broken_header(frame))
        if magic == 0:
            assert rows(broken)[0][4] == value
        else:
            assert "lz4 frame does not inflate" in wrong(broken)


@pytest.mark.parametrize(("at", "byte"), [(0, 0x05), (4, 0x61), (4, 0x62), (4, 0x40), (4, 0xE0), (5, 0x30), (5, 0x41), (5, 0xC0)])
def test_an_lz4_header_that_kafka_refuses_is_corrupt_in_magic_0_too(at: int, byte: int) -> None:
    frame = bytearray(lz4.frame.compress(message(0), block_linked=False, store_size=False))
    frame[at] = byte
    assert "none of Kafka's" in wrong(wrapper(0, LZ4, section=bytes(frame)))


@pytest.mark.parametrize("magic", [0, 1])
def test_an_lz4_frame_cut_anywhere_is_corrupt(magic: int) -> None:
    frame = lz4.frame.compress(message(magic, b"v" * 100), block_linked=False, store_size=True)
    for cut in range(len(frame)):
        assert wrong(wrapper(magic, LZ4, section=frame[:cut]))


# What no log may hold


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_within_a_wrapper_is_corrupt(magic: int) -> None:
    nested = wrapper(magic, GZIP, message(magic), offset=0)
    assert "within a compressed message" in wrong(wrapper(magic, GZIP, message(magic), nested, offset=0))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", CODECS)
def test_a_wrapper_with_a_null_value_is_corrupt(magic: int, codec: int) -> None:
    assert "null value" in wrong(message(magic, None, attributes=codec))


@pytest.mark.parametrize("magic", [0, 1])
def test_a_wrapper_without_inner_messages_is_corrupt(magic: int) -> None:
    assert "without inner messages" in wrong(wrapper(magic, GZIP))
    assert "without inner messages" in wrong(wrapper(magic, GZIP, message(magic)[:-1]))


def test_a_wrapper_below_its_last_relative_offset_is_corrupt() -> None:
    assert "below its last inner message's" in wrong(wrapper(1, GZIP, message(1), message(1, offset=5), offset=4))


@pytest.mark.parametrize("offset", [-1, -(2**63)])
def test_a_wrapper_of_negative_offsets_is_corrupt(offset: int) -> None:
    assert "offsets are 0 to" in wrong(wrapper(0, GZIP, message(0), offset=offset))
    assert "offsets are 0 to" in wrong(wrapper(0, GZIP, message(0, offset=offset)))


def test_inner_offsets_past_the_last_that_there_is_are_corrupt() -> None:
    last = 2**63 - 1
    assert "offsets are 0 to" in wrong(wrapper(1, GZIP, message(1, offset=last), message(1, offset=0), offset=last))


def test_a_relative_offset_below_0_still_ends_at_the_wrapper_s() -> None:
    for last in (7, 2**63 - 1):
        assert rows(wrapper(1, GZIP, message(1, offset=-5), offset=last))[0][0] == last


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [ZSTD, 5, 6, 7])
def test_a_codec_that_came_later_or_never_is_corrupt(magic: int, codec: int) -> None:
    assert ("codec zstd" if codec == ZSTD else f"codec {codec}") in wrong(message(magic, attributes=codec))


@pytest.mark.parametrize("codec", CODECS)
def test_a_wrapper_that_does_not_inflate_is_corrupt(codec: int) -> None:
    assert wrong(wrapper(1, codec, section=b"no frame at all"))


def test_a_wrapper_that_does_not_inflate_because_of_a_flipped_bit_says_so() -> None:
    whole = bytearray(wrapper(1, GZIP, message(1)))
    whole[-3] ^= 1
    assert "CRC-32 " in wrong(bytes(whole))


def test_a_wrapper_that_claims_to_inflate_beyond_the_limit_is_corrupt() -> None:
    assert "inflates to more than" in wrong(wrapper(1, SNAPPY, section=b"\xff\xff\xff\xff\x0f"))


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("size", [-1, 0, 13])
def test_an_inner_message_of_a_size_that_none_has_is_corrupt(magic: int, size: int) -> None:
    bad = message(magic)[:8] + struct.pack(">i", size) + bytes(30)
    assert f"at byte {len(message(magic))}" in wrong(wrapper(magic, GZIP, message(magic), bad))


def test_an_inner_message_of_magic_2_is_corrupt() -> None:
    bad = bytearray(message(1))
    bad[16] = 2
    assert "not of magic 0 or 1" in wrong(wrapper(1, GZIP, bytes(bad)))


@pytest.mark.parametrize("magic", [0, 1])
def test_an_inner_message_with_a_wrong_checksum_is_corrupt_where_its_wrapper_is(magic: int) -> None:
    buffer = wrapper(magic, GZIP, message(magic), message(magic, offset=1, crc_off_by=1), offset=1)
    assert "inner message of offset 1" in damaged(buffer)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("length", [6, 2**31 - 1])
def test_a_key_or_value_longer_than_its_message_is_corrupt(magic: int, length: int) -> None:
    fields_at = 26 if magic else 18
    for at in (fields_at, fields_at + 4):  # the key's length, then the value's behind a null key
        bad = bytearray(message(magic))
        bad[at : at + 4] = struct.pack(">i", length)
        assert "longer than what is left" in damaged(with_crc(bad))
        assert "longer than what is left" in damaged(wrapper(magic, GZIP, with_crc(bad)))
        bad[17] |= GZIP
        assert "longer than what is left" in wrong(with_crc(bad))


@pytest.mark.parametrize(("magic", "size"), [(0, 13), (0, -1), (1, 21), (1, 14), (0, -(2**31)), (0, 0)])
def test_a_size_that_no_message_has_is_corrupt_where_it_is(magic: int, size: int) -> None:
    bad = message(magic, offset=1)
    assert "size" in wrong(bad[:8] + struct.pack(">i", size) + bad[12:])


def test_a_magic_of_the_future_is_corrupt() -> None:
    bad = bytearray(message(1))
    bad[16] = 3
    assert "magic" in wrong(bytes(bad))


def test_the_zeros_of_a_preallocated_file_end_the_scan() -> None:
    good = message(1)
    assert scan_messages(good + bytes(1000))[1] == len(good)
    assert scan_messages(bytes(1000))[1] == 0


@pytest.mark.parametrize("magic", [0, 1])
def test_a_scan_stops_after_the_most_messages_it_may_give(magic: int) -> None:
    one = message(magic)
    batches, stop = scan_messages(one * 5, batches_max=3)
    assert (len(batches), stop) == (3, 3 * len(one))


@pytest.mark.parametrize(
    "name", ["g-v0-gzip-0", "g-v0-none-0", "g-v1-lz4-create-0", "g-v1-none-append-0", "g-v1-snappy-append-0"]
)
def test_messages_cut_at_any_byte_are_those_before_the_cut(legacy: Path, name: str) -> None:
    _, buffer = segments(legacy, name)[0]
    ends = scan_messages(buffer)[0].end[:3].tolist()
    view = memoryview(buffer)
    for cut in range(ends[-1] + 1):
        batches, stop = scan_messages(view[:cut])
        assert batches.end.tolist() == [end for end in ends if end <= cut]
        assert stop == max((end for end in ends if end <= cut), default=0)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, *CODECS])
def test_every_flipped_bit_is_found_where_the_crc_covers_it(magic: int, codec: int) -> None:
    inner = message(magic, b"some value", key=b"key")
    good = wrapper(magic, codec, inner) if codec else inner
    whole = [row[1:] for row in rows(good)]
    for bit in range(len(good) * 8):
        at = bit // 8
        bad = bytearray(good)
        bad[at] ^= 1 << bit % 8
        try:
            batches, stop = scan_messages(bad)
            found = rows(bytes(bad)) if len(batches) else None
        except Corrupt:
            assert at not in OFFSET or codec
            continue
        if found is None:
            assert stop == 0
            assert at in LENGTH
        else:  # the offset is the broker's to set, so no CRC covers it
            assert at in OFFSET
            assert [row[1:] for row in found] == whole


@settings(deadline=None, max_examples=300)
@given(data=st.binary(max_size=200), pos=st.integers(0, 8), magic=st.sampled_from([0, 1]), codec=st.integers(0, 7))
def test_a_scan_of_any_bytes_gives_whole_messages_or_corrupt(data: bytes, pos: int, magic: int, codec: int) -> None:
    for buffer in (data, b"\0" * 11 + data, message(magic, data, attributes=codec), with_fields(magic, data)):
        start = min(pos, len(buffer))
        try:
            batches, stop = scan_messages(buffer, start)
        except Corrupt as e:
            stop = e.position
        else:
            assert all(start <= at and end <= stop for at, end in zip(batches.positions, batches.end, strict=True))
            with suppress(Corrupt):
                list(decode_messages(buffer, batches))
        assert start <= stop <= len(buffer)


@settings(deadline=None, max_examples=300)
@given(data=st.binary(max_size=120), magic=st.sampled_from([0, 1]), codec=st.sampled_from(CODECS))
def test_a_wrapper_around_any_bytes_gives_messages_or_corrupt(data: bytes, magic: int, codec: int) -> None:
    for section in (compressed(codec, data), compressed(codec, with_fields(magic, data)), compressed(codec, message(0) + data)):
        buffer = wrapper(magic, codec, section=section, offset=9)
        with suppress(Corrupt):
            batches, _ = scan_messages(buffer)
            assert sum(r.num_rows for _, r in decode_messages(buffer, batches)) == batches.count.sum()


def with_fields(magic: int, fields: bytes) -> bytes:
    """A message whose lengths, key and value are any bytes, with a sound size and checksum."""
    tail = struct.pack(">bb", magic, 0) + bytes(8 if magic else 0) + fields.ljust(8, b"\xff")
    return with_crc(struct.pack(">qii", 0, 4 + len(tail), 0) + tail)
