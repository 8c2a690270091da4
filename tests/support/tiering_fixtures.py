"""Log directories that the tests of the tiering read, and write to copies of; and Kafka's own classes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from golden_logs import broker_logs
from kafka_judge import Judge, judge
from logs_to_archive import finer_logs
from made_once import made_once
from one_offload import TXN
from pages_decoded_once import pages_decoded_once as pages_decoded_once
from tiered_worlds import SHAPES, World, made


@pytest.fixture(scope="module")
def finer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All golden partitions, cut into a dozen segments each."""
    return finer_logs(tmp_path_factory.mktemp("finer"))


@pytest.fixture(scope="module")
def txn(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The transactions as their broker cut them: three inactive segments."""
    return broker_logs(tmp_path_factory.mktemp("txn"), TXN)


@pytest.fixture(scope="session")
@made_once
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The golden logs in every shape."""
    return made(tmp_path_factory.mktemp("world"))


@pytest.fixture(params=SHAPES)
def shape(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def kafka() -> Iterator[Judge]:
    """For tests that are marked with `kafka_judge.oracle`."""
    with judge() as asked:
        yield asked
