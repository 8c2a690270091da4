"""The exit codes of every command, and which of them an error is.

0 done    1 failure    2 usage    3 partly done    4 not found    5 retry later    6 corruption    130 interrupted
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import wraps
from typing import ParamSpec

from tiering.command.interrupt import interruptible
from tiering.command.output import say

P = ParamSpec("P")


class Exit(IntEnum):
    """What a command ends with; EXIT_MEANS says what each tells a script."""

    done = 0
    failure = 1
    usage = 2
    partly = 3
    not_found = 4
    retry = 5
    corruption = 6
    interrupted = 130


EXIT_MEANS: Mapping[Exit, str] = {
    Exit.done: "Done.",
    Exit.failure: "Failure; see the message.",
    Exit.usage: "The command line or the configuration is invalid; the message says how to correct it.",
    Exit.partly: "Partial success; the parts that failed are reported.",
    Exit.not_found: "Not found.",
    Exit.retry: "The store did not respond, or another process was faster: run it again later.",
    Exit.corruption: "Corruption; the damaged objects or files are reported.",
    Exit.interrupted: "Interrupted by Ctrl-C; the same command goes on from there, or starts again.",
}
"""What each tells a script."""


def exit_code_of(error: Exception) -> Exit:
    """The exit code that tells a script what to do about an error of ours."""
    from local_log.engine.errors import CorruptMessage
    from local_log.errors import BadAddress, Conflict, Corrupt, NotFound, Unavailable, Unknown

    if isinstance(error, BadAddress):
        return Exit.usage
    if isinstance(error, Corrupt | CorruptMessage):
        return Exit.corruption
    if isinstance(error, NotFound):
        return Exit.not_found
    if isinstance(error, Unavailable | Unknown | Conflict):
        return Exit.retry
    return Exit.failure


def exit_code_of_all(errors: Sequence[Exception], *, partly: bool) -> Exit | None:
    """The exit code of work that went on past its errors: corruption before all else; `partly` is whether some was done."""
    if any(exit_code_of(e) is Exit.corruption for e in errors):
        return Exit.corruption
    if errors and partly:
        return Exit.partly
    return exit_code_of(errors[0]) if errors else None


def reports_errors(command: Callable[P, Exit | None]) -> Callable[P, None]:
    """Makes the errors of both tiers a message on standard error and an exit code; all others are bugs and stay as they are."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        from local_log.errors import LogError, of_system
        from tiering.command.silence import telling_of_silence  # Airflow loads this module with each DAG

        try:
            with interruptible(), telling_of_silence():
                code = command(*args, **kwargs) or Exit.done
        except BrokenPipeError:
            raise
        except KeyboardInterrupt:
            code = Exit.interrupted
        except (LogError, OSError) as e:
            say(f"tiering: {of_system(e.filename or 'the operating system', e) if isinstance(e, OSError) else e}")
            code = exit_code_of(e)
        sys.exit(code)

    return run
