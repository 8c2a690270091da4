"""The job scrub: for a sound archive and for damaged ones the lines and the exit codes of `tiering scrub --deep`."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from pyspark.sql import SparkSession

from remote.manifest import codec
from spark_jobs.jobs.scrub import main
from tiering.cli import main as tiering_main

pytestmark = pytest.mark.spark

Job = Callable[..., Result]


@pytest.fixture
def job(spark: SparkSession) -> Job:
    """`job(ARGS…)` on the session of the tests."""
    return lambda *args: CliRunner().invoke(main, [str(a) for a in args], catch_exceptions=False)


def command(*args: object) -> Result:
    """`tiering scrub --deep ARGS…`."""
    return CliRunner().invoke(tiering_main, ["scrub", "--deep", *(str(a) for a in args)], catch_exceptions=False)


@pytest.fixture(scope="module")
def finer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive of all golden logs, cut into many segments."""
    from golden_logs import broker_logs
    from logs_to_archive import cut_finer, roll

    folder = tmp_path_factory.mktemp("finer")
    logs = broker_logs(folder / "logs")
    cut_finer(logs / "g-txn-0", 14)
    for partition in ("g-txn-0", "g-big-0", "g-codec-lz4-0"):
        roll(logs, partition)
    done = CliRunner().invoke(tiering_main, ["offload", "--log-dir", str(logs), "--archive", str(folder / "archive")])
    assert done.exit_code == 0, done.stderr
    return folder / "archive"


@pytest.fixture
def damaged(finer: Path, tmp_path: Path) -> Path:
    """A copy of it to damage."""
    return Path(shutil.copytree(finer, tmp_path / "damaged"))


def segments(archive: Path, topic: str, suffix: str) -> list[Path]:
    return sorted(archive.glob(f"{topic}/*/0/segments/*.{suffix}"))


def newest(archive: Path, topic: str) -> Path:
    return min(archive.glob(f"{topic}/*/0/manifest/*.json"))


def flipped(file: Path, at: int) -> None:
    body = bytearray(file.read_bytes())
    body[at] ^= 1
    file.write_bytes(body)


def cut_short(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def misstated(archive: Path) -> None:
    """An entry that states another number of records than its segment has, as an uploader with a bug would write it."""
    from dataclasses import replace

    file = newest(archive, "g-txn")
    manifest = codec.decode(file.read_bytes(), file.name)
    first, *others = manifest.entries
    file.write_bytes(codec.encode(replace(manifest, entries=(replace(first, record_count=7), *others))))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a missing log": lambda a: segments(a, "g-txn", "log")[4].unlink(),
    "a missing aux": lambda a: segments(a, "g-big", "aux")[0].unlink(),
    "another size": lambda a: cut_short(segments(a, "g-txn", "log")[-1]),
    "a batch": lambda a: flipped(segments(a, "g-txn", "log")[5], 3000),
    "a lz4 batch": lambda a: flipped(segments(a, "g-codec-lz4", "log")[0], 5000),
    "an index": lambda a: flipped(segments(a, "g-txn", "aux")[3], 9),
    "an entry": misstated,
    "an old manifest": lambda a: cut_short(max(a.glob("g-txn/*/0/manifest/*.json"))),
    "the newest manifest": lambda a: cut_short(newest(a, "g-big")),
    "a foreign key": lambda a: (a / "notes.txt").write_text("?"),
    "an orphan": lambda a: shutil.copy(
        segments(a, "g-txn", "log")[2], segments(a, "g-txn", "log")[2].with_name("00000000000000000700-0-" + "d" * 32 + ".log")
    ),
}


def without_ages(lines: str) -> list[dict[str, Any]]:
    """An orphan is a moment older for whoever looks later."""
    return [json.loads(re.sub(r'"age_ms":\d+', '"age_ms":0', line)) for line in lines.splitlines()]


@pytest.mark.parametrize("damage", ["a batch", "an orphan", "all of them", "nothing"])
def test_the_job_finds_what_the_command_finds_line_for_line(job: Job, damaged: Path, damage: str) -> None:
    for name, act in DAMAGES.items():
        if damage in (name, "all of them"):
            act(damaged)
    expected = command("--archive", damaged, "--output", "jsonl")
    assert bool(expected.stdout) == (damage != "nothing")
    found = job("--archive", damaged, "--output", "jsonl", "--bytes-per-task", 60_000)
    assert without_ages(found.stdout) == without_ages(expected.stdout)
    assert found.exit_code == expected.exit_code
    assert (found.exit_code == 6) == (damage not in ("nothing", "an orphan"))
    assert re.findall(r"\d+ anomalies", found.stderr) == re.findall(r"\d+ anomalies", expected.stderr)


