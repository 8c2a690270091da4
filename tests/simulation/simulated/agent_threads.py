"""Threads of an agent's process: each turn is an actor, and so is who waits for a lock."""

from functools import partial

from simulated.schedule import Actor, Thread
from tiering.agent.outcome import Outcome
from tiering.agent.workers import Turn

SLEEPS_LONGER = (1, 1, 1, 6, 60)
"""How many times as long as it has asked for a loop sleeps: its machine has other things to do."""
WAITS_S = 60
"""How long a thread waits before it looks again whether a lock is free."""
NUMBERS = 10_000
"""Of threads, for each process."""


class Turns:
    """Workers: each turn is a thread of the agent's process. The last agents do one after the other."""

    def __init__(self, process: Actor) -> None:
        self._process, self._done = process, list[Outcome]()
        self._started = 0

    def start(self, turn: Turn) -> None:
        """See Workers."""
        process = self._process
        if process.is_atomic:
            self._done.append(turn())
            return
        self._started += 1
        number = process.number * NUMBERS + self._started
        process.schedule.actors[number] = Thread(process, f"{process.name} turn {self._started}", partial(self._do, turn), number)

    def _do(self, turn: Turn) -> None:
        outcome = turn()
        self._done.append(outcome)
        self._process.wakes = self._process.schedule.now

    def finished(self, wait_s: float) -> list[Outcome]:
        process = self._process
        if not self._done and wait_s > 0:
            is_calm = process.is_atomic or process.schedule.is_calm
            process.sleep(wait_s * (60 if is_calm else process.random.choice(SLEEPS_LONGER)))
        done, self._done = self._done, []
        return done

    def wake(self) -> None:
        """See Workers."""
        self._process.wakes = self._process.schedule.now


class Lock:
    """A lock of threads that are actors: who waits for it lets others run."""

    def __init__(self, process: Actor) -> None:
        self._process, self._is_held = process, False

    def __enter__(self) -> None:
        while self._is_held:
            self._process.sleep(WAITS_S)
        self._is_held = True

    def __exit__(self, *error: object) -> None:
        self._is_held = False
