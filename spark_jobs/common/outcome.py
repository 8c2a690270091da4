"""How the jobs end: what the tasks gave, the worst of their errors, and an exit code that says what to do."""

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

import click

from local_log.errors import Corrupt, LogError
from spark_jobs.common.attempts import Failed
from spark_jobs.errors import OptionError
from tiering.command.exit_codes import exit_code_of
from tiering.command.output import say

R = TypeVar("R")


def collect_outcomes(outcomes: "Iterable[R | Failed]") -> tuple[list[R], Exception | None]:
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
        worst.add_note(f"{len(errors)} of {len(errors) + len(done)} parts failed")
    return done, worst


def say_errors(job: str, errors: Iterable[Exception]) -> None:
    """Says each error once, with the number of parts that had it: all parts of an executor may have the same one."""
    for text, parts in Counter(map(str, errors)).items():
        say(f"{job}: {text}{f' ({parts} partitions)' if parts > 1 else ''}")


def ending(job: str, run: Callable[[], None]) -> None:
    """Runs a job's command: errors of ours become a message on standard error and the exit codes of `tiering`."""
    try:
        run()
    except OptionError as e:
        raise click.UsageError(str(e)) from e
    except BrokenPipeError:
        raise
    except (LogError, OSError) as e:
        say(f"{job}: {'; '.join([str(e), *getattr(e, '__notes__', ())])}")
        sys.exit(exit_code_of(e))
