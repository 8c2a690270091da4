"""One segment after a crash or from a broker of old: recovered from its batches, and split."""

import os
import random  # noqa: TID251  # seeded
from collections.abc import Callable
from pathlib import Path

import pytest
from hand_made import batch, record
from lone_segments import found_offset, segment
from small_logs import INT32_MAX, Clock, append, base_offsets, marker, old_records, produced, records, small_config

from local_log.engine.epochs import LeaderEpochs
from local_log.engine.folder import LogFolder
from local_log.engine.list_offsets import find_by_timestamp
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.producers.state import Producer
from local_log.engine.recovery.segment import recover
from local_log.engine.recovery.split import split_overflowed
from local_log.engine.segment import Segment
from local_log.engine.segments import Segments
from local_log.errors import Invalid
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.indexes.transaction import AbortedTxn
from local_log.os_disk import OsWritableDisk


def recovered(one: Segment, folder: Path, producers: ProducerStateManager | None = None) -> int:
    disk = OsWritableDisk()
    return recover(one, producers or ProducerStateManager(disk, str(folder), Clock()), LeaderEpochs(disk, str(folder)))


# Recovered


@pytest.mark.parametrize("of", ["index", "timeindex"])
def test_recovery_makes_a_damaged_index_anew(tmp_path: Path, of: str) -> None:
    one = segment(tmp_path, 0)
    for offset in range(90):
        append(one, records(offset, time=10 * offset))
    one.close()
    sound = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    file = tmp_path / f"00000000000000000000.{of}"
    file.write_bytes(sound[file.name][:5] + random.Random(of).randbytes(len(sound[file.name]) - 5))
    again = segment(tmp_path, 0)
    assert recovered(again, tmp_path) == 0
    assert {name: (tmp_path / name).read_bytes() for name in sound} == sound
    for offset in range(90):
        assert found_offset(again, offset) == offset
        found = find_by_timestamp(again, 10 * offset, 0)
        assert found is not None
        assert found.offset == offset


def test_recovery_adds_no_more_entries_than_an_index_has_room_for(tmp_path: Path) -> None:
    """Each start leaves out an entry: a segment has more batches than a recovery, which leaves out none, has room for."""
    one = segment(tmp_path, 0)
    for offset in range(104):
        if offset and offset % 20 == 0:
            one.close()
            one = segment(tmp_path, 0)
            one.resize_indexes(1200)
        append(one, records(offset, time=10 * offset))
    one.close()
    again = segment(tmp_path, 0)
    assert recovered(again, tmp_path) == 0
    assert len(again.time_index) == 100
    assert [found_offset(again, offset) for offset in range(104)] == [*range(104)]
    found = find_by_timestamp(again, 1030, 0)
    assert found is not None
    assert found.offset == 103


class Telling(OsWritableDisk):
    """Tells which files are read."""

    def __init__(self) -> None:
        super().__init__()
        self.was_read: list[str] = []

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        self.was_read.append(file)
        return super().read(file, start, end)


def test_recovery_reads_no_index_and_leaves_it_as_if_it_had(tmp_path: Path) -> None:
    """A crash leaves them at their preallocated size, 10 MiB each by default: those of a thousand logs would fill the memory."""
    one = segment(tmp_path, 0)
    for offset in range(90):
        append(one, records(offset, time=10 * offset))
    one.sync()
    sizes = {of: (tmp_path / f"00000000000000000000.{of}").stat().st_size for of in ("index", "timeindex")}
    assert sizes == {"index": 1200, "timeindex": 1200}, "preallocated"
    disk = Telling()
    again = Segment(disk, str(tmp_path), 0, small_config(), Clock())
    assert recovered(again, tmp_path) == 0
    assert [file for file in disk.was_read if file.endswith("index")] == []
    assert (len(again.offset_index), len(again.time_index)) == (89, 89)
    assert [found_offset(again, offset) for offset in range(90)] == [*range(90)]
    assert (tmp_path / "00000000000000000000.index").stat().st_size == 89 * 8


def test_recovery_writes_down_who_aborted_what_also_where_a_transaction_started_before_the_segment(tmp_path: Path) -> None:
    one = segment(tmp_path, 100)
    append(
        one,
        produced(100, 5, 8, 2, transactional=True),
        produced(102, 6, 8, 2, transactional=True),
        records(104, 2),
        marker(106, 6, commit=False),
        marker(107, 5, commit=True),
    )
    producers = ProducerStateManager(OsWritableDisk(), str(tmp_path), Clock())
    recovered(one, tmp_path, producers)
    assert tuple(one.txn_index.all()) == (AbortedTxn(102, 106, 6, 100),)
    assert (producers.map_end_offset, producers.ongoing) == (108, {})

    producers = ProducerStateManager(OsWritableDisk(), str(tmp_path), Clock())
    producers.producers[6] = Producer(6, 0, txn_first_offset=75)
    producers.ongoing[75] = 6
    recovered(one, tmp_path, producers)
    assert tuple(one.txn_index.all()) == (AbortedTxn(75, 106, 6, 100),)
    assert producers.map_end_offset == 108


def test_recovery_finds_the_leader_epochs_again(tmp_path: Path) -> None:
    one = segment(tmp_path, 0)
    append(one, records(104, 2), records(106, 2, epoch=1), records(108, 2, epoch=1), records(110, 2, epoch=2))
    recovered(one, tmp_path)
    epochs = LeaderEpochs(OsWritableDisk(), str(tmp_path))
    assert epochs.entries == [EpochEntry(0, 104), EpochEntry(1, 106), EpochEntry(2, 110)]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("make", [records, old_records])
def test_recovery_cuts_the_log_at_the_first_damaged_batch(tmp_path: Path, make: Callable[[int], bytes], seed: int) -> None:
    r = random.Random(seed)
    one = segment(tmp_path, 0)
    append(one, *(make(offset) for offset in range(20)))
    first_damaged = r.randrange(20)
    found = one.translate(first_damaged)
    assert found is not None
    position = found.position + r.randrange(15)
    data = Path(one.log_file).read_bytes()
    Path(one.log_file).write_bytes(data[:position] + r.randbytes(len(data) - position))
    again = segment(tmp_path, 0)
    assert recovered(again, tmp_path) == len(data) - found.position
    assert base_offsets([again]) == list(range(first_damaged))
    assert Path(one.log_file).read_bytes() == data[: found.position]


# Split


def test_a_segment_is_split_at_the_first_batch_whose_offsets_do_not_fit(tmp_path: Path) -> None:
    large = batch(record(value=bytes((1 << 20) + 1)), base_offset=500)
    fits = records(0) + large
    too_far = records(INT32_MAX + 5, 2)
    log_file = tmp_path / "00000000000000000000.log"
    log_file.write_bytes(fits + too_far)
    os.utime(log_file, (1_600_000_000, 1_600_000_000))
    folder = LogFolder(OsWritableDisk(), str(tmp_path), small_config(), Clock(), lambda: 0.0)
    segments = Segments()
    segments.add(segment(tmp_path, 0))
    assert segments.first.has_overflow()
    assert split_overflowed(folder, segments, segments.first) == []
    assert segments.base_offsets == (0, INT32_MAX + 5)
    assert [Path(s.log_file).read_bytes() for s in segments] == [fits, too_far]
    assert [s.suffix for s in segments] == ["", ""]
    assert [s.modified_ms for s in segments] == [1_600_000_000_000] * 2  # retention by time goes on where it was
    for one in segments:
        with pytest.raises(Invalid, match="nothing to split"):
            split_overflowed(folder, segments, one)
