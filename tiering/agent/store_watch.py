"""Whether the store answers anybody: asked by the loop and by whoever asks the agent, and said aloud when it changes."""

from collections.abc import Callable
from typing import Final

from remote.store.instrumented import Trouble
from tiering.agent.schedule import Gate
from tiering.agent.view import ERROR_CHARACTERS_MAX, ErrorRecord

SAME_MS: Final = 5_000
"""A failure that is found to have begun so much earlier or later is the same one."""


class StoreWatch:
    """`trouble` is what the store's meter knows, `say` is told what is new, for people."""

    def __init__(self, trouble: Callable[[], Trouble | None], say: Callable[[str], None]) -> None:
        self._trouble, self._say = trouble, say
        self._said: ErrorRecord | None = None

    def failure(self, gate: Gate, now_ms: int) -> ErrorRecord | None:
        """Since when nobody is answered, and what the first one was told; None where all is well."""
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
        """Says what has begun or ended since it was asked last."""
        found, was = self.failure(gate, now_ms), self._said
        self._said = found
        if found is not None and was is None:
            self._say(f"the store does not respond, and nothing is archived: {found.message}")
        elif found is None and was is not None:
            self._say(f"the store responds again, after {(now_ms - was.at_ms) // 1000} s")
