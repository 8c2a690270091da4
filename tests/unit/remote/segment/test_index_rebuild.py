"""Indexes made anew from batches are those that a broker's recovery of the same log file makes."""

from pathlib import Path

import numpy as np
import pytest
from golden_logs import broker_logs, legacy_logs, legacy_partitions, partitions

from local_log.engine.config import LogConfig
from local_log.engine.epochs import LeaderEpochs
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.recovery.segment import recover
from local_log.engine.segment import Segment
from local_log.formats.chunks import CHUNK_BYTES, read_chunks
from local_log.os_disk import OsWritableDisk
from remote.segment.index_rebuild import RebuiltIndexes, rebuilt_indexes


def rebuilt(log: Path) -> RebuiltIndexes:
    body = log.read_bytes()
    columns: list[list[np.ndarray]] = [[np.empty(0, np.int64)] for _ in range(3)]
    for chunk in read_chunks(lambda start, end: body[start:end], str(log), 0, len(body), first_bytes=CHUNK_BYTES):
        b = chunk.batches
        found = (b.positions.astype(np.int64) + chunk.position, b.last_offset, b.max_timestamp)
        for column, values in zip(columns, found, strict=True):
            column.append(values)
    return rebuilt_indexes(int(log.stem), *map(np.concatenate, columns))


def recovered(log: Path) -> RebuiltIndexes:
    """What the engine's recovery, which is held against Kafka's own, makes of the log file."""
    disk, folder = OsWritableDisk(), str(log.parent)
    segment = Segment(disk, folder, int(log.stem), LogConfig(), lambda: 0)
    segment.resize_indexes(10 << 20)
    recover(segment, ProducerStateManager(disk, folder, lambda: 0), LeaderEpochs(disk, folder))
    segment.close()
    return RebuiltIndexes(log.with_suffix(".index").read_bytes(), log.with_suffix(".timeindex").read_bytes())


@pytest.mark.parametrize("partition", [p for p in partitions() if p != "g-empty-0"])
def test_indexes_are_those_of_a_recovery(tmp_path: Path, partition: str) -> None:
    for log in sorted((broker_logs(tmp_path, partition) / partition).glob("*.log")):
        assert rebuilt(log) == recovered(log)


@pytest.mark.parametrize("partition", legacy_partitions())
def test_indexes_of_older_messages_are_those_of_a_recovery(tmp_path: Path, partition: str) -> None:
    for log in sorted((legacy_logs(tmp_path, partition) / partition).glob("*.log")):
        assert rebuilt(log) == recovered(log)


def test_a_segment_without_a_batch_has_empty_indexes() -> None:
    nothing = np.empty(0, np.int64)
    assert rebuilt_indexes(7, nothing, nothing, nothing) == RebuiltIndexes(b"", b"")
