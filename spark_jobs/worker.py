"""What a Python worker of an executor does once, before its first task of ours."""

import gc
from functools import cache


@cache
def freeze_loaded_objects() -> None:
    """Has the collector leave alone what the modules brought.

    Spark's worker collects garbage behind each task, and by then has numba's and Arrow's objects: looking through all of them
    takes 30 ms, as long as many a task.
    """
    gc.collect()
    gc.freeze()
