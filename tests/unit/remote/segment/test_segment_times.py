"""The earliest timestamps of a segment: of each batch, as an index, and in the entry that names the segment."""

from pathlib import Path

import numpy as np
import pytest
from archive_fakes import MemoryStore
from golden_logs import legacy_logs
from hand_made import APPEND_TIME, LZ4, batch, record
from hypothesis import given
from hypothesis import strategies as st
from logs_to_archive import offload_all

from local_log.formats.batches import scan
from local_log.formats.chunks import Chunk
from local_log.formats.indexes.time import read_time_index
from local_log.formats.record_batch.projection import Projection
from remote.archive import manifests, topics
from remote.read.log import ArchivedLog
from remote.segment.times import STEP_BYTES, UNKNOWN, least_timestamps, passed_by, write_least_time_index

TIMES = Projection(key=False, value=False, headers=False)


def chunk(*batches: bytes) -> Chunk:
    buffer = b"".join(batches)
    return Chunk("a.log", 0, buffer, scan(buffer)[0])


def disordered(base_offset: int, attributes: int = 0) -> bytes:
    records = [record(i, timestamp_delta=delta) for i, delta in enumerate((0, 70, -400, 5))]
    return batch(*records, base_offset=base_offset, attributes=attributes, base_timestamp=1_000, max_timestamp=1_070)


def test_the_least_time_of_a_batch_is_that_of_its_records_whatever_their_order() -> None:
    single = batch(record(0), base_offset=8, base_timestamp=900, max_timestamp=900)
    assert least_timestamps(chunk(disordered(0), disordered(4, LZ4), single)).tolist() == [600, 600, 900]


def test_what_a_broker_has_stamped_has_one_time() -> None:
    assert least_timestamps(chunk(disordered(0, APPEND_TIME))).tolist() == [1_070]


def test_a_batch_whose_records_have_no_form_could_be_of_any_time() -> None:
    broken = batch(record(0), record(1), base_offset=4, section=b"\x01" * 40)
    assert least_timestamps(chunk(disordered(0), broken, disordered(8))).tolist() == [600, UNKNOWN, 600]


@given(
    st.lists(st.tuples(st.integers(1, STEP_BYTES), st.integers(1, 50), st.integers(-1, 40)), min_size=1, max_size=60),
    st.integers(-2, 42),
)
def test_from_where_a_time_has_passed_no_record_is_earlier(batches: list[tuple[int, int, int]], asked: int) -> None:
    sizes, counts, least = map(np.array, zip(*batches, strict=True))
    last_offsets = 100 + np.cumsum(counts) - 1
    index = read_time_index(write_least_time_index(100, np.cumsum(sizes) - sizes, last_offsets, least), 100)
    end = int(last_offsets[-1]) + 1
    passed = passed_by(index, asked, end)
    assert all(time >= asked for time, last in zip(least, last_offsets, strict=True) if last >= passed)
    if least.min() >= asked:
        assert passed == 100 or least.min() == 0  # an entry of zeros ends an index


def test_times_in_order_are_passed_within_a_step() -> None:
    positions = np.arange(0, 100 * STEP_BYTES, STEP_BYTES // 4)
    last_offsets, least = np.arange(9, 10 * len(positions), 10), 1_000 + np.arange(len(positions))
    index = read_time_index(write_least_time_index(0, positions, last_offsets, least), 0)
    for row in range(0, len(positions) - 4, 7):
        assert 0 <= passed_by(index, int(least[row]), 10**6) - row * 10 < 40
    assert len(index.offsets) == 100


def test_an_entry_states_the_least_time_of_its_segment(tmp_path: Path) -> None:
    store = MemoryStore()
    offload_all(legacy_logs(tmp_path), store)
    seen = 0
    for topic in topics(store):
        for manifest in manifests(store, topic):
            log = ArchivedLog(store, manifest)
            for entry in log.entries:
                records = log.records(entry.base_offset, entry.end_offset, want=TIMES)
                least = min(batch.column("timestamp").to_numpy().min() for batch in records)
                assert entry.min_timestamp_ms == least
                seen += 1
    assert seen > 10


@pytest.mark.parametrize("times", [[5, 3, 4], [UNKNOWN, 7], [7, UNKNOWN, 9]])
def test_an_index_never_says_more_than_is_known(times: list[int]) -> None:
    rows = np.arange(len(times))
    index = read_time_index(write_least_time_index(0, rows * STEP_BYTES, rows, np.array(times)), 0)
    assert passed_by(index, 6, len(times)) == max([row + 1 for row, time in enumerate(times) if time < 6], default=0)
