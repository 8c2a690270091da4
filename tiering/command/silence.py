"""Tells once of a store that has answered nothing since a command began: retries and time-outs may take minutes."""

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from remote.clock import stopwatch
from tiering.command.output import say
from tiering.machine import opened_stores

if TYPE_CHECKING:
    from remote.store.instrumented import Meter

FIRST_LOOK_S: Final = 1.5
NEXT_LOOK_S: Final = 0.5
LOOKS_MAX: Final = 120


@contextmanager
def telling_of_silence() -> Iterator[None]:
    """For as long as a command runs. The thread does not outlive it."""
    has_ended, before = threading.Event(), {meter for _, meter in opened_stores()}
    threading.Thread(target=_look, args=(has_ended, before), name="silence", daemon=True).start()
    try:
        yield
    finally:
        has_ended.set()


def _look(has_ended: threading.Event, before: "Collection[Meter]") -> None:
    """Looks at all stores but those that were opened before the command began."""
    wait_s, told = FIRST_LOOK_S, set[str]()
    for _ in range(LOOKS_MAX):
        if has_ended.wait(wait_s):
            return
        wait_s = NEXT_LOOK_S
        for url, meter in opened_stores():
            trouble = meter.unanswered(stopwatch()) if meter not in before else None
            if trouble is not None and url not in told:
                told.add(url)
                say(f"tiering: {url} has not answered yet: {trouble.problem}; trying again")
