"""Every job on an archive in a bucket whose segments are compressed and encrypted: the same answers as in the clear.

Executors open the keys by their address; the keys themselves stand in no plan, no log and no report.
"""

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from click.testing import CliRunner, Result
from golden_logs import broker_logs
from job_processes import ROOT, SECONDS_MAX, environment
from key_files import write_keys
from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

from remote import archive as archives
from remote.store.open import open_store
from spark_jobs.java import java_home
from spark_jobs.jobs import backfill, reprocess, scrub, search, stats
from tiering.command.exit_codes import Exit

pytestmark = pytest.mark.spark

Expected = Callable[..., list[dict[str, Any]]]

SECRET = bytes(range(100, 132))
TOPIC = ("--topic", "g-txn")
NEEDED = "key 'k1' is needed: no keys are given; give keys that have it"


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A key file."""
    return str(write_keys(tmp_path_factory.mktemp("keys") / "keys.json", "k1", k1=SECRET))


@pytest.fixture(scope="module")
def urls(s3_client: Any, keys: str, tiering: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """Archives of g-txn in a bucket: one in the clear, one compressed and encrypted."""
    s3_client.create_bucket(Bucket="encrypted-jobs")
    logs = broker_logs(tmp_path_factory.mktemp("logs"), "g-txn-0")
    clear, hidden = "s3://encrypted-jobs/clear", "s3://encrypted-jobs/hidden"
    tiering("offload", "--log-dir", logs, "--archive", clear)
    tiering("offload", "--log-dir", logs, "--archive", hidden, "--encrypt", "--keys", keys, "--compress", "zstd")
    return clear, hidden


@pytest.fixture
def run(spark: SparkSession, urls: tuple[str, str], keys: str) -> Callable[..., tuple[Result, Result, Result]]:
    """`run(job, ARGS…)`: the job on the archive in the clear, on the encrypted one, and on that without keys.

    {} in an argument stands for a word of each run's own.
    """

    def runs(job: Any, *args: object) -> tuple[Result, Result, Result]:
        clear, hidden = urls
        given = {"clear": (clear,), "hidden": (hidden, "--keys", keys), "keyless": (hidden,)}
        made = [CliRunner().invoke(job.main, ["--archive", *to, *(str(a).format(n) for a in args)]) for n, to in given.items()]
        for result in made:
            assert base64.b64encode(SECRET).decode() not in result.output
        one, two, three = made
        return one, two, three

    return runs


def offsets(folder: Path) -> list[int]:
    found = ds.dataset(folder, partitioning="hive", exclude_invalid_files=False).to_table(["offset"])
    return sorted(found.column("offset").to_pylist())


def test_a_scrub_finds_both_sound_and_says_what_it_could_not_read(run: Callable[..., tuple[Result, ...]]) -> None:
    clear, hidden, keyless = run(scrub, "--output", "jsonl")
    assert (clear.exit_code, clear.stdout) == (Exit.done, "")
    assert (hidden.exit_code, hidden.stdout) == (Exit.done, "")
    assert keyless.exit_code == Exit.partly
    assert NEEDED in keyless.output


def test_a_scrub_finds_damage_below_the_encryption(
    spark: SparkSession, s3_client: Any, s3_bucket: str, keys: str, urls: tuple[str, str]
) -> None:
    for item in s3_client.list_objects_v2(Bucket="encrypted-jobs", Prefix="hidden/")["Contents"]:
        s3_client.copy({"Bucket": "encrypted-jobs", "Key": item["Key"]}, s3_bucket, item["Key"])
    keys_of = [item["Key"] for item in s3_client.list_objects_v2(Bucket=s3_bucket)["Contents"]]
    log = next(key for key in keys_of if key.endswith(".log"))
    body = bytearray(s3_client.get_object(Bucket=s3_bucket, Key=log)["Body"].read())
    body[len(body) // 2] ^= 1
    s3_client.put_object(Bucket=s3_bucket, Key=log, Body=bytes(body))
    found = CliRunner().invoke(scrub.main, ["--archive", f"s3://{s3_bucket}/hidden", "--keys", keys, "--output", "jsonl"])
    assert found.exit_code == Exit.corruption
    assert log.removeprefix("hidden/") in found.stdout


def test_stats_count_the_same(run: Callable[..., tuple[Result, ...]]) -> None:
    clear, hidden, keyless = run(stats, *TOPIC, "--output", "jsonl")
    assert (clear.exit_code, hidden.exit_code) == (0, 0), hidden.output
    assert json.loads(clear.stdout.splitlines()[0])["records"] > 0
    assert clear.stdout == hidden.stdout
    assert keyless.exit_code == 1
    assert NEEDED in keyless.output


def test_a_search_finds_the_same(run: Callable[..., tuple[Result, ...]]) -> None:
    clear, hidden, keyless = run(search, *TOPIC, "--value", "", "--limit", "5", "--output", "json")
    assert (clear.exit_code, hidden.exit_code) == (0, 0), hidden.output
    assert len(json.loads(clear.stdout)) == 5
    assert clear.stdout == hidden.stdout
    assert keyless.exit_code == 1
    assert NEEDED in keyless.output


@pytest.mark.parametrize(("job", "to"), [(backfill, "--to"), (reprocess, "--to-parquet")])
def test_the_same_rows_become_parquet(
    run: Callable[..., tuple[Result, ...]], expected: Expected, tmp_path: Path, job: Any, to: str
) -> None:
    clear, hidden, keyless = run(job, *TOPIC, to, tmp_path / "{}")
    assert (clear.exit_code, hidden.exit_code) == (0, 0), hidden.output
    assert offsets(tmp_path / "clear") == offsets(tmp_path / "hidden")
    assert offsets(tmp_path / "hidden") == [row["offset"] for row in expected("g-txn")]
    assert keyless.exit_code == 1
    assert NEEDED in keyless.output
    assert not [*(tmp_path / "keyless").rglob("[!_]*.parquet")] or offsets(tmp_path / "keyless") == []


def test_a_reprocessed_topic_is_encrypted_with_the_keys_of_its_own_archive(
    spark: SparkSession, urls: tuple[str, str], keys: str, expected: Expected, tmp_path: Path, s3_bucket: str
) -> None:
    others = write_keys(tmp_path / "others.json", "k2", k2=bytes(32))
    to = f"s3://{s3_bucket}/made"
    args = [
        "--archive",
        urls[1],
        "--keys",
        keys,
        *TOPIC,
        "--to-archive",
        to,
        "--to-topic",
        "again",
        "--to-option",
        f"keys={others}",
    ]
    done = CliRunner().invoke(reprocess.main, args)
    assert done.exit_code == 0, done.output
    assert {e.is_encrypted for m in archives.manifests(open_store(to), "again") for e in m.entries} == {True}
    read = spark.read.format("tiering").options(archive=to, subscribe="again", keys=str(others)).load()
    assert read.count() == len(expected("g-txn")) == json.loads(done.stdout)["rows"]


def test_neither_the_plan_nor_a_log_of_spark_has_the_keys(urls: tuple[str, str], keys: str, tmp_path: Path) -> None:
    """With Spark's log at INFO and its event log, which keeps every plan; keys by the environment, as a scheduler gives them."""
    (tmp_path / "events").mkdir()
    conf = {
        "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1", "spark.ui.enabled": "false",
        "spark.log.level": "INFO", "spark.eventLog.enabled": "true", "spark.eventLog.compress": "false",
        "spark.eventLog.dir": (tmp_path / "events").as_uri(),
        "spark.sql.planChangeLog.level": "INFO",
    }  # fmt: skip
    submit = [str(Path(_find_spark_home()) / "bin" / "spark-submit"), "--master", "local[2]"]
    submit += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    submit += [str(ROOT / "spark_jobs" / "jobs" / "reprocess.py"), "--archive", urls[1], "--keys", "env://KEYS_OF_TESTS", *TOPIC]
    submit += ["--sql", "SELECT * FROM records WHERE offset >= 0", "--to-parquet", str(tmp_path / "to")]
    env = environment(JAVA_HOME=java_home(), PYSPARK_DRIVER_PYTHON=sys.executable)
    env["KEYS_OF_TESTS"] = Path(keys).read_text()
    ran = subprocess.run(submit, env=env, capture_output=True, text=True, timeout=SECONDS_MAX)
    assert ran.returncode == 0, ran.stderr
    events = "".join(file.read_text() for file in (tmp_path / "events").rglob("*") if file.is_file())
    assert "env://KEYS_OF_TESTS" in events + ran.stderr  # only where the keys are
    assert "SparkListenerSQLExecutionStart" in events
    assert len(offsets(tmp_path / "to")) > 0
    for told in (events, ran.stderr, ran.stdout):
        assert base64.b64encode(SECRET).decode() not in told
        assert SECRET.hex() not in told
        assert os.path.basename(keys) not in told
