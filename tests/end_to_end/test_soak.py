"""The soak as a test, for as many minutes as SOAK_MINUTES says; without it nothing is run."""

import os
from pathlib import Path

import pytest
import real_kafka
import soak_history
import soak_own
import strict_s3
from soak_agent import soak

MINUTES = float(os.environ.get("SOAK_MINUTES", "0"))


@pytest.mark.oracle
@pytest.mark.timeout(MINUTES * 60 + 600)
@pytest.mark.skipif(not MINUTES, reason="a soak takes its time: say by SOAK_MINUTES how much")
@pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here")
def test_nothing_is_lost_and_the_lag_is_bounded_whatever_is_killed(tmp_path: Path) -> None:
    kill_every_s = min(60.0, MINUTES * 60 / 4)
    report = soak(tmp_path, MINUTES, kill_every_s, rate=1_000_000, limit=4_000_000)
    assert report["wrong"] == []
    assert report["kills"] >= 2
    assert report["archived_segments"] > 20 * MINUTES
    assert report["lag_s_most"] < 60
    for life in report["memory_mib_by_life"]:
        assert life["most"] < 600


@pytest.mark.oracle
@pytest.mark.strict_s3
@pytest.mark.timeout(MINUTES * 60 + 1_200)
@pytest.mark.skipif(not MINUTES, reason="a soak takes its time: say by SOAK_MINUTES how much")
@pytest.mark.skipif(real_kafka.maven() is None or not strict_s3.available(), reason="a broker and an S3 server are needed")
def test_what_a_process_acknowledged_is_read_back_from_both_tiers_however_often_it_is_killed(tmp_path: Path) -> None:
    report = soak_own.soak(tmp_path, MINUTES, kills=9, rate=10_000_000)
    assert report["wrong"] == []
    assert report["counts"]["archived"] > 20 * MINUTES
    assert report["counts"]["dropped"] > 20 * MINUTES
    assert report["counts"]["compared archived"] > 100
    assert report["local_mb"]["median"] < 80


@pytest.mark.timeout(MINUTES * 60 + 1_200)
@pytest.mark.skipif(not MINUTES, reason="a soak takes its time: say by SOAK_MINUTES how much")
def test_clients_of_an_endpoint_are_told_nothing_that_no_broker_may_say(tmp_path: Path) -> None:
    report = soak_history.soak(tmp_path, MINUTES, round_s=60, seed=1)
    assert report["wrong"] == []
    assert report["operations"] > 1_000 * report["rounds"]
