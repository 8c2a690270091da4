"""What the tests of the local tier share: unpacked log directories that nobody writes to, and Kafka's own classes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_logs import broker_logs, legacy_logs, legacy_partitions, partitions
from kafka_judge import Judge, judge
from made_once import made_once


@pytest.fixture(scope="session")
@made_once
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden log directory, for reading only."""
    return broker_logs(tmp_path_factory.mktemp("broker"))


@pytest.fixture(params=partitions())
def partition(request: pytest.FixtureRequest) -> str:
    """Each golden partition in turn."""
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def kafka() -> Iterator[Judge]:
    """Kafka's own classes, for tests that are marked with `kafka_judge.oracle`."""
    with judge() as asked:
        yield asked


@pytest.fixture(scope="session")
@made_once
def legacy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden log directory with messages of magic 0 and 1, for reading only."""
    return legacy_logs(tmp_path_factory.mktemp("legacy"))


@pytest.fixture(params=legacy_partitions())
def legacy_partition(request: pytest.FixtureRequest) -> str:
    """Each of its partitions in turn."""
    name: str = request.param
    return name
