"""What the tests of the archive share: segments that are ready to be copied, and archives that nobody writes to."""

import pytest
from archived_worlds import ARCHIVED, World, offloaded
from golden_logs import broker_logs
from logs_to_archive import cut_finer, finer_logs, local_logs
from made_once import made_once
from segments_to_copy import PARTITIONS

from local_log.formats.record_batch.batch_v2 import Batches, scan
from remote.segment.check import LogSegmentData
from tiering.offload.source import segment_data


@pytest.fixture(scope="session")
@made_once
def inactive(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[LogSegmentData]]:
    """The inactive segments of some golden partitions."""
    logs = local_logs(broker_logs(tmp_path_factory.mktemp("broker"), *PARTITIONS))
    return {name: [segment_data(log, s) for s in log.segments[:-1]] for name, log in logs.items()}


@pytest.fixture(scope="session")
def segment(inactive: dict[str, list[LogSegmentData]]) -> LogSegmentData:
    """A segment of 1 MB with aborted transactions and a snapshot."""
    return inactive["g-txn-0"][1]


@pytest.fixture(scope="session")
def body(segment: LogSegmentData) -> bytes:
    return bytes(segment.read(0, segment.size))


@pytest.fixture(scope="session")
def batches(body: bytes) -> Batches:
    return scan(body)[0]


@pytest.fixture(scope="session")
@made_once
def finer(tmp_path_factory: pytest.TempPathFactory) -> World:
    """All golden partitions, cut into a dozen segments each."""
    return offloaded(finer_logs(tmp_path_factory.mktemp("finer")), tmp_path_factory.mktemp("archive"), ARCHIVED)


@pytest.fixture(scope="session")
@made_once
def finest(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The transactions, cut so that many of them span several segments."""
    folder = broker_logs(tmp_path_factory.mktemp("finest"), "g-txn-0")
    cut_finer(folder / "g-txn-0", 60)
    return offloaded(folder, tmp_path_factory.mktemp("archive"), ("g-txn-0",))
