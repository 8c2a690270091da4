"""How the jobs end: a task's failure comes back as a value, so that the other tasks finish and the exit code says what to do."""

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import click

from local_log.errors import Corrupt, LogError
from remote.errors import RemoteError
from spark_jobs.source.options import OptionError
from tiering.console import exit_code_of, say

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Failed:
    """What became of a task that cannot succeed by being run again."""

    error: Exception


def attempt(task: Callable[[T], R], item: T) -> "R | Failed":
    """Runs on an executor. What the next attempt may mend (a connection, a lost machine) is raised: Spark tries it again."""
    try:
        return task(item)
    except (ConnectionError, TimeoutError):
        raise
    except (LogError, RemoteError, OSError) as error:
        return Failed(error)


def settled(outcomes: "Iterable[R | Failed]") -> tuple[list[R], Exception | None]:
    """What the tasks gave, and the worst error, corruption before all else, with the number of the others."""
    done: list[R] = []
    errors: list[Exception] = []
    for outcome in outcomes:
        if isinstance(outcome, Failed):
            errors.append(outcome.error)
        else:
            done.append(outcome)
    worst = min(errors, key=lambda e: not isinstance(e, Corrupt), default=None)
    if worst is not None and len(errors) > 1:
        worst.add_note(f"{len(errors)} of {len(errors) + len(done)} tasks failed")
    return done, worst


def ending(job: str, run: Callable[[], None]) -> None:
    """Runs a job's command: errors of ours become a message on standard error and the exit codes of `tiering`."""
    try:
        run()
    except OptionError as e:
        raise click.UsageError(str(e)) from e
    except BrokenPipeError:
        raise
    except (LogError, RemoteError, OSError) as e:
        say(f"{job}: {'; '.join([str(e), *getattr(e, '__notes__', ())])}")
        sys.exit(exit_code_of(e))
