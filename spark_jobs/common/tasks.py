"""Work spread over Spark's executors: the largest first, small items together, failures as values, progress on a terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from spark_jobs.common.attempts import Failed, attempt
from spark_jobs.common.outcome import collect_outcomes
from spark_jobs.work_division import TASK_BYTES, fill_last_round, pack_tasks
from tiering.command.progress import shown

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class TaskLimits:
    """Spark's master (None: the session's own), about how many bytes a task reads, and how many tasks there are at least."""

    master: str | None = None
    task_bytes: int = TASK_BYTES
    tasks_min: int | None = None


def run_tasks(
    job: str,
    items: Sequence[T],
    act: Callable[[T], R],
    size_of: Callable[[T], int],
    *,
    limits: TaskLimits = TaskLimits(),  # frozen
    cut: Callable[[T, int], Sequence[T]] = lambda item, _: (item,),
) -> tuple[list[R], Exception | None]:
    """What `act` gives for each of the items, in no order, and the worst of the errors of those that failed (see `attempts`).

    `act` runs on executors and is pickled to get there. `size_of` is about how many bytes an item is: the largest begin, so what
    is left at the end, when cores fall idle, is small; `cut(item, pieces)` cuts one of those that would leave cores idle. Small
    items share tasks within `limits`. No session is made
    where there are no items. Raises Spark's errors.
    """
    if not items:
        return [], None
    from spark_jobs.session import session

    context = session(f"tiering {job}", master=limits.master).sparkContext
    done = context.accumulator(0)
    cores = context.defaultParallelism
    divided = fill_last_round(items, cores, size_of, cut)
    tasks = pack_tasks(divided, cores, size_of, task_bytes=limits.task_bytes, tasks_min=limits.tasks_min or 0)

    def run(task: list[tuple[int, T]]) -> "list[R | Failed]":
        outcomes = []
        for size, item in task:
            outcomes.append(attempt(act, item))
            done.add(size)
        return outcomes

    sized = [[(size_of(item), item) for item in task] for task in tasks]
    of_bytes = sum(size for task in sized for size, _ in task)
    with shown(job, lambda: of_bytes, lambda: int(done.value)):
        outcomes = context.parallelize(sized, len(sized)).flatMap(run).collect()
    return collect_outcomes(outcomes)
