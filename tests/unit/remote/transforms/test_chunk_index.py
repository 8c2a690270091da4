"""The chunk index: where chunks lie in the source and in the object."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local_log.errors import Corrupt
from remote.transforms.chunk_index import (
    CHUNK_BYTES_MAX,
    chunk_ends,
    make_chunk_index,
    read_chunk_index,
    stored_bytes_max,
    write_chunk_index,
)


@st.composite
def indexes(draw: st.DrawFn) -> tuple[int, int, list[int]]:
    """Source bytes of a chunk, of all of them, and the length of each as stored."""
    chunk_bytes = draw(st.integers(1, 5_000_000))
    chunks = draw(st.integers(1, 40))
    size = (chunks - 1) * chunk_bytes + draw(st.integers(1, chunk_bytes))
    longest = [stored_bytes_max(min(chunk_bytes, size - n * chunk_bytes)) for n in range(chunks)]
    return chunk_bytes, size, [draw(st.integers(1, most)) for most in longest]


# the form


def test_equal_chunks_take_no_more_than_the_header() -> None:
    body = write_chunk_index(4 << 20, (9 << 20) + 5, [(4 << 20) + 16, (4 << 20) + 16, (1 << 20) + 21])
    assert body.hex(" ") == "01 00 40 00 00 00 00 00 00 00 90 00 05 00 40 00 10 00 10 00 15 00"


def test_chunks_of_different_lengths_take_as_many_bytes_as_the_largest_difference() -> None:
    body = write_chunk_index(1000, 3500, [300, 299, 299 + 256, 77])
    assert body.hex(" ") == "01 00 00 03 e8 00 00 00 00 00 00 0d ac 00 00 01 2b 00 00 00 4d 02 00 01 00 00 01 00"
    index = read_chunk_index(body)
    assert index.source_ends == (1000, 2000, 3000, 3500)
    assert index.stored_ends == (300, 599, 1154, 1231)


def test_an_index_of_a_gibibyte_in_compressed_chunks_of_4_mib_takes_less_than_a_kilobyte() -> None:
    lengths = [1_000_000 + 7919 * n % 200_000 for n in range(256)]
    assert len(write_chunk_index(4 << 20, 1 << 30, lengths)) < 1024


@given(indexes())
def test_what_is_written_is_read(some: tuple[int, int, list[int]]) -> None:
    chunk_bytes, size, lengths = some
    index = read_chunk_index(write_chunk_index(chunk_bytes, size, lengths))
    assert index == make_chunk_index(chunk_ends(size, chunk_bytes), lengths)
    assert (len(index), index.source_size, index.stored_size) == (len(lengths), size, sum(lengths))


# ranges


@given(indexes(), st.data())
def test_a_range_is_covered_by_the_fewest_chunks_that_hold_it(some: tuple[int, int, list[int]], data: st.DataObject) -> None:
    chunk_bytes, size, lengths = some
    index = make_chunk_index(chunk_ends(size, chunk_bytes), lengths)
    near_borders = st.sampled_from([e + d for e in (0, *index.source_ends) for d in (-1, 0, 1)]).filter(lambda o: 0 <= o < size)
    start = data.draw(near_borders | st.integers(0, size - 1))
    end = data.draw(near_borders.map(lambda o: o + 1).filter(lambda o: o > start) | st.integers(start + 1, size))
    first, stop = index.covering(start, end)
    source_start, source_end = index.source_range(first, stop)
    assert source_start <= start < end <= source_end
    assert index.source_range(first, first + 1)[1] > start
    assert index.source_range(stop - 1, stop)[0] < end
    assert index.stored_range(first, stop) == (sum(lengths[:first]), sum(lengths[:stop]))


# damage

SOUND = write_chunk_index(1000, 3500, [300, 299, 555, 77])


@pytest.mark.parametrize("size", range(len(SOUND)))
def test_an_index_cut_at_any_byte_is_corrupt(size: int) -> None:
    with pytest.raises(Corrupt):
        read_chunk_index(SOUND[:size])


def test_an_index_with_bytes_after_it_is_corrupt() -> None:
    with pytest.raises(Corrupt, match="of 29 bytes where 4 chunks take 28"):
        read_chunk_index(SOUND + b"\0")


@pytest.mark.parametrize("bit", range(8 * len(SOUND)))
def test_an_index_with_any_bit_flipped_is_corrupt_or_another_index(bit: int) -> None:
    damaged = bytearray(SOUND)
    damaged[bit // 8] ^= 1 << bit % 8
    try:
        index = read_chunk_index(damaged)
    except Corrupt:
        return
    assert index != read_chunk_index(SOUND)


@pytest.mark.parametrize(
    ("at", "value", "problem"),
    [
        (slice(0, 1), b"\x02", "version 2"),
        (slice(1, 5), bytes(4), "in chunks of 0"),
        (slice(1, 5), (CHUNK_BYTES_MAX + 1).to_bytes(4, "big"), f"in chunks of {CHUNK_BYTES_MAX + 1}"),
        (slice(5, 13), bytes(8), "of 0 source bytes"),
        (slice(5, 13), b"\xff" * 8, "source bytes in chunks of 1000"),
        (slice(13, 17), b"\xff" * 4, "chunk 0 cannot hold"),
        (slice(17, 21), bytes(4), "chunk 3 cannot hold"),
        (slice(17, 21), b"\x7f" + bytes(3), "chunk 3 cannot hold"),
        (slice(21, 22), b"\x05", "differences of 5 bytes"),
    ],
)
def test_what_no_writer_writes_is_refused_by_name_before_memory_is_taken(at: slice, value: bytes, problem: str) -> None:
    damaged = bytearray(SOUND)
    damaged[at] = value
    with pytest.raises(Corrupt, match=problem):
        read_chunk_index(damaged)


@pytest.mark.parametrize(
    ("ends", "lengths"),
    [((), ()), ((10,), (5, 5)), ((10, 10), (5, 5)), ((10, 5), (5, 5)), ((10,), (0,)), ((10,), (stored_bytes_max(10) + 1,))],
)
def test_chunks_that_cannot_be_make_no_index(ends: tuple[int, ...], lengths: tuple[int, ...]) -> None:
    with pytest.raises(Corrupt):
        make_chunk_index(ends, lengths)
