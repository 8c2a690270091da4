"""What the tests of the archive share: segments of the golden logs that are ready to be copied."""

import pytest
from golden_logs import broker_logs
from logs_to_archive import local_logs
from segments_to_copy import PARTITIONS

from local_log.formats.batch_v2 import Batches, scan
from remote.segment_check import LogSegmentData
from tiering.offload import segment_data


@pytest.fixture(scope="module")
def inactive(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[LogSegmentData]]:
    """The inactive segments of some golden partitions."""
    logs = local_logs(broker_logs(tmp_path_factory.mktemp("broker"), *PARTITIONS))
    return {name: [segment_data(log, s, lambda _: None) for s in log.segments[:-1]] for name, log in logs.items()}


@pytest.fixture(scope="module")
def segment(inactive: dict[str, list[LogSegmentData]]) -> LogSegmentData:
    """A segment of 1 MB with aborted transactions and a snapshot."""
    return inactive["g-txn-0"][1]


@pytest.fixture(scope="module")
def body(segment: LogSegmentData) -> bytes:
    return segment.read(0, segment.size)


@pytest.fixture(scope="module")
def batches(body: bytes) -> Batches:
    return scan(body)[0]
