"""Varints, sequence numbers and checksums."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats.checksum import crc32c
from local_log.formats.primitives import need, next_sequence, previous_sequence, read_uvarint

uint32 = st.integers(0, 2**32 - 1)
sequence = st.integers(0, 2**31 - 1)


def uvarint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


@given(number=uint32, before=st.binary(max_size=3), after=st.binary(max_size=3))
def test_a_varint_is_read_with_the_position_after_it(number: int, before: bytes, after: bytes) -> None:
    made = uvarint(number)
    assert read_uvarint(before + made + after, len(before), "a number") == (number, len(before) + len(made))


@given(number=uint32)
def test_a_varint_cut_at_any_byte_is_corrupt(number: int) -> None:
    made = uvarint(number)
    for cut in range(len(made)):
        with pytest.raises(Corrupt, match="a number"):
            read_uvarint(made[:cut], 0, "a number")


def test_a_varint_of_more_than_five_bytes_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="more than 5 bytes"):
        read_uvarint(b"\x80\x80\x80\x80\x80\0", 0, "a number")


def test_needing_what_is_not_there_is_corrupt_at_the_position() -> None:
    need(b"1234", 1, 3, "a field")
    with pytest.raises(Corrupt, match="a field takes 4 bytes, 3 are left") as caught:
        need(b"1234", 1, 4, "a field")
    assert caught.value.position == 1


@given(last=sequence, by=sequence)
def test_an_earlier_sequence_stays_in_range(last: int, by: int) -> None:
    first = previous_sequence(last, by)
    assert 0 <= first <= 2**31 - 1
    assert (first + by) % 2**31 == last


def test_the_sequence_before_zero_is_the_greatest() -> None:
    assert previous_sequence(0, 1) == 2**31 - 1


@given(first=sequence, by=sequence)
def test_a_later_sequence_is_the_one_of_which_the_first_is_earlier(first: int, by: int) -> None:
    last = next_sequence(first, by)
    assert last == (first + by) % 2**31
    assert previous_sequence(last, by) == first


@pytest.mark.parametrize(
    ("base", "by", "last"), [(-(2**31), 0, -(2**31)), (1, -1, -(2**31)), (0, -1, 2**31 - 1), (5, -3, -(2**31) + 2), (-7, 3, -4)]
)
def test_sequences_that_no_producer_has_come_out_as_java_computes_them(base: int, by: int, last: int) -> None:
    assert next_sequence(base, by) == last


def test_the_checksum_is_castagnoli_s_and_goes_on() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283


def test_the_checksum_needs_no_library_that_has_no_wheel_for_every_machine() -> None:
    code = (
        "import sys; sys.modules['awscrt'] = sys.modules['awscrt.checksums'] = None\n"
        "from local_log.formats.checksum import crc32c; print(hex(crc32c(b'6789', crc32c(b'12345'))))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "0xe3069283\n"
