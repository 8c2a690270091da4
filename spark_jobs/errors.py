"""What the data source refuses, for the source, the sink and the jobs; and an error of ours out of one of Spark's."""

import re
from importlib import import_module
from typing import Final

from local_log.errors import LogError


class OptionError(ValueError):
    """An option that is unknown, missing or makes no sense; the message names it and says what would do."""


_OURS: Final = re.compile(
    r"^(?:\[PYTHON_\w+\] [^\n]*?: )??((?:local_log|remote|spark_jobs)(?:\.\w+)+)\.([A-Z]\w*): (.*)$", re.MULTILINE
)
"""In a traceback, as a message of its own, or behind the condition that Spark names."""
_STATE: Final = re.compile(r" SQLSTATE: \w+$")
"""What Spark adds to messages."""


def error_of(error: Exception) -> Exception:
    """The error of ours that Spark tells in its own words: the last one that it names; `error` itself where it names none.

    Spark sends no exception of Python's from its processes, only text: fields of the error are not set.
    """
    for module, name, message in reversed(_OURS.findall(str(error))):
        try:
            kind = getattr(import_module(module), name, None)
        except ImportError:  # a text that only looks like one of ours
            continue
        if isinstance(kind, type) and issubclass(kind, LogError | OptionError):
            return _rebuilt(kind, _STATE.sub("", message))
    return error


def _rebuilt(kind: type[Exception], message: str) -> Exception:
    """An error of this kind with a message only."""
    of_text = {"__init__": Exception.__init__, "__str__": Exception.__str__}
    made: Exception = type(kind.__name__, (kind,), of_text)(message)
    return made
