"""A slice of the simulation at each run of the tests; `make simulate` runs as many schedules as a night has time for."""

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from simulated.mutants import MUTANTS

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
ENVIRONMENT = {**os.environ, "PYTHONHASHSEED": "0"}
SEEDS = 300
FAILED: tuple[int, ...] = (
    460, 213008, 401866, 402092, 610500, 660536, 700218, 6010157, 6012376, 8001705, 8020187, 8023062, 8108045, 8200804,
    8202490, 8300488, 8302570, 8410882, 9008363, 100063, 100525, 101785, 101829, 101923, 101985, 302646, 1300931,
    1463, 1500283, 1601229, 1700518, 1701201, 1801400, 11000822, 12000198, 13000498, 16001680, 16003395,
    16005200, 17001789, 17007100, 17007894, 19000063, 20008847, 21005907, 120, 32000155,
    24008466, 25001069, 25001705, 25006213, 25007918, 25008889, 26009960, 27002982, 29002674, 54000706,
    251409126,
)  # fmt: skip
"""Seeds that have found a fault in the code, or in the simulation, which was mended since, with what a seed draws now."""


def simulated(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HERE / "simulate.py"), *options]
    return subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, env=ENVIRONMENT, check=False)


def first_seed() -> int:
    """Another one for each commit."""
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True, cwd=REPOSITORY, check=False
    ).stdout.strip()
    return int(head[:7] or "1", 16)


@pytest.mark.slow
@pytest.mark.timeout(900)  # it has two processes, where six workers share two processors
def test_nothing_is_lost_in_schedules_of_this_commit() -> None:
    done = simulated("--seeds", str(SEEDS), "--first", str(first_seed()), "--again", *map(str, FAILED))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{SEEDS + len(FAILED)} schedules: " in done.stdout


@pytest.mark.slow
def test_a_seed_gives_the_same_schedule_again() -> None:
    first, second = simulated("--story", "7"), simulated("--story", "7")
    assert first.stdout == second.stdout
    assert first.stdout.count("\n") > 300


STORIES = """
import sys
from pathlib import Path
sys.path[:0] = [str(Path("tests", folder).resolve()) for folder in ("simulation", "support")]
from simulated.prepared import prepare
prepare()
from simulated.profiles import profile_of
from simulated.schedules import run
serving = [seed for seed in range(1, 1_000) if profile_of(seed).serves][:2]
for seed in serving if sys.argv[1] == "after others" else serving[1:]:
    story = []
    outcome = run(seed, story)
print("\\n".join([*story, *outcome.lines()]))
"""
"""The story of one schedule, in which clients ask an endpoint, in a process that has run another one before or has not."""


@pytest.mark.slow
def test_a_seed_gives_the_same_schedule_after_others() -> None:
    alone, after = (
        subprocess.run(
            [sys.executable, "-c", STORIES, which], capture_output=True, text=True, cwd=REPOSITORY, env=ENVIRONMENT, check=False
        )
        for which in ("alone", "after others")
    )
    assert alone.stdout.splitlines() == after.stdout.splitlines()
    assert "is told" in alone.stdout, alone.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mutant", ["archive-to-the-high-watermark", "flush-without-a-sync"])
def test_a_deliberate_fault_is_found(mutant: str) -> None:
    done = simulated("--seeds", "20", "--mutants", mutant)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "found by seed" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "seed"),
    [
        ("write-to-a-new-topic-that-a-sweep-has-claimed", 71),
        ("delete-below-an-older-version", 125),
        ("rotate-keys-onto-a-later-version", 53),
        ("archive-what-an-earlier-leader-has-below-the-log-start", 1764),
        ("forget-what-waits-below-the-log-start", 112),
        ("forget-a-partition-once-its-loss-is-recorded", 186),
    ],
)
def test_a_fault_that_was_mended_is_found_again_without_its_mend(mutant: str, seed: int) -> None:
    done = simulated("--seeds", "1", "--first", str(seed), "--mutants", mutant)
    assert done.returncode == 0, done.stdout + done.stderr


def test_deliberate_faults_replace_what_is_there() -> None:
    missing = []
    for name, change in MUTANTS.items():
        for node in ast.walk(ast.parse(inspect.getsource(change))):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
                    owner = change.__globals__.get(target.value.id)
                    if owner is not None and not hasattr(owner, target.attr):
                        missing.append(f"{name}: {ast.unparse(target)}")
    assert missing == []
