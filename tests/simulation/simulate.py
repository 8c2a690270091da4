"""Thousands of ways to fail: `make simulate ARGS="--seeds 10000 --first 1"`; the exit code is 1 if anything does not hold.

python tests/simulation/simulate.py [--seeds 300] [--first 1] [--jobs 2]      so many schedules, and what they found
python tests/simulation/simulate.py --story SEED                              one of them, call by call
python tests/simulation/simulate.py --mutants [--seeds 2000]                  each deliberate fault, until it is found
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

PART = 20
"""Schedules that a process runs before it tells of them."""


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--story", type=int, metavar="SEED")
    parser.add_argument("--mutants", action="store_true")
    parser.add_argument("--mutant", help="break this")
    asked = parser.parse_args(given)
    if asked.story is not None:
        return told(asked.story, asked.mutant)
    if asked.mutants:
        return all_mutants(asked.first, asked.seeds, asked.jobs)
    return searched(asked.first, asked.seeds, asked.jobs, asked.mutant)


def told(seed: int, mutant: str | None) -> int:
    """Prints what happens in one schedule."""
    _prepared(mutant)
    from simulated.schedules import run

    story: list[str] = []
    outcome = run(seed, story)
    print("\n".join([*story, *outcome.lines()]))
    return bool(outcome.found)


def searched(first: int, seeds: int, jobs: int, mutant: str | None) -> int:
    """Runs the schedules, and prints each that finds something, with the command that shows it."""
    from simulated.schedules import Outcome

    begun, outcome = time.monotonic(), Outcome()
    for part in _outcomes(first, seeds, jobs, mutant):
        outcome.add(part)
        for seed, what in part.found.items():
            print(f"seed {seed}: {what}\n    python tests/simulation/simulate.py --story {seed}", flush=True)
    print("\n".join(outcome.lines()))
    print(f"{time.monotonic() - begun:.0f} s")
    return bool(outcome.found)


def all_mutants(first: int, seeds: int, jobs: int) -> int:
    """Prints after how many schedules each mutant is found."""
    _prepared(None)
    from simulated.mutants import MUTANTS

    survived = []
    for name in MUTANTS:
        begun, count, found = time.monotonic(), 0, {}
        outcomes = _outcomes(first, seeds, jobs, name)
        while not found and (part := next(outcomes, None)) is not None:
            count += part.schedules
            found = part.found
        outcomes.close()
        what = next((f"found by seed {seed}: {what}" for seed, what in sorted(found.items())), "NOT FOUND")
        print(f"{name}: {count} schedules, {time.monotonic() - begun:.0f} s, {what[:150]}", flush=True)
        survived += [] if found else [name]
    return bool(survived)


def _outcomes(first: int, seeds: int, jobs: int, mutant: str | None) -> Iterator[Any]:
    with ProcessPoolExecutor(jobs, initializer=partial(_prepared, mutant)) as pool:
        parts = [pool.submit(_part, part) for part in batched_seeds(first, seeds)]
        try:
            for part in parts:
                yield part.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def batched_seeds(first: int, seeds: int) -> Iterator[range]:
    """The seeds, some at a time."""
    for start in range(first, first + seeds, PART):
        yield range(start, min(start + PART, first + seeds))


def _prepared(mutant: str | None) -> None:
    from simulated.prepared import prepare

    prepare()
    if mutant is not None:
        from simulated.mutants import MUTANTS

        MUTANTS[mutant]()


def _part(seeds: range) -> Any:
    from simulated.schedules import Outcome, run

    outcome = Outcome()
    for seed in seeds:
        outcome.add(run(seed))
    return outcome


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of texts are in another order in each process
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
