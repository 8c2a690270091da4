"""A task's failure as a value, so that the other tasks finish. Loaded by executors."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from local_log.errors import LogError
from spark_jobs.worker import freeze_loaded_objects

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Failed:
    """What became of a task that cannot succeed by being run again."""

    error: Exception


def attempt(task: Callable[[T], R], item: T) -> "R | Failed":
    """Runs on an executor. What the next attempt may mend (a connection, a lost machine) is raised: Spark tries it again."""
    freeze_loaded_objects()
    try:
        return task(item)
    except (ConnectionError, TimeoutError):
        raise
    except (LogError, OSError) as error:
        return Failed(error)
