"""The job offload: for a log directory the archive, the exit codes and the messages of `tiering offload`."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from gap_filled import removed_disk, whole_log
from golden_logs import broker_logs, partitions
from logs_to_archive import drop_segments_below, due, set_checkpoint
from offloaded import assert_holds_exactly, contents
from pyspark.sql import SparkSession

from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from remote import archive as archives
from remote.store.open import open_store
from spark_jobs.common.mounted import SharedLogDir
from spark_jobs.jobs import offload as job_module
from spark_jobs.jobs.offload import main
from tiering.cli import main as tiering_main

pytestmark = pytest.mark.spark

Job = Callable[..., Result]


@pytest.fixture
def job(spark: SparkSession, tmp_path: Path) -> Job:
    """`job(ARGS…)` on the session of the tests, with a state folder of the test's own."""
    state = ["--state-dir", str(tmp_path / "state")]
    return lambda *args: CliRunner().invoke(main, [*map(str, args), *state], catch_exceptions=False)


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    (tmp_path / "logs").mkdir()
    return broker_logs(tmp_path / "logs")


def rows(result: Result) -> list[dict[str, object]]:
    assert "Traceback" not in result.stderr
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def by_action(result: Result) -> Counter[str]:
    """How many segments came to what."""
    counted: Counter[str] = Counter()
    for row in rows(result):
        counted[str(row["action"])] += int(str(row["segments"]))
    return counted


def of_command(*args: object) -> Counter[str]:
    """The same of `tiering offload`, which has a row a segment."""
    done = CliRunner().invoke(tiering_main, ["offload", *map(str, args), "--output", "json"], catch_exceptions=False)
    return Counter(row["action"] for row in json.loads(done.stdout))


def test_the_job_archives_what_the_command_archives_byte_for_byte(job: Job, logs: Path, s3_bucket: str) -> None:
    url = f"s3://{s3_bucket}/archive"
    args = ("--log-dir", logs, "--archive", url, "--output", "json")
    planned = job(*args, "--dry-run")
    assert planned.exit_code == 0
    assert contents(open_store(url)) == {}
    foretold = of_command("--log-dir", logs, "--archive", url, "--dry-run")
    assert by_action(planned) == foretold
    done = job(*args)
    assert done.exit_code == 0, done.stderr
    assert by_action(done) == Counter({"copied" if a == "copy" else a: n for a, n in foretold.items()})
    sizes = {(r["topic"], r["bytes"]) for r in rows(done) if r["action"] == "copied"}
    assert sizes == {(r["topic"], r["bytes"]) for r in rows(planned) if r["action"] == "copy"}
    assert_holds_exactly(open_store(url), logs, partitions())
    assert f"tiering: created a new archive, {url}" in done.stderr
    before = contents(open_store(url))
    again = job(*args, "--must-exist", "--bytes-per-second", 10_000_000)
    assert (again.exit_code, by_action(again)["copied"]) == (0, 0)
    assert contents(open_store(url)) == before


def test_a_damaged_partition_is_refused_and_the_others_are_archived(job: Job, logs: Path, tmp_path: Path) -> None:
    file = logs / "g-txn-0" / f"{102:020d}.log"
    body = bytearray(file.read_bytes())
    body[5_000] ^= 1
    file.write_bytes(body)
    done = job("--log-dir", logs, "--archive", tmp_path / "archive", "--topic", "g-t*")
    assert done.exit_code == 6
    assert f"offload: {file} at byte " in done.stderr
    assert "offload: segments: 3 copied, 3 keep, 1 refused; " in done.stderr
    assert "3 partitions, " in done.stderr
    (manifest,) = archives.newest_manifests(open_store(str(tmp_path / "archive")), "g-trimmed")
    assert [(e.base_offset, e.end_offset) for e in manifest.entries][-1] == due(logs, "g-trimmed-0")[-1]


def test_what_a_broker_deleted_too_early_is_told_once(job: Job, logs: Path, tmp_path: Path) -> None:
    args = ("--log-dir", logs, "--archive", tmp_path / "archive", "--output", "json")
    set_checkpoint(logs / HIGH_WATERMARK_CHECKPOINT, "g-txn-0", 110)
    assert job(*args).exit_code == 0
    drop_segments_below(logs, "g-txn-0", 2_683)
    shutil.rmtree(logs / "g-tiny-0")  # of which nothing is archived
    told = job(*args)
    assert told.exit_code == 3
    assert [r["topic"] for r in rows(told) if r["action"] == "lost"] == ["g-tiny", "g-txn"]
    assert "offload: g-txn-0: offsets [102, 2683) are lost" in told.stderr
    assert "offload: g-tiny-0: offsets [0, " in told.stderr
    assert (job(*args).exit_code, by_action(job(*args))["lost"]) == (0, 0)


