"""Whole batches by byte range: the same whatever is read at a time."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from golden_logs import segments
from hand_made import batch, record
from hypothesis import example, given, settings
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats import chunks
from local_log.formats.chunks import Chunk, join_chunks, read_chunks
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.record_batch.batch_v2 import scan

NAMES = ["g-mixed-0", "g-compacted-txn-0", "g-big-0", "g-epochs-0", "g-tiny-0"]


def chunks_of(data: bytes, start: int = 0, end: int | None = None, first_bytes: int = 1 << 20) -> list[Chunk]:
    return list(read_chunks(lambda a, b: data[a:b], "file", start, len(data) if end is None else end, first_bytes=first_bytes))


def rows(found: list[Chunk]) -> list[tuple[int, bytes]]:
    return [
        (chunk.position + position, row.tobytes())
        for chunk in found
        for position, row in zip(chunk.batches.positions.tolist(), chunk.batches.header, strict=True)
    ]


@settings(deadline=None, max_examples=40)
@given(
    name=st.sampled_from(NAMES),
    first_bytes=st.one_of(st.integers(BATCH_HEADER_BYTES, 5_000), st.integers(BATCH_HEADER_BYTES, 5_000_000)),
)
@example(name="g-mixed-0", first_bytes=BATCH_HEADER_BYTES)
@example(name="g-big-0", first_bytes=BATCH_HEADER_BYTES)
def test_spans_of_any_size_give_the_batches_of_one_scan(broker: Path, name: str, first_bytes: int) -> None:
    for _, data in segments(broker, name):
        batches, _ = scan(data)
        found = chunks_of(data, first_bytes=first_bytes)
        expected = list(zip(batches.positions.tolist(), (row.tobytes() for row in batches.header), strict=True))
        assert rows(found) == expected
        for chunk in found:
            chunk.check()
            assert bytes(chunk.buffer) == data[chunk.position : chunk.position + len(chunk.buffer)]


@settings(deadline=None, max_examples=60)
@given(
    cut=st.integers(0, 60_000),
    first_bytes=st.integers(BATCH_HEADER_BYTES, 20_000),
    short=st.booleans(),
)
def test_a_file_that_ends_anywhere_gives_its_whole_batches(broker: Path, cut: int, first_bytes: int, short: bool) -> None:
    data = segments(broker, "g-mixed-0")[0][1]
    # Short: the file was cut after its size was asked for.
    found = chunks_of(data[:cut], end=len(data), first_bytes=first_bytes) if short else chunks_of(data, 0, cut, first_bytes)
    assert rows(found) == rows(chunks_of(data))[: sum(end <= cut for end in scan(data)[0].end.tolist())]


def test_reading_starts_at_any_batch(broker: Path) -> None:
    data = segments(broker, "g-mixed-0")[0][1]
    whole = rows(chunks_of(data))
    for n, (position, _) in enumerate(whole):
        assert rows(chunks_of(data, start=position, first_bytes=20_000)) == whole[n:]


def test_each_byte_is_read_once_where_spans_hold_many_batches() -> None:
    data = b"".join(batch(record(), base_offset=n) for n in range(1_000))
    asked: list[tuple[int, int]] = []

    def read(start: int, end: int) -> bytes:
        asked.append((start, end))
        return data[start:end]

    list(read_chunks(read, "file", 0, len(data), first_bytes=10_000))
    assert sum(end - start for start, end in asked) < 1.05 * len(data)


def test_bad_bytes_are_corrupt_in_the_file_after_the_batches_before_them() -> None:
    good = batch(record()) * 50
    data = good + b"\xff" * 100
    found: list[Chunk] = []
    with pytest.raises(Corrupt) as caught:
        found.extend(read_chunks(lambda a, b: data[a:b], "some.log", 0, len(data), first_bytes=300))
    assert len(rows(found)) == 50
    assert (caught.value.file, caught.value.position) == ("some.log", len(good))


def test_the_zeros_of_a_preallocated_file_end_the_reading() -> None:
    good = batch(record()) * 3
    found = chunks_of(good + bytes(10_000), first_bytes=1 << 14)
    assert len(rows(found)) == 3
    assert found[-1].end == len(good)


def test_a_failing_crc_is_placed_in_the_file() -> None:
    good = batch(record())
    data = good * 3 + good[:-1] + b"\xff"
    *sound, bad = chunks_of(data, first_bytes=len(good) + 5)
    for chunk in sound:
        chunk.check()
    with pytest.raises(Corrupt, match="CRC") as caught:
        bad.check()
    assert (caught.value.file, caught.value.position) == ("file", 3 * len(good))


def test_a_chunk_ends_after_its_last_batch() -> None:
    good = batch(record())
    (chunk,) = chunks_of(good * 3 + good[:40])
    assert chunk.end == 3 * len(good)


def test_records_come_with_the_batches_that_they_are_of_and_none_is_lost(broker: Path, partition: str) -> None:
    for _, data in segments(broker, partition):
        for chunk in chunks_of(data, first_bytes=1 << 24):
            groups = list(chunk.records())
            assert [o for of, _ in groups for o in of.base_offset.tolist()] == chunk.batches.base_offset.tolist()
            assert [records.num_rows for _, records in groups] == [int(of.count.sum()) for of, _ in groups]


def test_a_mask_keeps_the_place_of_what_it_picks() -> None:
    data = batch(record()) * 4
    (chunk,) = chunks_of(data)
    picked = chunk.where(np.array([False, True, False, True]))
    assert rows([picked]) == rows([chunk])[1::2]
    assert chunk.where(np.zeros(4, bool)).batches.positions.tolist() == []


def test_a_batch_that_claims_more_than_can_be_read_at_once_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    # In small what a claim of 2^31-1 bytes is in a file of more: reading must not ask for the same bytes for ever.
    monkeypatch.setattr(chunks, "BATCH_BYTES_MAX", 1_000)
    claim = batch(section=bytes(3_000), count=0)
    asked = []

    def read(start: int, end: int) -> bytes:
        asked.append((start, end))
        assert len(asked) < 50, "reads the same bytes again and again"
        return (claim * 2)[start:end]

    with suppress(Corrupt):  # torn or corrupt, either will do
        assert list(read_chunks(read, "file", 0, 2 * len(claim), first_bytes=100)) == []


# bytes that come in buffers


def joined(data: bytes, edges: list[int], end: int | None = None) -> list[Chunk]:
    cuts = sorted({0, len(data), *(edge % (len(data) + 1) for edge in edges)})
    buffers = (data[a:b] for a, b in pairwise(cuts))
    return list(join_chunks(buffers, "file", 0, len(data) if end is None else end))


@settings(deadline=None, max_examples=60)
@given(name=st.sampled_from(NAMES), edges=st.lists(st.integers(0, 3_000_000), max_size=12))
@example(name="g-mixed-0", edges=list(range(40)))
@example(name="g-big-0", edges=list(range(0, 3_000_000, 1_000)))
def test_buffers_that_are_cut_anywhere_give_the_batches_of_one_scan(broker: Path, name: str, edges: list[int]) -> None:
    for _, data in segments(broker, name):
        found = joined(data, edges)
        assert rows(found) == rows(chunks_of(data, first_bytes=1 << 24))
        for chunk in found:
            chunk.check()
            assert bytes(chunk.buffer) == data[chunk.position : chunk.position + len(chunk.buffer)]


def test_only_a_batch_that_a_buffer_s_end_cuts_is_copied() -> None:
    one = batch(record())
    buffers = [one * 3 + one[:20], one[20:] + one * 2]
    first, cut, rest = join_chunks(buffers, "file", 0, 6 * len(one))
    assert (first.position, cut.position, rest.position) == (0, 3 * len(one), 4 * len(one))
    assert (len(first.batches), len(cut.batches), len(rest.batches)) == (3, 1, 2)
    assert (memoryview(first.buffer).obj, memoryview(rest.buffer).obj) == (buffers[0], buffers[1])


@pytest.mark.parametrize("cut", [1, 11, 12, 17, 60, 61, 75])
def test_buffers_that_end_within_a_batch_are_corrupt_where_it_starts(cut: int) -> None:
    one = batch(record())
    found = []
    with pytest.raises(Corrupt, match="no whole batch") as caught:
        found.extend(join_chunks(iter([one * 2, one[:cut]]), "some.log", 100, 100 + 2 * len(one) + cut))
    assert (caught.value.file, caught.value.position) == ("some.log", 100 + 2 * len(one))


@pytest.mark.parametrize("claimed", [-1, 0, 13, 2**31 - 1])
def test_a_claim_of_more_or_less_than_a_batch_s_bytes_is_corrupt_before_more_is_read(claimed: int) -> None:
    one = batch(record())
    bad = one[:8] + claimed.to_bytes(4, "big", signed=True) + one[12:]

    def buffers() -> Iterator[bytes]:
        yield one + bad[:10]
        yield bad[10:]
        raise AssertionError("what came was enough to see it")

    found = []
    with pytest.raises(Corrupt) as caught:
        found.extend(join_chunks(buffers(), "some.log", 0, 50 * len(one)))
    assert (caught.value.file, caught.value.position) == ("some.log", len(one))
