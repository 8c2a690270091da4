"""Kafka's own classes, for tests that are marked with `kafka_judge.oracle`."""

from collections.abc import Iterator

import pytest
from kafka_judge import Judge, judge


@pytest.fixture(scope="session")
def kafka() -> Iterator[Judge]:
    with judge() as asked:
        yield asked
