"""Messages of Kafka 0.7: what a client of that time wrote, wrappers, and what no log may hold."""

import gzip
import struct
import zlib
from contextlib import suppress

import pytest
from hand_made import GZIP, LZ4, SNAPPY, compressed, xerial
from hypothesis import given, settings
from hypothesis import strategies as st

from local_log.errors import Corrupt, Invalid
from local_log.formats.messages import kafka_0_7 as message_0_7
from local_log.formats.messages.kafka_0_7 import SCHEMA, WRAPPERS_MAX, decode, payloads, read_message, scan, write_message

BROD = bytes.fromhex(
    "0000000a009271ee576669727374"  # b"first"
    "000000050000000000"  # b""
    "00000008001bdc32e4ff00fe"  # b"\xff\x00\xfe"
    "0000002d00c41a71f0" + "78" * 40
)
"""What brod 0.4.3, a client of Kafka 0.7 for Python 2, sends for four messages; it reads them back at OFFSETS of 1000."""

VALUES = [b"first", b"", b"\xff\x00\xfe", b"x" * 40]
OFFSETS = [1000, 1014, 1023, 1035]


def rows(buffer: bytes, base: int = 0) -> list[tuple[int, int, bytes]]:
    messages, _ = scan(buffer)
    return [(r["offset"], r["next_offset"], r["value"]) for part in decode(messages, base) for r in part.to_pylist()]


def values(buffer: bytes) -> list[bytes]:
    return [value for _, _, value in rows(buffer)]


def wrapper(codec: int, *inner: bytes) -> bytes:
    return write_message(compressed(codec, b"".join(inner)), codec=codec)


def refused(buffer: bytes) -> str:
    """What is said of a message after a sound one, which every finding has to be placed at."""
    sound = write_message(b"sound")
    messages, stop = scan(sound + buffer)
    with pytest.raises(Corrupt) as caught:
        list(decode(messages) if stop == len(sound + buffer) else scan(sound + buffer, stop))
    assert caught.value.position == len(sound)
    return caught.value.problem


def test_what_a_client_of_that_time_wrote_is_read() -> None:
    assert rows(BROD, 1000) == list(zip(OFFSETS, [*OFFSETS[1:], 1000 + len(BROD)], VALUES, strict=True))
    assert [(m.magic, m.codec, m.is_valid) for m in scan(BROD)[0]] == [(0, 0, True)] * 4


def test_the_writer_writes_what_that_client_wrote() -> None:
    assert b"".join(write_message(value, magic=0) for value in VALUES) == BROD


def test_magic_1_has_attributes_before_its_checksum() -> None:
    assert write_message(b"abc") == struct.pack(">ibbI", 9, 1, 0, zlib.crc32(b"abc")) + b"abc"
    assert write_message(b"abc", codec=GZIP)[5] == 1


@settings(deadline=None, max_examples=100)
@given(payload=st.binary(max_size=100), before=st.binary(max_size=9), magic=st.sampled_from([0, 1]), codec=st.integers(0, 2))
def test_what_is_written_is_read_wherever_it_lies(payload: bytes, before: bytes, magic: int, codec: int) -> None:
    made = write_message(payload, magic=magic, codec=codec if magic else 0)
    message, after = read_message(before + made + b"rest", len(before))
    assert (message.position, message.next_position, after) == (len(before), len(before + made), len(before + made))
    assert (message.magic, message.codec, message.size) == (magic, codec if magic else 0, len(made))
    assert message.is_valid
    assert bytes(message.payload) == payload


@pytest.mark.parametrize(("magic", "codec"), [(2, 0), (0, GZIP), (1, LZ4), (1, -1)])
def test_a_message_that_kafka_0_7_does_not_have_is_not_written(magic: int, codec: int) -> None:
    with pytest.raises(Invalid):
        write_message(b"", magic=magic, codec=codec)


def test_attributes_beyond_the_codec_mean_nothing() -> None:
    whole = bytearray(write_message(b"abc"))
    whole[5] = 0xFC
    assert values(bytes(whole)) == [b"abc"]


@pytest.mark.parametrize("codec", [GZIP, SNAPPY])
def test_messages_in_a_wrapper_go_on_at_the_wrapper_until_the_last(codec: int) -> None:
    first = write_message(b"first")
    wrapped = wrapper(codec, *(write_message(value, magic=n % 2) for n, value in enumerate(VALUES)))
    at, end = 100 + len(first), 100 + len(first + wrapped)
    expected = [(100, at, b"first"), *((at, at, value) for value in VALUES[:-1]), (at, end, VALUES[-1])]
    assert rows(first + wrapped + write_message(b"last"), 100) == [*expected, (end, end + 14, b"last")]


def test_snappy_is_read_in_the_framing_of_java() -> None:
    assert values(write_message(xerial(BROD[:20], BROD[20:]), codec=SNAPPY)) == VALUES


