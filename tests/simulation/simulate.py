"""Thousands of ways to fail: `make simulate ARGS="--seeds 10000 --first 1"`; the exit code is 1 if anything does not hold.

python tests/simulation/simulate.py [--seeds 300] [--first 1] [--jobs 2]      so many schedules, and what they found
python tests/simulation/simulate.py --story SEED                              one of them, call by call
python tests/simulation/simulate.py --shrink SEED                             what is needed of one that fails, call by call
python tests/simulation/simulate.py --mutants [--seeds 2000]                  each deliberate fault, until it is found
python tests/simulation/simulate.py --coverage [--seeds 20]                   which lines of the code so many schedules reach
"""

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "support")]

PART = 20
"""Schedules that a process runs before it tells of them; a quarter of them where one that finds something is the last."""


def main(given: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=300)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--again", type=int, nargs="*", default=(), metavar="SEED", help="run these, too")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--story", type=int, metavar="SEED")
    parser.add_argument("--shrink", type=int, metavar="SEED")
    parser.add_argument("--mutants", nargs="*", metavar="NAME", help="these, or all of them")
    parser.add_argument("--mutant", help="break this")
    parser.add_argument("--coverage", action="store_true")
    asked = parser.parse_args(given)
    seeds = [*range(asked.first, asked.first + asked.seeds), *asked.again]
    if asked.story is not None:
        return told(asked.story, asked.mutant)
    if asked.shrink is not None:
        return shortest(asked.shrink, asked.mutant)
    if asked.coverage:
        return covered(asked.first, asked.seeds)
    if asked.mutants is not None:
        return all_mutants(asked.mutants, seeds, asked.jobs)
    return searched(seeds, asked.jobs, asked.mutant)


def told(seed: int, mutant: str | None) -> int:
    """Prints what happens in one schedule."""
    _prepared(mutant)
    from simulated.schedules import run

    story: list[str] = []
    outcome = run(seed, story)
    print("\n".join([*story, *outcome.lines()]))
    return bool(outcome.found)


def shortest(seed: int, mutant: str | None) -> int:
    """Prints what happens in the shortest part of a schedule that fails as all of it does."""
    _prepared(mutant)
    from simulated.schedules import run
    from simulated.shrinking import shrunk

    found = shrunk(seed)
    if found is None:
        print(f"seed {seed} does not fail")
        return 0
    events, outcome = found
    story: list[str] = []
    run(seed, story, events)
    print("\n".join([*story, f"{len(events)} events; seed {seed}: {outcome.found[seed]}"]))
    return 1


def searched(seeds: Sequence[int], jobs: int, mutant: str | None) -> int:
    """Runs the schedules, and prints each that finds something, with the command that shows it."""
    from simulated.schedules import Outcome

    begun, outcome = time.monotonic(), Outcome()
    for part in _outcomes(seeds, jobs, mutant):
        outcome.add(part)
        for seed, what in part.found.items():
            broken = f" --mutant {mutant}" if mutant else ""
            print(f"seed {seed}: {what}\n    python tests/simulation/simulate.py --shrink {seed}{broken}", flush=True)
    print("\n".join(outcome.lines()))
    print(f"{time.monotonic() - begun:.0f} s")
    return bool(outcome.found)


def all_mutants(names: Sequence[str], seeds: Sequence[int], jobs: int) -> int:
    """Prints after how many schedules each mutant is found; one that finds something in the code as it is does not count."""
    _prepared(None)
    from simulated.mutants import MUTANTS
    from simulated.schedules import run

    survived = []
    for name in names or MUTANTS:
        begun, count, found = time.monotonic(), 0, {}
        outcomes = _outcomes(seeds, jobs, name, until_found=True)
        while not found and (part := next(outcomes, None)) is not None:
            count += part.schedules
            found = {seed: what for seed, what in part.found.items() if not run(seed).found}
        outcomes.close()
        what = next((f"found by seed {seed}: {what}" for seed, what in sorted(found.items())), "NOT FOUND")
        print(f"{name}: {count} schedules, {time.monotonic() - begun:.0f} s, {what[:150]}", flush=True)
        survived += [] if found else [name]
    return bool(survived)


def covered(first: int, seeds: int) -> int:
    """Prints which lines of the archive's code, the service's and the storage engine's schedules reach."""
    _prepared(None)
    from simulated.coverage import reached, told
    from simulated.schedules import run

    folders = tuple(HERE.parent.parent / name for name in ("remote", "tiering", "local_log/engine"))
    with reached(folders) as found:
        for seed in range(first, first + seeds):
            run(seed)
    print("\n".join(told(found, folders)))
    return 0


def _outcomes(seeds: Sequence[int], jobs: int, mutant: str | None, *, until_found: bool = False) -> Iterator[Any]:
    with ProcessPoolExecutor(jobs, initializer=partial(_prepared, mutant)) as pool:
        size = PART // 4 if until_found else PART
        parts = [pool.submit(_part, seeds[at : at + size], until_found=until_found) for at in range(0, len(seeds), size)]
        try:
            for part in parts:
                yield part.result()
        finally:
            pool.shutdown(wait=not until_found, cancel_futures=True)
            for process in active_children() if until_found else ():
                process.terminate()


def _prepared(mutant: str | None) -> None:
    from simulated.prepared import prepare

    prepare()
    if mutant is not None:
        from simulated.mutants import MUTANTS

        MUTANTS[mutant]()


def _part(seeds: Sequence[int], *, until_found: bool) -> Any:
    from simulated.schedules import Outcome, run

    outcome = Outcome()
    for seed in seeds:
        outcome.add(run(seed))
        if until_found and outcome.found:
            break
    return outcome


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of texts are in another order in each process
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
