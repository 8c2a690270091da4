"""How the jobs end: what the tasks gave, the worst of their errors, and an exit code that says what to do."""

import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

import click

from local_log.errors import Corrupt, LogError
from spark_jobs.common.attempts import Failed
from spark_jobs.errors import OptionError
from tiering.command.exit_codes import Exit, exit_code_of
from tiering.command.interrupt import interruptible
from tiering.command.output import say

R = TypeVar("R")

_LOGGED_BY_PY4J: Final = "KeyboardInterrupt while sending command."


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


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return record.msg != _LOGGED_BY_PY4J


def _interrupted_plainly(run: Callable[[], None]) -> None:
    """Raises KeyboardInterrupt where that is what an error comes from: py4j logs it and closes the way to Java."""
    logging.getLogger().addFilter(_is_not_of_py4j)
    try:
        run()
    except Exception as e:
        found: BaseException | None = e
        while found is not None:
            if isinstance(found, KeyboardInterrupt):
                raise KeyboardInterrupt from e
            found = found.__context__
        raise


def ending(job: str, run: Callable[[], None]) -> None:
    """Runs a job's command: errors of ours become a message on standard error and the exit codes of `tiering`, as Ctrl-C does."""
    try:
        with interruptible():
            _interrupted_plainly(run)
    except KeyboardInterrupt:
        sys.exit(Exit.interrupted)
    except OptionError as e:
        raise click.UsageError(str(e)) from e
    except BrokenPipeError:
        raise
    except (LogError, OSError) as e:
        say(f"{job}: {'; '.join([str(e), *getattr(e, '__notes__', ())])}")
        sys.exit(exit_code_of(e))
