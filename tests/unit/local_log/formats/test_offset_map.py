"""The cleaner's offset map: the last offset of each key, within its memory."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_log.errors import Invalid
from local_log.formats.kernels.md5 import BLOCK_WORDS, md5
from local_log.formats.offset_map import OffsetMap


def put(offsets: OffsetMap, keys: list[bytes | None], first: int = 0, start: int = 0) -> int:
    return offsets.put(pa.array(keys, pa.binary()), np.arange(first, first + len(keys)), start)


def latest(offsets: OffsetMap, *keys: bytes | None) -> list[int]:
    found: list[int] = offsets.latest_of(pa.array(keys, pa.binary())).tolist()
    return found


@pytest.mark.parametrize("size", [0, 1, 3, 4, 54, 55, 56, 57, 63, 64, 65, 119, 120, 128, 1000])
def test_keys_have_the_md5_of_kafkas_map(size: int) -> None:
    data = bytes(i * 7 % 251 for i in range(size + 3))
    found = md5(np.frombuffer(data, np.uint8), np.uint64(3), np.uint64(size), np.empty(BLOCK_WORDS, np.uint32))
    assert b"".join(int(word).to_bytes(8, "little") for word in found) == hashlib.md5(data[3:]).digest()


@given(st.lists(st.none() | st.binary(max_size=3), max_size=60), st.integers(0, 60))
def test_each_key_has_its_last_offset(keys: list[bytes | None], start: int) -> None:
    offsets = OffsetMap(24 * 100)
    assert put(offsets, keys, start=start) == len(keys)
    expected = {key: offset for offset, key in enumerate(keys) if key is not None and offset >= start}
    assert len(offsets) == len(expected)
    assert latest(offsets, *expected) == list(expected.values())
    assert offsets.latest_offset == max(expected.values(), default=-1)


def test_a_key_without_an_entry_has_no_offset_and_no_key_is_never_the_latest() -> None:
    offsets = OffsetMap(24 * 10)
    put(offsets, [b"a"], first=7)
    assert latest(offsets, b"b", None, b"a") == [-1, 2**63 - 1, 7]


def test_a_full_map_takes_no_more_keys_not_even_known_ones() -> None:
    offsets = OffsetMap(24 * 10 + 23, load_factor=0.5)
    assert put(offsets, [b"a", b"a", b"b", b"c", b"d", None, b"e", b"a", b"f"]) == 7
    assert (len(offsets), offsets.latest_offset, offsets.memory_bytes) == (5, 6, 240)


def test_a_map_without_a_free_entry_finds_what_it_has() -> None:
    keys = [b"%d" % i for i in range(50)]
    offsets = OffsetMap(24 * 50, load_factor=1.0)
    assert put(offsets, list(keys)) == 50
    assert latest(offsets, *keys, b"other") == [*range(50), -1]


def test_the_latest_offset_is_that_of_the_last_key_or_of_what_has_none() -> None:
    offsets = OffsetMap(24 * 10)
    put(offsets, [b"a", b"b", None], first=5)
    assert offsets.latest_offset == 6
    offsets.covers(7)
    assert offsets.latest_offset == 7
    put(offsets, [b"a"], first=8)
    assert (offsets.latest_offset, latest(offsets, b"a", b"b")) == (8, [8, 6])


def test_a_cleared_map_is_as_a_new_one() -> None:
    offsets = OffsetMap(24 * 10)
    put(offsets, [b"a"])
    offsets.covers(9)
    offsets.clear()
    assert (len(offsets), offsets.latest_offset, latest(offsets, b"a")) == (0, -1, [-1])


@pytest.mark.parametrize(("memory", "load_factor"), [(0, 0.9), (24, 0.9), (240, 0.1), (2400, 0.0), (2400, 1.1)])
def test_a_map_without_room_for_a_key_is_refused(memory: int, load_factor: float) -> None:
    with pytest.raises(Invalid, match=r"log\.cleaner\.dedupe\.buffer\.size"):
        OffsetMap(memory, load_factor)
