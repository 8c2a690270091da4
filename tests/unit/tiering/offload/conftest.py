"""A compacted topic for the tests of what takes the place of archived segments."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from keyed_logs import KeyedLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[KeyedLog]:
    """With six segments' records that wait for the cleaner."""
    log = KeyedLog(tmp_path / "logs")
    log.fill(6)
    yield log
    log.log.close()
