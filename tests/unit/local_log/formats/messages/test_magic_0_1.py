"""One message of magic 0 or 1: its fields, and the first offset of what it holds."""

from pathlib import Path

import pytest
from golden_logs import segments
from hand_made import GZIP, LZ4, SNAPPY, ZSTD, compressed, message, wrapper

from local_log.errors import Corrupt
from local_log.formats.batches import scan
from local_log.formats.header_layout import APPEND_TIME
from local_log.formats.messages.magic_0_1 import first_offset, read_message, read_messages

CODECS = (GZIP, SNAPPY, LZ4)


def first_of(made: bytes) -> int:
    """Its first offset, found where other bytes surround it."""
    return first_offset(b"before" + made + b"after", 6, 6 + len(made))


def wrong(made: bytes) -> str:
    with pytest.raises(Corrupt) as caught:
        first_of(made)
    assert caught.value.position == 6
    return caught.value.problem


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(("key", "value"), [(None, None), (b"", b""), (b"key", None), (None, b"value"), (b"key", b"value")])
def test_the_fields_of_a_message_are_those_that_it_was_made_of(magic: int, key: bytes | None, value: bytes | None) -> None:
    made = message(magic, value, key=key, offset=7, timestamp=99, attributes=APPEND_TIME)
    read, end = read_message(b"x" + made, 1)
    assert (read.offset, read.magic, read.key, read.value, read.has_key) == (7, magic, key, value, key is not None)
    assert (read.timestamp, read.is_append_time) == ((99, True) if magic else (-1, False))
    assert read.is_valid
    assert end == 1 + len(made)
    assert not read_message(message(magic, crc_off_by=1))[0].is_valid


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_cut_anywhere_is_corrupt(magic: int) -> None:
    made = message(magic)
    for cut in range(len(made)):
        with pytest.raises(Corrupt):
            read_message(made[:cut])


def test_a_field_that_is_longer_than_its_message_is_corrupt_when_it_is_asked_for() -> None:
    made = bytearray(message(0, b"value", key=b"key"))
    made[18] = 1
    read, _ = read_message(made)
    assert read.has_key
    for name in ("key", "value"):
        with pytest.raises(Corrupt, match="longer than what is left"):
            getattr(read, name)


def test_of_a_set_the_last_message_may_be_cut_and_none_may_be_too_small() -> None:
    two = message(0) + message(1, offset=1)
    assert [m.offset for m in read_messages(two)] == [0, 1]
    for cut in range(len(message(0)), len(two)):
        assert [m.offset for m in read_messages(two[:cut])] == [0]
    with pytest.raises(Corrupt, match="below that of an empty message"):
        read_messages(message(0) + bytes(12))


def test_first_offsets_of_the_golden_logs_are_those_of_their_records(legacy: Path, legacy_partition: str) -> None:
    for _, buffer in segments(legacy, legacy_partition):
        stop = 0
        while stop < len(buffer):
            batches, stop = scan(buffer, stop)
            if batches.are_messages:
                spans = zip(batches.positions.tolist(), batches.end.tolist(), strict=True)
                assert [first_offset(buffer, start, end) for start, end in spans] == batches.base_offset.tolist()


@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_that_is_not_compressed_starts_at_its_own_offset(magic: int) -> None:
    for offset in (0, 5, 2**63 - 1, -1):
        assert first_of(message(magic, offset=offset)) == offset


@pytest.mark.parametrize("codec", CODECS)
def test_a_wrapper_of_magic_0_starts_at_its_first_message_s_offset(codec: int) -> None:
    assert first_of(wrapper(0, codec, message(0, offset=70), message(0, offset=75), offset=75)) == 70
    assert first_of(wrapper(0, codec, message(0, offset=70), message(0, offset=75), offset=3)) == 70


@pytest.mark.parametrize("codec", CODECS)
def test_a_wrapper_of_magic_1_starts_as_far_below_its_offset_as_its_messages_span(codec: int) -> None:
    assert first_of(wrapper(1, codec, message(1, offset=3), message(1, offset=5), offset=75)) == 73
    assert first_of(wrapper(1, codec, message(1, offset=3), message(1, offset=5), offset=0)) == 3


def test_only_what_says_the_first_offset_has_to_be_sound() -> None:
    nested = wrapper(1, GZIP, message(1), offset=1)
    other_magic = bytearray(message(1, offset=1))
    other_magic[16] = 9
    for later in (nested, bytes(other_magic), message(1, offset=1, crc_off_by=1), message(1, offset=1) + b"cut"):
        assert first_of(wrapper(1, GZIP, message(1, offset=0, crc_off_by=1), later, offset=9)) == 8


def test_sums_that_do_not_fit_go_round_as_in_java() -> None:
    last = 2**63 - 1
    assert first_of(wrapper(1, GZIP, message(1, offset=last), message(1, offset=0), offset=last)) == -2


@pytest.mark.parametrize("magic", [0, 1])
def test_a_compressed_message_that_does_not_say_its_first_offset_is_corrupt(magic: int) -> None:
    assert "null value" in wrong(message(magic, None, attributes=GZIP))
    assert "without inner messages" in wrong(wrapper(magic, GZIP, message(magic)[:-1]))
    assert "below that of an empty message" in wrong(wrapper(magic, GZIP, message(magic) + bytes(12)))
    assert "within a compressed message" in wrong(wrapper(magic, GZIP, wrapper(magic, GZIP, message(magic)), message(magic)))
    assert "does not inflate" in wrong(wrapper(magic, GZIP, section=b"no gzip"))
    assert "codec zstd" in wrong(wrapper(magic, ZSTD, message(magic)))
    assert "codec 5" in wrong(message(magic, attributes=5))


def test_a_wrapper_of_magic_1_below_its_last_relative_offset_is_corrupt() -> None:
    assert "below its last" in wrong(wrapper(1, GZIP, message(1), message(1, offset=5), offset=4))


@pytest.mark.parametrize("magic", [0, 1])
def test_lz4_blocks_that_depend_on_each_other_are_corrupt_as_they_are_to_kafka(magic: int) -> None:
    linked = bytearray(compressed(LZ4, message(magic)))
    linked[4] &= ~0x20
    assert "lz4 frame" in wrong(wrapper(magic, LZ4, section=bytes(linked)))
