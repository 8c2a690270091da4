"""What is archived beside a log: the segment's own files where they are sound, else what a broker's recovery would make."""

import struct
from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from golden_logs import broker_logs
from logs_to_archive import cut_finer, local_logs
from made_manifests import PATH
from segments_to_copy import PARTITIONS

from local_log.engine.config import LogConfig
from local_log.engine.epochs import LeaderEpochs
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.recovery.segment import recover
from local_log.engine.segment import Segment
from local_log.formats.filenames import LOG, OFFSET_INDEX, TIME_INDEX, TXN_INDEX
from local_log.formats.indexes.transaction import read_txn_index
from local_log.os_disk import OsWritableDisk
from remote.manifest import segment_entry
from remote.segment.check import LogSegmentData, SegmentFile
from remote.segment.repair import checked_copy
from remote.segment.upload import copy_segment
from tiering.offload.source import segment_data

Parts = dict[str, bytes]


def archived(segment: LogSegmentData) -> tuple[Parts, list[str]]:
    """The parts of a copy's aux object, and what was noted of them."""
    store, copy = MemoryStore(), checked_copy(segment)
    entry = copy_segment(store, PATH, copy, FixedClock(), CountingIds())
    aux = store.objects[PATH.segment(entry.aux_name)]
    return {name: aux[r.start : r.end] for name, r in entry.aux_ranges.items()}, list(copy.data.notes)


def recovered(segment: LogSegmentData, folder: Path) -> Parts:
    """The indexes that the engine's recovery, which is held against Kafka's own, makes of the log and the snapshot before it."""
    disk = OsWritableDisk()
    log = folder / f"{segment.base_offset:020d}{LOG}"
    log.write_bytes(segment.read(0, segment.size))
    before = Path(segment.path).with_suffix(".snapshot")
    if before.exists():
        (folder / before.name).write_bytes(before.read_bytes())
    producers = ProducerStateManager(disk, str(folder), lambda: 0)
    producers.truncate_and_reload(0, segment.base_offset)
    one = Segment(disk, str(folder), segment.base_offset, LogConfig(), lambda: 0)
    one.resize_indexes(10 << 20)
    recover(one, producers, LeaderEpochs(disk, str(folder)))
    one.close()
    names = {
        segment_entry.OFFSET_INDEX: OFFSET_INDEX,
        segment_entry.TIME_INDEX: TIME_INDEX,
        segment_entry.TRANSACTION_INDEX: TXN_INDEX,
    }
    files = {part: log.with_suffix(suffix) for part, suffix in names.items()}
    return {part: body for part, file in files.items() if file.exists() and (body := file.read_bytes())}


def indexes(parts: Parts) -> Parts:
    """Those that a broker has, too."""
    return {name: body for name, body in parts.items() if name.endswith("index") and name != segment_entry.LEAST_TIME_INDEX}


@pytest.mark.parametrize("partition", PARTITIONS)
def test_sound_files_are_archived_as_they_are_and_nobody_is_told(
    inactive: dict[str, list[LogSegmentData]], partition: str
) -> None:
    for one in inactive[partition]:
        parts, told = archived(one)
        assert told == []
        files = {
            segment_entry.OFFSET_INDEX: one.offset_index,
            segment_entry.TIME_INDEX: one.time_index,
            segment_entry.TRANSACTION_INDEX: one.txn_index,
        }
        assert indexes(parts) == {name: file.body for name, file in files.items() if file and file.body}


@pytest.mark.parametrize("partition", PARTITIONS)
def test_missing_indexes_are_made_as_a_recovery_makes_them(
    inactive: dict[str, list[LogSegmentData]], partition: str, tmp_path: Path
) -> None:
    for number, one in enumerate(inactive[partition]):
        folder = tmp_path / str(number)
        folder.mkdir()
        parts, told = archived(replace(one, offset_index=None, time_index=None, txn_index=None))
        assert indexes(parts) == recovered(one, folder)
        assert any("the index is missing" in t for t in told)


def test_transaction_indexes_of_finely_cut_transactions_are_made_as_a_recovery_makes_them(tmp_path: Path) -> None:
    """Most of these transactions span segments, and few of the segments have a snapshot."""
    logs = broker_logs(tmp_path / "logs", "g-txn-0")
    cut_finer(logs / "g-txn-0", 40)
    log = local_logs(logs)["g-txn-0"]
    last_stable = {}
    for segment in log.segments[:-1]:
        one = segment_data(log, segment)
        parts, told = archived(replace(one, txn_index=None))
        made = parts.get(segment_entry.TRANSACTION_INDEX, b"")
        assert made == (one.txn_index.body if one.txn_index else b"")
        assert bool(made) == any("transaction index was rebuilt" in t for t in told)
        last_stable |= {t.last_offset: t.last_stable_offset for t in read_txn_index(made)}
    assert len(last_stable) > 10
    assert any(stable < last for last, stable in last_stable.items())


@pytest.mark.parametrize("field", ["offset_index", "time_index"])
@pytest.mark.parametrize(
    "damage",
    [
        lambda body: b"",
        lambda body: body[:-1],
        lambda body: body[: len(body) // 24 * 12],
        lambda body: body[::-1],
        lambda body: body + b"\1" * 24,
        lambda body: bytes(len(body)),
    ],
)
def test_an_index_that_does_not_fit_the_log_is_made_anew_and_said_so(
    segment: LogSegmentData, field: str, damage: object, tmp_path: Path
) -> None:
    file = getattr(segment, field)
    damaged = replace(file, body=damage(file.body))  # type: ignore[operator]
    parts, told = archived(replace(segment, **{field: damaged}))
    expected = recovered(segment, tmp_path)
    assert parts[segment_entry.OFFSET_INDEX] == expected[segment_entry.OFFSET_INDEX]
    assert parts[segment_entry.TIME_INDEX] == expected[segment_entry.TIME_INDEX]
    assert parts[segment_entry.TRANSACTION_INDEX] == (segment.txn_index.body if segment.txn_index else b"")
    assert len(told) == 1
    assert file.path in told[0]


@pytest.mark.parametrize("kept", [0, 1, -1])
def test_a_transaction_index_that_lacks_an_abort_is_made_anew(segment: LogSegmentData, kept: int) -> None:
    assert segment.txn_index is not None
    entry = struct.Struct(">hqqqq")
    entries = list(entry.iter_unpack(segment.txn_index.body))[:kept]
    fewer = replace(segment.txn_index, body=b"".join(entry.pack(*e) for e in entries))
    parts, told = archived(replace(segment, txn_index=fewer))
    assert parts[segment_entry.TRANSACTION_INDEX] == segment.txn_index.body
    assert "lacks the abort" in told[0]


def test_a_broken_snapshot_is_not_archived(segment: LogSegmentData) -> None:
    parts, told = archived(replace(segment, producer_snapshot=SegmentFile("s", b"\0\1broken")))
    assert segment_entry.PRODUCER_SNAPSHOT not in parts
    assert told[0].startswith("the producer snapshot was left out: s at byte")