@pytest.mark.parametrize("options", [("--sample", 0.5, "--seed", 3), ("--topic", "g-b*")])
def test_samples_and_topics_are_those_of_the_command(job: Job, damaged: Path, options: tuple[object, ...]) -> None:
    for log in segments(damaged, "*", "log"):
        flipped(log, log.stat().st_size // 2)
    expected = command("--archive", damaged, "--output", "jsonl", *options)
    found = job("--archive", damaged, "--output", "jsonl", "--bytes-per-task", 60_000, *options)
    assert (found.stdout, found.exit_code) == (expected.stdout, expected.exit_code)


def test_one_partition_is_read_by_many_tasks_and_the_report_has_the_sums(job: Job, finer: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    found = job("--archive", finer, "--topic", "g-txn", "--bytes-per-task", 60_000, "--report", report)
    assert (found.exit_code, found.stdout) == (0, "")
    told = json.loads(report.read_text())
    stored = sum(f.stat().st_size for suffix in ("log", "aux") for f in segments(finer, "g-txn", suffix))
    assert told["findings"] == []
    assert told["tasks"] > 5
    assert (told["segments"], told["bytes"]) == (len(segments(finer, "g-txn", "log")), stored)
    assert f"0 anomalies; {told['requests']} requests" in found.stderr


def test_a_dry_run_foretells_the_requests_and_reads_no_segment(job: Job, finer: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    args = ("--archive", finer, "--bytes-per-task", 1)
    foretold = json.loads(job(*args, "--dry-run").stdout)
    assert job(*args, "--report", report).exit_code == 0
    done = json.loads(report.read_text())
    assert done["requests"] == foretold["requests_made"] + foretold["requests"]
    assert (done["segments"], done["bytes"], done["tasks"]) == (foretold["segments"], foretold["bytes"], foretold["splits"])
    assert foretold["cost"]["total_usd"] == 0.0
    priced = json.loads(job(*args, "--dry-run", "--storage-class", "s3-glacier-ir").stdout)
    assert priced["cost"]["total_usd"] > 0


@pytest.mark.parametrize("more", [0, 3, 10_000])
def test_the_requests_of_all_tasks_together_are_bounded(job: Job, finer: Path, more: int) -> None:
    made = json.loads(job("--archive", finer, "--dry-run").stdout)["requests_made"]
    found = job("--archive", finer, "--bytes-per-task", 60_000, "--requests-max", made + more, "--output", "jsonl")
    assert found.exit_code == 0
    [requests] = re.findall(r"(\d+) requests", found.stderr)
    assert made <= int(requests) <= made + more
    assert {json.loads(line)["kind"] for line in found.stdout.splitlines()} == ({"left_out"} if more < 10_000 else set())


def test_an_object_that_goes_while_tasks_run_is_a_finding(spark: SparkSession, damaged: Path) -> None:
    from remote.scrub.budget import RequestBudget
    from remote.scrub.scrub import walk
    from remote.scrub.settings import ScrubSettings
    from remote.store.open import open_store
    from spark_jobs.jobs.scrub import SparkScrub

    budget = RequestBudget(open_store(str(damaged)))
    steps = list(walk(budget, ScrubSettings(deep=True), 0))
    gone = segments(damaged, "g-big", "aux")[0]
    gone.unlink()
    [finding] = SparkScrub(str(damaged), None, budget).findings(steps)
    assert (finding.kind, finding.key) == ("bad_index", str(gone.relative_to(damaged)))


@pytest.mark.parametrize("options", [("--seed", 1), ("--sample", 2), ("--requests-max", 0)])
def test_options_that_make_no_sense_are_refused(job: Job, finer: Path, options: tuple[object, ...]) -> None:
    assert job("--archive", finer, *options).exit_code == 2


def test_an_archive_that_is_not_there_is_not_found(job: Job, tmp_path: Path) -> None:
    assert job("--archive", tmp_path / "nothing").exit_code == 4
