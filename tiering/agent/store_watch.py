"""Whether the store responds: for the loop and for the agent's pages, and reported when it changes."""

from collections.abc import Callable
from typing import Final

from remote.store.instrumented import Trouble
from tiering.agent.schedule import Gate
from tiering.agent.view import ERROR_CHARACTERS_MAX, ErrorRecord

SAME_MS: Final = 5_000
"""Two failures whose start times differ by at most this are the same one."""


class StoreWatch:
    """`trouble` gives the problem that the store's meter sees; `say` is called with a message for users about each change."""

    def __init__(self, trouble: Callable[[], Trouble | None], say: Callable[[str], None]) -> None:
        self._trouble, self._say = trouble, say
        self._said: ErrorRecord | None = None

    def failure(self, gate: Gate, now_ms: int) -> ErrorRecord | None:
        """The store's error and the time since when it does not respond; None if it responds."""
        trouble = self._trouble()
        if trouble is not None:
            found = ErrorRecord("Unavailable", trouble.problem[:ERROR_CHARACTERS_MAX], now_ms - round(trouble.seconds * 1000))
        elif gate.is_shut:
            found = ErrorRecord("Unavailable", gate.problem[:ERROR_CHARACTERS_MAX], gate.since_ms)
        else:
            return None
        said = self._said
        return said if said is not None and abs(said.at_ms - found.at_ms) <= SAME_MS else found

    def look(self, gate: Gate, now_ms: int) -> None:
        """Reports a failure that has begun or ended since the last call."""
        found, was = self.failure(gate, now_ms), self._said
        self._said = found
        if found is not None and was is None:
            self._say(f"the store does not respond, and nothing is archived: {found.message}")
        elif found is None and was is not None:
            self._say(f"the store responds again, after {(now_ms - was.at_ms) // 1000} s")
