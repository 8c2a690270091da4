"""What the tests of the commands share: the golden log directory, archives of it, and the command line run in process."""

import hashlib
import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from shutil import copytree
from typing import Any

import logs_to_archive
import pytest
from click.testing import CliRunner, Result
from golden_logs import broker_logs, expected_records, legacy_logs, legacy_partitions, partitions, record_digest

from tiering.cli import main

Row = dict[str, Any]


def _run(*args: object) -> Result:
    # An error that no command translates is a bug, and must not pass for exit code 1.
    return CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


def _rows(*args: object) -> list[Row]:
    result = _run(*args, "--output", "jsonl")
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


def _fingerprint(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        str(path.relative_to(folder)): (
            hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "",
            path.stat().st_mtime_ns,
        )
        for path in (folder, *folder.rglob("*"))
    }


@pytest.fixture(scope="session")
def run() -> Callable[..., Result]:
    """`tiering ARGS…`."""
    return _run


@pytest.fixture(scope="session")
def rows() -> Callable[..., list[Row]]:
    """The rows of `tiering ARGS… --output jsonl`, which has to succeed."""
    return _rows


@pytest.fixture(scope="session")
def fingerprint() -> Callable[[Path], dict[str, tuple[str, int]]]:
    """Content and time of change of everything in a folder, by path."""
    return _fingerprint


@pytest.fixture(scope="session")
def roll() -> Callable[[Path, str], None]:
    """Starts a new segment in a partition, as a broker does; the producer snapshot for its offset is there already."""
    return logs_to_archive.roll


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The golden log directory; no command may change a byte of it."""
    logs = broker_logs(tmp_path_factory.mktemp("broker"))
    before = _fingerprint(logs)
    yield logs
    assert _fingerprint(logs) == before


@pytest.fixture(scope="session")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The golden log directory with messages of magic 0 and 1; no command may change a byte of it."""
    logs = legacy_logs(tmp_path_factory.mktemp("legacy"))
    before = _fingerprint(logs)
    yield logs
    assert _fingerprint(logs) == before


@pytest.fixture(scope="session")
def legacy_archive(legacy: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The archive after an offload of `legacy`: all of it, since every active segment there is empty."""
    url = str(tmp_path_factory.mktemp("legacy-archive"))
    _rows("offload", "--log-dir", legacy, "--archive", url)
    return url


@pytest.fixture(scope="session")
def archive(broker: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The archive after an offload of `broker`."""
    url = str(tmp_path_factory.mktemp("archive"))
    _rows("offload", "--log-dir", broker, "--archive", url)
    return url


@pytest.fixture(scope="session")
def shed(broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`broker` after its archived segments have left it, which are all but the active ones."""
    logs = copytree(broker, tmp_path_factory.mktemp("shed"), dirs_exist_ok=True)
    for partition in partitions():
        active = max((logs / partition).glob("*.log")).name
        for file in (logs / partition).iterdir():
            if file.suffix in (".log", ".index", ".timeindex", ".txnindex") and file.stem < active.removesuffix(".log"):
                file.unlink()
    return logs


@pytest.fixture(scope="session")
def rolled(broker: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`broker` after all of its partitions have rolled a new segment."""
    logs = copytree(broker, tmp_path_factory.mktemp("rolled"), dirs_exist_ok=True)
    for partition in partitions():
        logs_to_archive.roll(logs, partition)
    return logs


@pytest.fixture(scope="session")
def whole_archive(rolled: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The archive after an offload of `rolled`: everything but the last segment of g-txn, where a transaction is open."""
    url = str(tmp_path_factory.mktemp("whole-archive"))
    _rows("offload", "--log-dir", rolled, "--archive", url)
    return url


@pytest.fixture(scope="session")
def records(broker: Path) -> Callable[[str], list[Row]]:
    """The records of a partition with their bytes, control records too, each proved by its golden digest."""

    @cache
    def of(partition: str) -> list[Row]:
        dumped = _rows("log", "dump", broker / partition, "--records")
        assert tuple(map(record_digest, dumped)) == expected_records(partition)
        return dumped

    return of


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Two partitions of its own for a test that damages them."""
    return broker_logs(tmp_path / "logs", "g-codec-none-0", "g-txn-0")


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A folder that is not there yet."""
    return str(tmp_path / "archive")


@pytest.fixture(params=partitions())
def partition(request: pytest.FixtureRequest) -> str:
    """Each golden partition in turn; their topics have one each."""
    name: str = request.param
    return name


@pytest.fixture
def topic(partition: str) -> str:
    """The partition's topic."""
    return partition.removesuffix("-0")


@pytest.fixture(params=legacy_partitions())
def legacy_partition(request: pytest.FixtureRequest) -> str:
    """Each golden partition with messages of magic 0 and 1 in turn."""
    name: str = request.param
    return name
