"""Timestamps to offsets."""

import pytest
from hand_made import APPEND_TIME, COMMIT_KEY, CONTROL, TRANSACTIONAL, ZSTD, batch, record
from hypothesis import given
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats.chunks import Chunk
from local_log.formats.list_offsets import TimestampOffset, first_at_or_after, latest_timestamp
from local_log.formats.record_batch.batch_v2 import scan

# Offset to timestamp, batch by batch; offset 5 has gone and offset 7 is a marker.
TIMES = [{0: 1_010, 1: 1_005}, {2: 1_003, 3: 1_030, 4: 1_020}, {6: 1_030}, {7: 1_040}, {8: 1_001, 9: 1_040}]
FLAT = {offset: time for times in TIMES for offset, time in times.items()}


def chunk_of(times: dict[int, int], attributes: int = 0) -> bytes:
    base = min(times)
    records = [record(offset - base, timestamp_delta=time - 1_000) for offset, time in times.items()]
    return batch(*records, base_offset=base, max_timestamp=max(times.values()), attributes=attributes, epoch=base + 3)


def chunks() -> list[Chunk]:
    made = [chunk_of(times, TRANSACTIONAL | CONTROL if 7 in times else n % 2 * ZSTD) for n, times in enumerate(TIMES)]
    buffers = [b"".join(made[:2]), b"".join(made[2:])]
    return [Chunk("some.log", 0, buffer, scan(buffer)[0]) for buffer in buffers]


def epoch(offset: int) -> int:
    return next(min(times) for times in TIMES if offset in times) + 3


@given(timestamp=st.integers(995, 1_045), start=st.integers(0, 11), end=st.integers(0, 11))
def test_the_first_record_as_late_is_found_in_the_order_of_offsets(timestamp: int, start: int, end: int) -> None:
    hits = [offset for offset, time in FLAT.items() if time >= timestamp and start <= offset < end]
    expected = TimestampOffset(hits[0], FLAT[hits[0]], epoch(hits[0])) if hits else None
    assert first_at_or_after(chunks(), timestamp, start, end) == expected


def test_the_greatest_timestamp_is_that_of_the_first_record_that_has_it() -> None:
    assert latest_timestamp(chunks()) == TimestampOffset(7, 1_040, 10)
    assert latest_timestamp(chunks()[:1]) == TimestampOffset(3, 1_030, 5)


def test_a_log_without_batches_has_no_greatest_timestamp() -> None:
    assert latest_timestamp([]) is None
    assert latest_timestamp([chunks()[0].where(slice(0, 0))]) is None


def test_an_emptied_batch_may_have_the_greatest_timestamp() -> None:
    buffer = batch(section=b"", count=0, last_delta=4, base_offset=10, max_timestamp=9_000)
    found = latest_timestamp([*chunks(), Chunk("", 0, buffer, scan(buffer)[0])])
    assert found == TimestampOffset(14, 9_000, 0)


def test_with_log_append_time_every_record_is_as_late_as_its_batch() -> None:
    buffer = batch(record(0), record(1), attributes=APPEND_TIME, max_timestamp=5_000, base_offset=4)
    chunk = Chunk("", 0, buffer, scan(buffer)[0])
    assert first_at_or_after([chunk], 4_999, 0, 99) == TimestampOffset(4, 5_000, 0)
    assert first_at_or_after([chunk], 5_000, 5, 99) == TimestampOffset(5, 5_000, 0)
    assert first_at_or_after([chunk], 5_001, 0, 99) is None


def test_a_marker_answers_like_a_record() -> None:
    buffer = batch(record(key=COMMIT_KEY), base_offset=3, attributes=TRANSACTIONAL | CONTROL)
    assert first_at_or_after([Chunk("", 0, buffer, scan(buffer)[0])], 0, 0, 9) == TimestampOffset(3, 1_000, 0)


@pytest.mark.parametrize("search", [lambda chunks: first_at_or_after(chunks, 0, 0, 99), latest_timestamp])
def test_records_that_lie_are_placed_in_the_file(search: object) -> None:
    buffer = batch(record(), count=2)
    with pytest.raises(Corrupt) as caught:
        search([Chunk("some.log", 700, buffer, scan(buffer)[0])])  # type: ignore[operator]
    assert (caught.value.file, caught.value.position) == ("some.log", 700)
