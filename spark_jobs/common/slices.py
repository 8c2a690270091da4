"""Partitions cut into slices, each the work of one task: its result, or the error that stopped it, comes back as a value.

Tasks of partitions, unlike those of segments, are cut by number: nobody knows how much a partition has to do before a task has
listed it. So there are several slices for each core, and who has little to do takes the next.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from spark_jobs.common.attempts import Failed, attempt
from tiering.command.progress import PARTITIONS, shown

SLICES_PER_CORE: Final = 8
PARTITIONS_MAX: Final = 500
"""In a slice, so that one that is run again has little to do again, and progress is seen."""

T = TypeVar("T")
R = TypeVar("R")
S = TypeVar("S", bound=Sequence[Any])


@dataclass(frozen=True, slots=True)
class Executors:
    """Where the slices of a job run. `cores` are those of all executors, as far as Spark knows them at the start."""

    job: str
    context: Any
    cores: int

    @classmethod
    def of(cls, job: str, master: str | None) -> "Executors":
        """Those of the running session, or of a new one."""
        from spark_jobs.session import session

        context = session(f"tiering {job}", master=master).sparkContext
        return cls(job, context, context.defaultParallelism)

    def run(self, slices: Sequence[S], act: Callable[[S], R], *, at_once_max: int | None = None) -> "list[R | Failed]":
        """What `act` gives for each slice, in order, or the error of ours that it raised.

        `act` is pickled. Spark runs a task again only if its process has died or lost its connection. At most `at_once_max`
        slices are worked on at a time, also where executors are added meanwhile. Raises Spark's errors.
        """
        if not slices:
            return []
        done = self.context.accumulator(0)

        def run_one(slice_: S) -> "R | Failed":
            outcome = attempt(act, slice_)
            done.add(len(slice_))
            return outcome

        of_all = sum(map(len, slices))
        tasks = len(slices) if at_once_max is None else min(len(slices), at_once_max)
        with shown(self.job, lambda: of_all, lambda: int(done.value), unit=PARTITIONS):
            outcomes: list[R | Failed] = self.context.parallelize(slices, tasks).map(run_one).collect()
        return outcomes


def sliced(items: Sequence[T], cores: int) -> list[Sequence[T]]:
    """The items in their order, in slices of one size: about SLICES_PER_CORE for each core, none larger than PARTITIONS_MAX."""
    size = min(-(-len(items) // (cores * SLICES_PER_CORE)), PARTITIONS_MAX)
    return [items[at : at + size] for at in range(0, len(items), size)] if items else []
