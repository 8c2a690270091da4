"""A real agent whose store dies: what an operator sees of it, by metrics, alerts and `tiering status`."""

import os
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import boto3
import pytest
from agents_at_work import command, running
from click.testing import Result
from golden_logs import broker_logs
from logs_to_archive import local_logs
from promtool import PROMTOOL, assert_fire, scraped
from s3_servers import serving

Run = Callable[..., Result]
ONE = "g-codec-lz4-0"


def roll(logs: Path) -> None:
    """The broker rolls: the active segment is inactive from now on."""
    end = local_logs(logs)[ONE].log_end_offset
    for suffix in (".log", ".index", ".timeindex"):
        (logs / ONE / f"{end:020d}{suffix}").touch()


def line_of(told: str, name: str) -> str:
    return next(line for line in told.splitlines() if line.startswith(name))


@pytest.fixture
def s3(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server that is closed by the stack's end, and its bucket's URL."""
    with ExitStack() as stack:
        url = stack.enter_context(serving())
        for name, value in {
            "AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
        }.items():  # fmt: skip
            monkeypatch.setenv(name, value)
        boto3.session.Session().client("s3").create_bucket(Bucket="dies")
        yield stack.pop_all()


def test_within_half_a_minute_of_its_stores_death_an_agent_of_one_busy_partition_tells_it(
    s3: ExitStack, run: Run, tmp_path: Path
) -> None:
    logs, archive = broker_logs(tmp_path / "logs", ONE) if (tmp_path / "logs").mkdir() is None else tmp_path, "s3://dies/archive"
    given = ["status", *command(logs, archive, tmp_path / "state")[4:]]
    with running(logs, archive, tmp_path / "state") as agent:
        before = agent.until("it is archived", lambda s: s["partitions"] and s["partitions"][0]["archived_segments"])
        assert (before["store_failing_since_ms"], before["lag_segments"]) == (None, 0)
        s3.close()
        died_s = time.monotonic()
        roll(logs)
        after = agent.until("the store fails", lambda s: s["store_failing_since_ms"])
        assert time.monotonic() - died_s < 30
        assert (after["state"], after["lag_segments"]) == ("failing", 1)
        assert after["unprotected_records"] >= before["unprotected_records"]
        told = run(*given)
        assert told.exit_code == 3
        assert "does not respond since 20" in line_of(told.stdout, "store")
        with urllib.request.urlopen(f"http://{agent.address}/metrics") as answer:
            series = scraped(answer.read().decode(), after["now_ms"] / 1000, 60)
        if PROMTOOL is not None:
            assert_fire(tmp_path, series, 60, {"KafkaTieringStoreFailing": [{"job": "kafka-tiering", "instance": "one"}]})
        agent.process.kill()
    started_s = time.monotonic()
    told = run(*given)
    assert time.monotonic() - started_s < 30
    assert (told.exit_code, line_of(told.stdout, "agent").split(None, 1)[1]) == (3, "no agent")
    assert "does not respond since 20" in line_of(told.stdout, "store")
    assert line_of(told.stdout, "lag").startswith("lag          1 segment,"), "by what the agent has left behind"


def test_an_agent_that_starts_while_its_store_is_dead_tells_it_and_works_when_it_answers(s3: ExitStack, tmp_path: Path) -> None:
    logs = broker_logs(tmp_path / "logs", ONE) if (tmp_path / "logs").mkdir() is None else tmp_path
    s3.close()
    with running(logs, "s3://dies/later", tmp_path / "state") as agent:
        told = agent.until("it has looked", lambda s: s["store_failing_since_ms"] and s["partitions"])
        assert (told["state"], told["lag_segments"] > 0) == ("failing", True)
        with serving(port=int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2])):
            done = agent.until("it is archived", lambda s: s["partitions"][0]["archived_segments"] and not s["lag_segments"])
            assert done["store_failing_since_ms"] is None
