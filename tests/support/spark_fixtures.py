"""What the tests of Spark share: archives that nobody changes, and the rows that they should give."""

import json
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import logs_to_archive
import pytest
from click.testing import CliRunner
from golden_logs import broker_logs, expected_batches, expected_records, live, partitions, record_digest
from made_once import made_once

from tiering.cli import main

Row = dict[str, Any]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _tiering(*args: object) -> str:
    result = CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def _bytes(encoded: str | None) -> bytes | None:
    return None if encoded is None else b64decode(encoded)


def _headers(pairs: list[list[str | None]]) -> list[Row] | None:
    """Header keys are text to Spark, and a record without headers has null."""
    return [{"key": b64decode(k or "").decode(), "value": _bytes(v)} for k, v in pairs] or None


@pytest.fixture(scope="session")
def tiering() -> Callable[..., str]:
    """What `tiering ARGS…` prints; it has to succeed."""
    return _tiering


@pytest.fixture(scope="session")
def roll() -> Callable[[Path, str], None]:
    """Starts a new segment in a partition, as a broker does; the producer snapshot for its offset is there already."""
    return logs_to_archive.roll


@pytest.fixture(scope="session")
@made_once
def broker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden log directory, for reading only."""
    return broker_logs(tmp_path_factory.mktemp("broker"))


@pytest.fixture(scope="session")
@made_once
def archive(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An archive of all golden partitions, rolled first: only g-empty and the last segment of g-txn are not in it."""
    logs, url = broker_logs(tmp_path_factory.mktemp("rolled")), str(tmp_path_factory.mktemp("archive"))
    for partition in partitions():
        logs_to_archive.roll(logs, partition)
    _tiering("offload", "--log-dir", logs, "--archive", url)
    return url


@pytest.fixture(scope="session")
def expected(broker: Path) -> Callable[..., list[Row]]:
    """`expected(topic, start, end, only)`: the topic's archived rows, of these offsets, as Spark's Kafka source has them."""

    @cache
    def archived(topic: str) -> list[Row]:
        partition = f"{topic}-0"
        dumped = _tiering("log", "dump", broker / partition, "--records")
        records = [json.loads(line) for line in dumped.splitlines()]
        assert tuple(map(record_digest, records)) == expected_records(partition)
        types = [b["timestamp_type"] for b in expected_batches(partition) for _ in range(b["count"])]
        return [
            {
                "key": _bytes(r["key"]),
                "value": _bytes(r["value"]),
                "topic": topic,
                "partition": 0,
                "offset": r["offset"],
                "timestamp": _EPOCH + timedelta(milliseconds=r["timestamp"]),
                "timestampType": timestamp_type,
                "headers": _headers(r["headers"]),
            }
            for r, timestamp_type in zip(records, types, strict=True)
            if not r["control"] and live(partition)["earliest"][0] <= r["offset"] < (2744 if topic == "g-txn" else 1 << 62)
        ]

    def rows(topic: str, start: int = 0, end: int = 1 << 62, only: set[int] | None = None) -> list[Row]:
        return [r for r in archived(topic) if start <= r["offset"] < end and (only is None or r["offset"] in only)]

    return rows