def test_wrappers_within_wrappers_are_opened_in_order() -> None:
    inner = wrapper(GZIP, write_message(b"b"), wrapper(SNAPPY, write_message(b"c")), write_message(b"d"))
    assert values(wrapper(GZIP, write_message(b"a"), inner, write_message(b"e"))) == [b"a", b"b", b"c", b"d", b"e"]


def test_a_wrapper_of_nothing_is_no_record() -> None:
    empty = wrapper(GZIP)
    assert rows(empty + write_message(b"next")) == [(len(empty), len(empty) + 14, b"next")]
    assert rows(empty) == []


def test_a_last_inner_message_that_is_cut_is_not_there() -> None:
    assert values(wrapper(GZIP, write_message(b"whole"), write_message(b"cut")[:-1])) == [b"whole"]


def test_records_come_a_few_mb_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_0_7, "INFLATED_GROUP_BYTES", 100)
    messages, _ = scan(b"".join(write_message(b"v" * 30) for _ in range(10)))
    parts = list(decode(messages))
    assert [part.num_rows for part in parts] == [4, 4, 2]
    assert all(part.schema == SCHEMA for part in parts)


# What no log may hold


@pytest.mark.parametrize(("magic", "length"), [(0, 4), (1, 5), (0, -1), (1, -(2**31)), (0, 0), (1, 0)])
def test_a_length_that_no_message_has_is_corrupt(magic: int, length: int) -> None:
    bad = write_message(b"abcdefgh", magic=magic)
    assert "an empty one has" in refused(struct.pack(">i", length) + bad[4:])


@pytest.mark.parametrize("magic", [2, 255])
def test_a_magic_that_came_later_is_corrupt(magic: int) -> None:
    bad = write_message(b"abcdefgh")
    assert "Kafka 0.7 has 0 and 1" in refused(bad[:4] + bytes([magic]) + bad[5:])


def test_a_codec_that_came_later_is_corrupt() -> None:
    bad = bytearray(write_message(b"abcdefgh"))
    bad[5] = 3
    assert "codec 3" in refused(bytes(bad))


def test_a_wrapper_that_does_not_inflate_is_corrupt() -> None:
    assert "does not inflate" in refused(write_message(b"no gzip at all", codec=GZIP))


def test_an_inner_message_with_a_wrong_checksum_is_corrupt_where_its_wrapper_is() -> None:
    inner = write_message(b"inner")
    assert "CRC-32" in refused(wrapper(GZIP, write_message(b"sound"), inner[:-1] + b"x"))


def test_an_inner_message_that_cannot_be_one_is_corrupt_where_its_wrapper_is() -> None:
    assert "magic" in refused(wrapper(GZIP, write_message(b"sound"), struct.pack(">ib", 5, 9) + bytes(10)))
    assert "is cut" in refused(wrapper(GZIP, write_message(b"cut")[:-1]))


def test_more_wrappers_within_one_another_than_the_limit_are_corrupt() -> None:
    made = write_message(b"deep")
    for _ in range(WRAPPERS_MAX):
        made = wrapper(GZIP, made)
    assert values(made) == [b"deep"]
    assert "one within the other" in refused(wrapper(GZIP, made))


def test_wrappers_that_inflate_to_more_than_the_limit_together_are_corrupt() -> None:
    half = wrapper(GZIP, write_message(bytes(600)))
    (message,), _ = scan(wrapper(GZIP, half, half))
    assert sum(map(len, payloads(message, bytes_max=2_000))) == 1_200
    with pytest.raises(Corrupt, match="inflates to more than"):
        list(payloads(message, bytes_max=1_200))


def test_messages_cut_at_any_byte_are_those_before_the_cut() -> None:
    buffer = BROD + write_message(b"one") + wrapper(GZIP, BROD)
    ends = [message.next_position for message in scan(buffer)[0]]
    for cut in range(len(buffer) + 1):
        messages, stop = scan(memoryview(buffer)[:cut])
        assert [message.next_position for message in messages] == [end for end in ends if end <= cut]
        assert stop == max((end for end in ends if end <= cut), default=0)


@pytest.mark.parametrize("codec", [0, GZIP])
def test_every_flipped_bit_of_a_payload_is_found(codec: int) -> None:
    good = write_message(gzip.compress(BROD, mtime=0) if codec else b"some payload", codec=codec)
    for bit in range(10 * 8, len(good) * 8):
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        with pytest.raises(Corrupt, match="CRC-32"):
            rows(bytes(bad))


@settings(deadline=None, max_examples=300)
@given(data=st.binary(max_size=100), magic=st.sampled_from([0, 1]), codec=st.integers(0, 3))
def test_any_bytes_are_messages_or_corrupt(data: bytes, magic: int, codec: int) -> None:
    made = bytearray(write_message(data))
    made[5] = codec
    for buffer in (data, bytes(3) + data, bytes(made), wrapper(GZIP, data), wrapper(GZIP, bytes(made), data)):
        with suppress(Corrupt):
            messages, stop = scan(buffer)
            assert stop == (messages[-1].next_position if messages else 0)
            list(decode(messages))
        with suppress(Corrupt):
            read_message(buffer, magic)
