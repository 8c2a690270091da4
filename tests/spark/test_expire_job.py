"""The job expire: for an archive the rows and the exit codes of `tiering expire`."""

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest
from click.testing import CliRunner, Result
from made_archive import made
from pyspark.sql import SparkSession

from remote import archive as archives
from remote.store.open import open_store
from spark_jobs.jobs.expire import main
from tiering.cli import main as tiering_main

pytestmark = pytest.mark.spark

Job = Callable[..., Result]
OLD = ("-c", "retention.ms=1000", "-c", "file.delete.delay.ms=0")


@pytest.fixture
def job(spark: SparkSession) -> Job:
    """`job(ARGS…)` on the session of the tests."""
    return lambda *args: CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


def command(*args: object) -> Result:
    """`tiering expire ARGS…`."""
    return CliRunner().invoke(tiering_main, ["expire", *(str(a) for a in args)], catch_exceptions=False)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of two topics: three partitions with two old segments each, and one with a damaged manifest."""
    folder = tmp_path_factory.mktemp("both")
    for number in range(3):
        made(open_store(str(folder)), [[[1]], [[2]]], "old", number)
    made(open_store(str(folder)), [[[1]]], "damaged")
    newest = min(folder.glob("damaged/*/0/manifest/*.json"))
    newest.write_bytes(newest.read_bytes()[:-9])
    return folder


@pytest.fixture
def url(both: Path, tmp_path: Path) -> Path:
    """A copy to expire."""
    return Path(copytree(both, tmp_path / "archive"))


def starts(url: Path) -> list[int]:
    return [m.log_start_offset for m in archives.newest_manifests(open_store(str(url)), "old")]


def test_rows_and_exit_codes_are_those_of_the_command(job: Job, both: Path, url: Path, tmp_path: Path) -> None:
    other = Path(copytree(both, tmp_path / "other"))
    for more in (["--dry-run"], ["--yes"], ["--yes"], ["--yes", "--topic", "old"]):
        args = ("--archive-alone", "--output", "json", *OLD, *more)
        expected, found = command("--archive", other, *args), job("--archive", url, *args)
        assert json.loads(found.stdout) == json.loads(expected.stdout)
        assert found.exit_code == expected.exit_code == (6 if len(more) == 1 else 0)
        assert starts(url) == starts(other) == ([0] * 3 if more == ["--dry-run"] else [2] * 3)
    assert list(url.rglob("old/*/*/segments/*")) == []


def test_a_damaged_manifest_is_told_and_stops_no_other_partition(job: Job, url: Path) -> None:
    done = job("--archive", url, "--archive-alone", *OLD, "--yes")
    assert done.exit_code == 6
    assert "expire: damaged/" in done.stderr
    assert "expire: 3 partitions done, 1 refused, of 4; " in done.stderr


def test_without_agreement_nothing_is_deleted(job: Job, url: Path) -> None:
    refused = job("--archive", url, "--archive-alone", "--topic", "old", *OLD)
    assert (refused.exit_code, starts(url)) == (2, [0] * 3)
    assert "add --yes" in refused.stderr
    assert refused.stdout.count("expire") == 3


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ((), 2),
        (("-c", "retention.ms=x"), 2),
        (("-c", "local.retention.ms=1", "-c", "retention.ms=-1"), 2),
        (("-c", "retention.ms=1", "--follow-log-start-offset"), 2),
        (("-c", "retention.ms=1", "--topic", "nothing"), 4),
        (("-c", "retention.ms=1", "--log-dir", "not-there"), 4),
    ],
)
def test_options_that_make_no_sense_are_refused(job: Job, both: Path, options: tuple[str, ...], code: int) -> None:
    assert job("--archive", both, "--yes", *options).exit_code == code


def test_an_archive_that_is_not_there_is_not_found(job: Job, tmp_path: Path) -> None:
    assert job("--archive", tmp_path / "nothing", "-c", "retention.ms=1", "--archive-alone", "--yes").exit_code == 4
