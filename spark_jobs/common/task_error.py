"""An error of ours that a task raised, out of the text that Spark makes of it: it hands over no Python exception."""

import re
from importlib import import_module

from pyspark.errors import PySparkException

from local_log.errors import LogError
from spark_jobs.errors import OptionError

_OURS = re.compile(r"^((?:local_log|spark_jobs)[\w.]*\.errors)\.(\w+): (.*)$", re.MULTILINE)


def raised_by_task(error: PySparkException) -> Exception:
    """The exception to raise for `error`: the last of our errors in its traceback, else `error` itself."""
    for module, name, message in reversed(_OURS.findall(str(error))):
        kind = getattr(import_module(module), name, None)
        if isinstance(kind, type) and issubclass(kind, LogError | OptionError):
            return _rebuilt(kind, message)
    return error


def _rebuilt(kind: type[Exception], message: str) -> Exception:
    """An error of this kind with a message only; its fields are not sent by the task."""
    of_text = {"__init__": Exception.__init__, "__str__": Exception.__str__}
    made: Exception = type(kind.__name__, (kind,), of_text)(message)
    return made
