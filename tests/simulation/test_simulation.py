"""A slice of the simulation at each run of the tests; `make simulate` runs as many schedules as a night has time for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
SEEDS = 100
FAILED: tuple[int, ...] = ()
"""Seeds that have found a fault in the code which was mended since."""


def simulated(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "simulate.py"), *options]
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=environment, check=False)


def first_seed() -> int:
    """Another one for each commit."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=REPOSITORY, check=False
    ).stdout.strip()
    return int(head[:7] or "1", 16)


@pytest.mark.slow
def test_nothing_is_lost_in_schedules_of_this_commit() -> None:
    done = simulated("--seeds", str(SEEDS), "--first", str(first_seed()), "--again", *map(str, FAILED))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SEEDS + len(FAILED)} schedules: " in done.stdout


@pytest.mark.slow
def test_a_seed_gives_the_same_schedule_again() -> None:
    first, second = simulated("--story", "7"), simulated("--story", "7")
    assert first.stdout == second.stdout
    assert first.stdout.count("\n") > 300


@pytest.mark.slow
def test_a_deliberate_fault_in_the_archive_is_found() -> None:
    done = simulated("--seeds", "40", "--mutants", "archive-to-the-high-watermark")
    assert done.returncode == 0
    assert "found by seed" in done.stdout


@pytest.mark.slow
def test_a_deliberate_fault_in_a_log_is_found_and_told_in_few_steps() -> None:
    done = simulated("--seeds", "40", "--mutants", "acknowledge-before-the-sync")
    seed = done.stdout.partition("found by seed ")[2].partition(":")[0]
    short = simulated("--shrink", seed, "--mutant", "acknowledge-before-the-sync")
    assert short.returncode == 1
    assert "loses its power" in short.stdout
    assert short.stdout.count("\n") < 60, short.stdout
