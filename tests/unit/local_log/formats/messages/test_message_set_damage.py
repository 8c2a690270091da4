"""Messages of magic 0 and 1 that no log may hold, and those that are cut, flipped or any bytes at all."""

import struct
from contextlib import suppress
from pathlib import Path

import pytest
from golden_logs import segments
from hand_made import GZIP, SNAPPY, ZSTD, compressed, message, wrapper
from hypothesis import given, settings
from hypothesis import strategies as st
from message_sets import CODECS, rows, with_crc, wrong

from local_log.errors import Corrupt
from local_log.formats.messages.message_columns import decode_messages
from local_log.formats.messages.message_set import scan_messages

OFFSET, LENGTH = range(8), range(8, 12)


def damaged(buffer: bytes) -> str:
    """What decoding says of a message that a scan has nothing against."""
    batches, _ = scan_messages(buffer)
    with pytest.raises(Corrupt) as caught:
        list(decode_messages(buffer, batches))
    assert caught.value.position == 0
    return caught.value.problem


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
@pytest.mark.slow
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