def test_a_log_that_is_gone_after_a_driver_that_was_killed_is_lost(
    job: Job, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    args = ("--log-dir", logs, "--archive", tmp_path / "archive", "--output", "json")

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(job_module.Executors, "run", killed)
        assert job(*args).exit_code != 0
    shutil.rmtree(logs / "g-tiny-0")
    told = job(*args)
    assert (told.exit_code, [r["topic"] for r in rows(told) if r["action"] == "lost"]) == (3, ["g-tiny"])


def test_a_log_directory_that_is_another_one_since_the_job_began_is_refused(
    job: Job, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = tmp_path / "archive"
    looked = job_module.refuse_a_shared_folder

    def then_unmounted(*given: Any) -> None:
        looked(*given)
        (logs / "meta.properties").unlink()

    monkeypatch.setattr(job_module, "refuse_a_shared_folder", then_unmounted)
    refused = job("--log-dir", logs, "--archive", url)
    assert refused.exit_code != 0
    assert "check whether its disk is mounted" in refused.stderr
    assert [key for key in contents(open_store(str(url))) if "/topics/" in f"/{key}"] == []
    assert not (tmp_path / "state").exists()


def test_executors_that_do_not_see_the_log_directory_are_named_and_nothing_is_concluded(
    job: Job, logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = str(tmp_path / "archive")
    assert job("--log-dir", logs, "--archive", url).exit_code == 0
    before = contents(open_store(url))
    elsewhere = tmp_path / "not-mounted"
    elsewhere.mkdir()
    monkeypatch.setattr(job_module, "SharedLogDir", _At(str(elsewhere)))
    done = job("--log-dir", logs, "--archive", url, "--output", "json")
    assert done.exit_code == 4
    assert {(r["action"], r["segments"]) for r in rows(done)} == {("refused", 0)}
    assert len(rows(done)) == len(partitions())
    (said,) = (line for line in done.stderr.splitlines() if "mount it" in line)
    assert f"{elsewhere} on executor {os.uname().nodename} is not the log directory of the driver" in said
    assert said.endswith(f"({len(partitions())} partitions)")
    assert contents(open_store(url)) == before


class _At:
    """Has executors look at another path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def of(self, source: object, partitions: object) -> SharedLogDir:
        return SharedLogDir(self.path, "the id of the driver's", ())


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--topic", "nothing*"), 4),
        (("--topic-partition", "g-txn-7"), 4),
        (("--encrypt",), 2),
        (("--must-exist",), 4),
        (("--log-dir", "not-there"), 4),
    ],
)
def test_options_that_make_no_sense_are_refused_as_by_the_command(
    job: Job, logs: Path, tmp_path: Path, options: tuple[str, ...], code: int
) -> None:
    assert job("--log-dir", logs, "--archive", tmp_path / "archive", *options).exit_code == code


def test_what_a_configuration_excludes_is_left_alone(job: Job, logs: Path, tmp_path: Path) -> None:
    config = tmp_path / "tiering.toml"
    config.write_text(f'[log]\ndirs = ["{logs}"]\n[topics]\nexclude = ["g-codec-*"]\n[archive]\nurl = "{tmp_path}/archive"\n')
    done = job("--config", config, "--output", "json")
    assert done.exit_code == 0, done.stderr
    assert {str(r["topic"]) for r in rows(done)} == {p[:-2] for p in partitions() if not p.startswith("g-codec")}


def test_a_disk_that_ends_in_a_gap_is_copied_once_the_user_says_that_elections_were_clean(job: Job, tmp_path: Path) -> None:
    url = tmp_path / "archive"
    disk = removed_disk(whole_log(tmp_path / "whole"), tmp_path, lambda folder: job("--log-dir", folder, "--archive", url))
    args = ("--log-dir", disk, "--archive", url, "--output", "json")
    refused = job(*args)
    assert refused.exit_code == 5
    assert "--assume-clean-elections" in refused.stderr
    done = job(*args, "--assume-clean-elections")
    assert done.exit_code == 0, done.stderr
    assert by_action(done)["copied"] > 0
