"""A folder that a real broker left when it was killed, brought in order as that broker brought it when it was started again."""

import hashlib
from pathlib import Path

import golden_logs
import pytest

from local_log.engine.config import read_config
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.os_disk import OsWritableDisk
from tiering.log_tools import dump

NOW = 1_795_230_000_000
SETTINGS = read_config({"segment.bytes": "1048576"})


@pytest.fixture(params=golden_logs.crashed_partitions())
def partition(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def folder(tmp_path: Path, partition: str) -> Path:
    return golden_logs.crashed_logs(tmp_path) / partition


def restarted(folder: Path) -> UnifiedLog:
    log = open_log(OsWritableDisk(), str(folder), SETTINGS, lambda: NOW, lambda: 0.0)
    # The broker was elected again, and notes where its new epoch begins.
    log.epochs.assign(2, log.log_end_offset)
    return log


def test_every_file_is_what_the_broker_made_of_it(folder: Path, partition: str) -> None:
    restarted(folder).close()
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    assert found == golden_logs.after_the_crash(partition)


def test_doing_it_twice_changes_nothing(folder: Path, partition: str) -> None:
    restarted(folder).close()
    restarted(folder).close()
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}
    assert found == golden_logs.after_the_crash(partition)


def test_the_producers_are_those_that_kafka_reads_afterwards(folder: Path, partition: str) -> None:
    restarted(folder).close()
    assert sorted(map(str, dump.snapshots(str(folder)))) == sorted(map(str, golden_logs.expected_snapshots(partition)))


@pytest.mark.parametrize("recovered", [False, True], ids=["before", "after"])
def test_batches_and_records_are_those_that_kafka_reads(folder: Path, partition: str, recovered: bool) -> None:
    if recovered:
        restarted(folder).close()
    assert tuple(dump.batches(str(folder))) == golden_logs.expected_batches(partition)
    assert tuple(map(golden_logs.record_digest, dump.records(str(folder)))) == golden_logs.expected_records(partition)
