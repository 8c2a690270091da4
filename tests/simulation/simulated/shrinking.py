"""The fewest events with which a schedule still fails in the same way: a story that a person can read."""

import re
from collections.abc import Callable, Sequence
from itertools import count

from simulated.schedule import GOES_ON, HAPPENS, Event
from simulated.schedules import Outcome, run

TRIES_MAX = 1_500


def shrunk(seed: int, tries_max: int = TRIES_MAX) -> tuple[list[Event], Outcome] | None:
    """The events that are left of a seed's schedule, and what comes of them; None for a seed that does not fail.

    Whole actors are left out first, then events, half of them at a time and less and less, then what is odd in each of them.
    """
    first = run(seed)
    if not first.found:
        return None
    shrinking = _Shrinking(seed, _kind(first.found[seed]), tries_max)
    events = first.events
    while True:
        before = len(events), sum(map(_oddity, events))
        events = shrinking.without_actors(events)
        events = shrinking.without_events(events)
        events = shrinking.simpler(events)
        if (len(events), sum(map(_oddity, events))) == before or shrinking.is_over:
            return events, run(seed, events=events)


def _kind(found: str) -> str:
    """What is wrong, without numbers and names."""
    return re.sub(r"step \d+: |[0-9a-f]{8,}|\d+|#\S+", "", found)[:60]


def _oddity(event: Event) -> int:
    return (event.after_ms > 0) + (event.verb == GOES_ON and event.what != "")


class _Shrinking:
    """Tries of one seed's schedule."""

    def __init__(self, seed: int, kind: str, tries_max: int) -> None:
        self.seed, self.kind, self.left = seed, kind, tries_max

    @property
    def is_over(self) -> bool:
        return self.left <= 0

    def fails(self, events: Sequence[Event]) -> list[Event] | None:
        """The events up to the failure, if it is the same."""
        if self.is_over:
            return None
        self.left -= 1
        outcome = run(self.seed, events=events)
        found = outcome.found.get(self.seed)
        return outcome.events if found is not None and _kind(found) == self.kind else None

    def _first_failing(self, events: list[Event], candidates: Callable[[list[Event], int], list[Event] | None]) -> list[Event]:
        """Goes on from each candidate that fails; `candidates` gives the one of a number, None after the last."""
        at = 0
        while not self.is_over:
            candidate = candidates(events, at)
            if candidate is None:
                break
            found = self.fails(candidate)
            if found is None:
                at += 1
            else:
                events = found
        return events

    def without_actors(self, events: list[Event]) -> list[Event]:
        """Without all that an actor does, as many of them as can be."""
        for number in sorted({e.number for e in events if e.verb != HAPPENS}):
            left = [e for e in events if e.verb == HAPPENS or e.number != number]
            events = self.fails(left) or events if len(left) < len(events) else events
        return events

    def without_events(self, events: list[Event]) -> list[Event]:
        size = len(events) // 2
        while size and not self.is_over:

            def without(of: list[Event], at: int, size: int = size) -> list[Event] | None:
                return [*of[: at * size], *of[(at + 1) * size :]] if at * size < len(of) else None

            events = self._first_failing(events, without)
            size //= 2
        return events

    def simpler(self, events: list[Event]) -> list[Event]:
        """Calls that are answered, and no time between events."""
        for at in count():
            if at >= len(events) or self.is_over:
                return events
            event = events[at]
            for simple in (event._replace(after_ms=0), event._replace(what="" if event.verb == GOES_ON else event.what)):
                if simple != events[at]:
                    events = self.fails([*events[:at], simple, *events[at + 1 :]]) or events
                    if at >= len(events):
                        break
        return events
