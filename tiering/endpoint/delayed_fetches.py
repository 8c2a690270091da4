"""Has fetches wait for records on an event loop: until their logs change, or as long as they may.

Who appends to a log of ours wakes those who wait for it, each once. Other logs are looked at.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import suppress
from dataclasses import dataclass, field

from tiering.endpoint.apis.kafka_apis import Waits
from tiering.endpoint.logs import Logs
from tiering.endpoint.waiting_fetches import WaitingFetches

POLL_S = 0.5
"""How often the logs are looked at that fetches wait for: as often as they may be."""


@dataclass(slots=True)
class DelayedFetch:
    """A fetch that waits, until `deadline` by the loop's clock at most."""

    request: Waits
    deadline: float
    timer: asyncio.TimerHandle | None = None
    unwatch: Callable[[], object] | None = None
    """Ends what would wake it when its logs change; None if these have to be looked at."""

    def ends(self) -> None:
        """It waits no longer."""
        if self.timer is not None:
            self.timer.cancel()
        if self.unwatch is not None:
            self.unwatch()


@dataclass(slots=True)
class DelayedFetches:
    """`ask_again` is called with the number of a connection whose fetch, to be had from `take`, is to be answered now."""

    logs: Logs
    pool: Executor
    ask_again: Callable[[int], object]
    _waiting: WaitingFetches[DelayedFetch] = field(default_factory=WaitingFetches)
    _asked: dict[int, DelayedFetch] = field(default_factory=dict)
    _is_looking: bool = False
    """Whether the logs are looked at now, or soon."""
    _woken: deque[tuple[int, DelayedFetch]] = field(default_factory=deque)
    _is_told: bool = False
    """Whether the loop is to look at `_woken`."""

    def wait(self, number: int, fetch: DelayedFetch) -> None:
        """Begins to wait."""
        loop = asyncio.get_running_loop()
        self._waiting.add(number, fetch, fetch.request.seen)
        fetch.timer = loop.call_at(fetch.deadline, self._ask, number)
        request = fetch.request
        fetch.unwatch = self.logs.watch(request.seen, lambda: self._wake(loop, number, fetch), request.least_bytes)
        if fetch.unwatch is None and not self._is_looking:
            self._is_looking = True
            loop.call_later(POLL_S, self._look)

    def take(self, number: int) -> DelayedFetch:
        """The fetch of a connection of which `ask_again` was told."""
        return self._asked.pop(number)

    def remove(self, number: int) -> None:
        """The connection is gone."""
        self._asked.pop(number, None)
        fetch = self._waiting.remove(number)
        if fetch is not None:
            fetch.ends()

    def ask_all(self) -> None:
        """Nobody waits any longer."""
        for number in self._waiting.numbers():
            self._ask(number)

    def _ask(self, number: int) -> None:
        fetch = self._waiting.remove(number)
        if fetch is not None:
            fetch.ends()
            self._asked[number] = fetch
            self.ask_again(number)

    def _wake(self, loop: asyncio.AbstractEventLoop, number: int, fetch: DelayedFetch) -> None:
        """A log of the fetch has changed. Many threads call this: the loop is told once of all that it has not seen yet."""
        self._woken.append((number, fetch))
        if not self._is_told:
            self._is_told = True
            with suppress(RuntimeError):  # the loop is closed: nobody waits any longer
                loop.call_soon_threadsafe(self._ask_woken)

    def _ask_woken(self) -> None:
        self._is_told = False  # first: what is woken from now on is told anew
        while self._woken:
            number, fetch = self._woken.popleft()
            if self._waiting.get(number) is fetch:
                self._ask(number)

    def _look(self) -> None:
        """Looks at the logs, once for all who wait for them; not on the loop's thread, since they may be many."""
        waiting, loop = self._waiting.copy(), asyncio.get_running_loop()

        def look() -> None:
            found: list[tuple[int, DelayedFetch]] = []
            try:
                for topic in waiting.topics():
                    with suppress(Exception):  # who waits for it asks at its deadline, and is told; the others go on
                        self.logs.topic(topic)
                found = waiting.with_news(self.logs.known())
            finally:
                loop.call_soon_threadsafe(self._looked, found)  # in any case, or nobody would look again

        self.pool.submit(look)

    def _looked(self, found: Iterable[tuple[int, DelayedFetch]]) -> None:
        for number, fetch in found:
            if self._waiting.get(number) is fetch:
                self._ask(number)
        self._is_looking = len(self._waiting) > 0
        if self._is_looking:
            asyncio.get_running_loop().call_later(POLL_S, self._look)
