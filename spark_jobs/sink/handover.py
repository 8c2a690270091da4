"""Passes the tasks' results from the process in which Spark commits to the driver, which has the session.

Both run on one machine as one user; the file is in a temporary folder of the driver that other users cannot open.
"""

import pickle
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

from spark_jobs.sink.task import TaskRows


@dataclass(frozen=True, slots=True)
class Handover:
    """A file that does not exist until `give`."""

    path: str

    def give(self, tasks: Sequence[TaskRows]) -> None:
        """Writes what the tasks have written."""
        with open(self.path, "xb") as file:
            pickle.dump(tuple(tasks), file)

    def taken(self) -> tuple[TaskRows, ...]:
        """Reads what `give` has written, in the driver."""
        with open(self.path, "rb") as file:
            tasks: tuple[TaskRows, ...] = pickle.load(file)  # noqa: S301  # our own, out of our own folder
            return tasks


@contextmanager
def handover() -> Iterator[Handover]:
    """A place that lasts as long as the block."""
    with TemporaryDirectory(prefix="tiering-write-") as folder:
        yield Handover(f"{folder}/tasks")
