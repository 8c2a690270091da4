"""What the tests of the local tier share: one unpacked log directory that nobody writes to."""

from pathlib import Path

import pytest
from golden_logs import broker_logs, partitions


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden log directory, for reading only."""
    return broker_logs(tmp_path_factory.mktemp("broker"))


@pytest.fixture(params=partitions())
def partition(request: pytest.FixtureRequest) -> str:
    """Each golden partition in turn."""
    name: str = request.param
    return name
