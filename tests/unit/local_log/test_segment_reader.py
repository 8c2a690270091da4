"""One segment: its files by name, and indexes that only save reading."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest
from golden_logs import broker_logs, expected_batches, segments
from hand_made import batch, record

from local_log.errors import Corrupt, NotFound
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.filenames import LOG, OFFSET_INDEX, SNAPSHOT, TIME_INDEX, TXN_INDEX, offset_file
from local_log.formats.indexes.offset import ENTRY as OFFSET_ENTRY
from local_log.formats.indexes.time import ENTRY as TIME_ENTRY
from local_log.os_disk import OsDisk
from local_log.segment_reader import Segment

NAME = "g-txn-0"


@pytest.fixture
def segment(broker: Path) -> Segment:
    return Segment(OsDisk(), str(broker / NAME), 102, 2683)


def test_its_files_bear_its_base_offset_and_its_snapshot_the_next_one_s(segment: Segment) -> None:
    assert [Path(segment.path(s)).name for s in (LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX, SNAPSHOT)] == [
        "00000000000000000102.log",
        "00000000000000000102.index",
        "00000000000000000102.timeindex",
        "00000000000000000102.txnindex",
        "00000000000000002683.snapshot",
    ]


def test_an_active_segment_has_no_snapshot_yet(broker: Path) -> None:
    active = Segment(OsDisk(), str(broker / NAME), 2744, None)
    with pytest.raises(NotFound, match="active segment 2744"):
        active.path(SNAPSHOT)
    assert active.read(SNAPSHOT) is None


def test_its_files_are_read_whole_and_missing_ones_are_none(broker: Path, segment: Segment) -> None:
    log = dict(segments(broker, NAME))["00000000000000000102.log"]
    assert segment.size() == len(log)
    assert segment.read(LOG) == log
    assert Segment(OsDisk(), str(broker / NAME), 0, 102).read(TXN_INDEX) is None


def test_its_batches_start_at_or_before_any_offset(segment: Segment) -> None:
    lines = [line for line in expected_batches(NAME) if line["segment"].startswith(offset_file(102, ""))]
    for line in lines:
        for offset in (line["base_offset"], line["last_offset"]):
            first = next(segment.chunks(offset))
            assert first.position + int(first.batches.positions[0]) <= line["position"]
    found = [offset for chunk in segment.chunks() for offset in chunk.batches.base_offset.tolist()]
    assert found == [line["base_offset"] for line in lines]


def test_indexes_that_are_missing_are_empty(tmp_path: Path) -> None:
    (tmp_path / offset_file(0, LOG)).touch()
    bare = Segment(OsDisk(), str(tmp_path), 0, None)
    assert len(bare.offset_index().offsets) == len(bare.time_index().offsets) == len(bare.aborted()) == 0


@pytest.mark.parametrize(
    ("suffix", "ask"),
    [(OFFSET_INDEX, Segment.offset_index), (TIME_INDEX, Segment.time_index), (TXN_INDEX, Segment.aborted)],
)
def test_a_broken_index_is_corrupt_by_name(tmp_path: Path, suffix: str, ask: object) -> None:
    (tmp_path / offset_file(0, suffix)).write_bytes(b"x" * 41)
    with pytest.raises(Corrupt) as caught:
        ask(Segment(OsDisk(), str(tmp_path), 0, None))  # type: ignore[operator]
    assert caught.value.file == str(tmp_path / offset_file(0, suffix))


class Counting(OsDisk):
    """Counts the bytes that are read."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = 0

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(file, start, end)
        self.bytes += len(data)
        return data


@pytest.mark.parametrize("entries", [0, 1, 3_000, 200_000])
def test_of_an_active_segment_s_preallocated_index_little_more_than_its_entries_is_read(tmp_path: Path, entries: int) -> None:
    offsets = np.arange(1, entries + 1, dtype=np.int64)
    for suffix, body in (
        (OFFSET_INDEX, np.rec.fromarrays([offsets, offsets * 4096], OFFSET_ENTRY)),
        (TIME_INDEX, np.rec.fromarrays([offsets + 10**12, offsets], TIME_ENTRY)),
    ):
        (tmp_path / offset_file(0, suffix)).write_bytes(body.tobytes() + bytes((10 << 20) - body.nbytes))
    disk = Counting()
    active = Segment(disk, str(tmp_path), 0, None)
    assert active.offset_index().offsets.tolist() == offsets.tolist()
    assert active.time_index().offsets.tolist() == offsets.tolist()
    assert disk.bytes <= 100_000 + 5 * entries * (8 + 12)


def test_a_segment_without_a_log_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        list(Segment(OsDisk(), str(tmp_path), 0, None).chunks())


def cleaned_segment(folder: Path) -> tuple[Segment, bytes]:
    """A segment of 4,000 batches of one size with its index, and its log file after every other batch is cleaned away."""
    before = [batch(record(value=b"x" * 200), base_offset=offset) for offset in range(4000)]
    segment = Segment(OsDisk(), str(folder), 0, 4000)
    Path(segment.path(LOG)).write_bytes(b"".join(before))
    entries = [(offset, offset * len(before[0])) for offset in range(100, 4000, 100)]
    Path(segment.path(OFFSET_INDEX)).write_bytes(np.array(entries, OFFSET_ENTRY).tobytes())
    return segment, b"".join(before[::2])


def offsets_of(chunks: Iterable[Chunk]) -> list[int]:
    return [offset for chunk in chunks for offset in chunk.batches.base_offset.tolist()]


def test_an_index_of_before_a_cleaning_skips_nothing_of_the_cleaned_log(tmp_path: Path) -> None:
    segment, after = cleaned_segment(tmp_path)
    Path(segment.path(LOG)).write_bytes(after)
    for offset in (1000, 1500, 3998):
        assert offset in offsets_of(segment.chunks(offset)), "the position is that of a later batch"
        file = segment.log_file().opened(4000)
        at_position = read_chunks(file.opened.read_large, "", file.position_of(offset), len(after))
        assert offsets_of(at_position)[0] <= offset


def test_a_segment_that_is_cleaned_while_it_is_read_is_read_on_as_it_was(tmp_path: Path) -> None:
    segment, after = cleaned_segment(tmp_path)
    chunks = segment.chunks()
    found = offsets_of([next(chunks)])
    assert len(found) < 2000
    (tmp_path / "new").write_bytes(after)
    (tmp_path / "new").replace(segment.path(LOG))
    assert found + offsets_of(chunks) == list(range(4000))


def test_a_segment_that_the_broker_has_deleted_is_not_taken_for_one_without_aborted_transactions(tmp_path: Path) -> None:
    segment = Segment(OsDisk(), str(broker_logs(tmp_path, NAME) / NAME), 102, 2683)
    assert segment.aborted()
    Path(segment.path(TXN_INDEX)).rename(segment.path(TXN_INDEX) + ".deleted")
    assert segment.aborted() == ()
    Path(segment.path(LOG)).rename(segment.path(LOG) + ".deleted")
    with pytest.raises(NotFound, match=r"00000000000000000102\.log"):
        segment.aborted()
