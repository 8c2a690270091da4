"""The actors of a simulation, one of which runs at a time, and what happens next: drawn from a seed, or given.

A schedule is a list of events, and each has all that is drawn for it: how long after the one before it happens, which actor goes
on, what becomes of its call, the seed of what its cluster does. So a part of a schedule is one, too, and happens as before.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random  # noqa: TID251  # seeded: the same numbers in every run
from typing import NamedTuple

from greenlet import getcurrent, greenlet

from local_log.errors import LogError

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000

ASKED_MAX = 100_000
"""Calls of a schedule; most make 2,000."""
CREDENTIALS = "credentials"
"""What becomes of a call whose credentials have expired, as of all calls of its process for some time."""
STARTS, GOES_ON, SLEEPS, HAPPENS = "starts", "goes on", "sleeps", "happens"


class Violation(BaseException):
    """Something that must hold does not. The code under test cannot catch it with its other errors."""


class Died(BaseException):
    """The process of an actor has ended at this call."""


class Event(NamedTuple):
    """What happens `after_ms`: an actor starts, makes its next call or sleeps, or something happens in the cluster.

    `number` is the actor's, else the seed of what happens. `what` is the kind of the actor, what becomes of the call ("" for an
    answer), or what happens. `ms` is how far the new actor's clock is off, or for how long a call is late or a process asleep.
    """

    after_ms: int
    verb: str
    number: int
    what: str = ""
    ms: int = 0


@dataclass(eq=False)
class Schedule:
    """The true time and the actors by their numbers. `story` tells what happened, for people."""

    seed: int
    now: int = START_MS
    steps: int = 0
    calls: int = 0
    """Before each of them others could run."""
    asked: int = 0
    """All calls of actors to stores, disks and networks, those in the end, too."""
    actors: dict[int, "Actor"] = field(default_factory=dict)
    faults: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    story: list[str] | None = None
    before_step: Callable[[], None] = lambda: None
    is_calm: bool = False
    """Whether nothing goes wrong any more."""
    running: "Actor | None" = None
    """The actor that makes a step now."""

    def __post_init__(self) -> None:
        self.random = Random(self.seed)

    def now_ms(self) -> int:
        """The true time, which is the store's."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Not for the store's clock: each actor sleeps by its own."""
        raise AssertionError(seconds)

    def tell(self, who: str, what: str) -> None:
        """Adds a line to the story, if one is told."""
        if self.story is not None:
            minutes = (self.now - START_MS) / MINUTE_MS
            self.story.append(f"{self.steps:5} {minutes:9.1f} min  {who}: {what}")

    def violated(self, what: str) -> Violation:
        return Violation(f"step {self.steps}: {what}")

    def later(self, ms: int) -> None:
        """So much time passes."""
        self.steps += 1
        self.now += ms
        self.before_step()

    def goes_on(self, number: int, fate: str = "", ms: int = 0) -> None:
        """An actor makes its next call, of which that comes. Nothing happens to an actor that is not there."""
        actor = self.actors.get(number)
        if actor is None:
            return
        self.now = max(self.now, actor.wakes)
        self.calls += 1
        actor.fate, actor.fate_ms = fate, ms
        actor.step()
        if actor.is_over:
            del self.actors[number]

    def ends(self, steps_max: int) -> None:
        """All actors go on until they have come to their ends, or have made so many steps."""
        random = Random(self.seed)
        steps_max += self.steps
        self.is_calm = True
        while self.actors and self.steps < steps_max:
            self.later(random.randrange(1_000))
            awake = [number for number, actor in self.actors.items() if actor.wakes <= self.now]
            self.goes_on(random.choice(awake) if awake else min(self.actors, key=lambda n: self.actors[n].wakes))


class Actor:
    """A process on a machine whose clock is off by `skew`. `act` runs until its next call to store or disk at each step.

    It is the clock, the ids and the random numbers of its process, too.
    """

    def __init__(self, schedule: Schedule, name: str, act: Callable[["Actor"], None], skew: int = 0, number: int = 0) -> None:
        self.schedule, self.name, self.skew, self.number = schedule, name, skew, number
        self.random = Random(schedule.seed * 1_000_003 + number)
        self.wakes = schedule.now
        self.is_over = self.is_dead = False
        self.is_atomic = False
        """Whether its calls neither fail nor let others run in between."""
        self.may_fail: tuple[str, ...] = ()
        """What may become of the call that it is about to make."""
        self.asks = ""
        """What that call is: to write an object of a kind, or to delete it, or to read it."""
        self.fate, self.fate_ms = "", 0
        self.refused_until = 0
        self._greenlet = greenlet(lambda: self._run(act))

    def _run(self, act: Callable[["Actor"], None]) -> None:
        self.schedule.tell(self.name, "starts")
        try:
            act(self)
        except Died:
            self.schedule.tell(self.name, "is killed")
        except LogError as e:
            self.schedule.errors[type(e).__name__] += 1
            self.schedule.tell(self.name, f"fails with {type(e).__name__}: {e}")
        else:
            self.schedule.tell(self.name, "is done")
        self.is_over = True

    def step(self) -> None:
        """Goes on until its next call."""
        self._greenlet.parent = getcurrent()
        self.schedule.running = self
        self._greenlet.switch()
        self.schedule.running = None

    def pause(self, may_fail: tuple[str, ...] = (), asks: str = "") -> str:
        """Others run; it goes on when it is chosen again. What is to become of its call, one of `may_fail`, "" for an answer."""
        thread = self._thread()
        if thread is not None:
            fate, self.fate_ms = thread.pause(may_fail, asks), thread.fate_ms
            return fate
        if self.is_dead:
            raise Died
        self.schedule.asked += 1
        if self.schedule.asked > ASKED_MAX:
            raise self.schedule.violated(f"{self.name} does not come to an end")
        if self.is_atomic:
            return ""
        self.may_fail, self.asks = may_fail, asks
        parent = self._greenlet.parent
        assert parent is not None
        parent.switch()
        if self.is_dead:
            raise Died
        return self.fate if self.fate in may_fail or (may_fail and self.fate == CREDENTIALS) else ""

    def die(self) -> Died:
        self.is_dead = True
        return Died()

    def _thread(self) -> "Thread | None":
        """The thread of this process that runs now, if it is another one than the first."""
        running = self.schedule.running
        return running if isinstance(running, Thread) and running.process is self else None

    def run_alone(self) -> None:
        """All of it, without others in between."""
        while not self.is_over:
            self.schedule.now = max(self.schedule.now, self.wakes)
            self.step()

    def is_about_to(self, what: tuple[str, str]) -> bool:
        """Whether it is of this kind, and its next call is of that one."""
        kind, asked = what
        return bool(asked) and self.asks.startswith(asked) and self.name.startswith(kind)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # Its clock and its ids

    def now_ms(self) -> int:
        return self.schedule.now + self.skew

    def hi_res_clock_ms(self) -> int:
        """A clock that nobody sets."""
        return self.schedule.now

    def sleep(self, seconds: float) -> None:
        thread = self._thread()
        if thread is not None:
            thread.sleep(seconds)
            return
        self.wakes = self.schedule.now + round(seconds * 1000)
        if self.is_atomic:
            self.schedule.now = self.wakes
        self.pause()

    def new_id(self) -> str:
        return f"{self.random.getrandbits(128):032x}"

    def random_bytes(self, count: int) -> bytes:
        return self.random.randbytes(count)


class Thread(Actor):
    """Another thread of the process of an actor, with its clock and its ids: it goes on by itself, and dies with the process."""

    def __init__(self, process: Actor, name: str, act: Callable[[], None], number: int) -> None:
        self.process = process
        super().__init__(process.schedule, name, lambda actor: act(), process.skew, number)

    @property
    def is_dead(self) -> bool:
        return self.process.is_dead

    @is_dead.setter
    def is_dead(self, is_dead: bool) -> None:
        self.process.is_dead = self.process.is_dead or is_dead
