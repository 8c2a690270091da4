"""Ends what may wait for a store that does not answer: each has so much time, and is left behind then, as a kill leaves it."""

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Final

from remote.clock import Time

END_MS_MAX: Final = 1_000


def left_behind(ends: Mapping[str, Callable[[], object]], clock: Time) -> list[str]:
    """Calls all of them at once; the names of those that have not returned in time."""
    threads = {name: threading.Thread(target=end, name=f"end of {name}", daemon=True) for name, end in ends.items()}
    for thread in threads.values():
        thread.start()
    until_ms = clock.hi_res_clock_ms() + END_MS_MAX
    for thread in threads.values():
        thread.join(max(0, until_ms - clock.hi_res_clock_ms()) / 1000)
    return [name for name, thread in threads.items() if thread.is_alive()]


@contextmanager
def pools(threads: Mapping[str, int], clock: Time, hung: list[str]) -> Iterator[tuple[ThreadPoolExecutor, ...]]:
    """Pools of so many threads, by the names of these. What has begun is waited for at the end, but not for ever: see `hung`."""
    found = {name: ThreadPoolExecutor(count, thread_name_prefix=name) for name, count in threads.items()}
    try:
        yield tuple(found.values())
    finally:
        hung += left_behind({name: partial(pool.shutdown, cancel_futures=True) for name, pool in found.items()}, clock)
