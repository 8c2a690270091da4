"""The actors of a simulation, one of which runs at a time, and the order of their steps, which the seed decides."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random  # noqa: TID251  # seeded: the same numbers in every run

from greenlet import getcurrent, greenlet

from local_log.errors import LogError

MINUTE_MS = 60_000
HOUR_MS = 3_600_000
START_MS = 1_700_000_000_000
STEP_MS_MAX = 3_000


class Violation(BaseException):
    """Something that must hold does not. The code under test cannot catch it with its other errors."""


class Died(BaseException):
    """The process of an actor has ended at this call."""


@dataclass(eq=False)
class Schedule:
    """The true time, the actors, and the random numbers of a seed. `story` tells what happened, for people."""

    seed: int
    now: int = START_MS
    steps: int = 0
    actors: list["Actor"] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    story: list[str] | None = None
    before_step: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.jump = self.random.choice([0.002, 0.01])

    def now_ms(self) -> int:
        """The true time, which is the store's."""
        return self.now

    def sleep(self, seconds: float) -> None:
        """Not for the store's clock: each actor sleeps by its own."""
        raise AssertionError(seconds)

    def new_id(self) -> str:
        return f"{self.random.getrandbits(128):032x}"

    def random_bytes(self, count: int) -> bytes:
        return self.random.randbytes(count)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def tell(self, who: str, what: str) -> None:
        """Adds a line to the story, if one is told."""
        if self.story is not None:
            minutes = (self.now - START_MS) / MINUTE_MS
            self.story.append(f"{self.steps:5} {minutes:9.1f} min  {who}: {what}")

    def violated(self, what: str) -> Violation:
        return Violation(f"step {self.steps}: {what}")

    def run(self, steps_max: int) -> None:
        """Steps of actors that are awake, in random order, until there were so many or no actor is left."""
        while self.actors and self.steps < steps_max:
            self.steps += 1
            self.now += self.random.randrange(STEP_MS_MAX)
            if self.chance(self.jump):
                self.now += self.random.choice([5 * MINUTE_MS, HOUR_MS, 5 * HOUR_MS, 11 * HOUR_MS])
            self.before_step()
            awake = [actor for actor in self.actors if actor.wakes <= self.now]
            if not awake:
                self.now = min(actor.wakes for actor in self.actors)
                continue
            actor = self.random.choice(awake)
            actor.step()
            if actor.is_over:
                self.actors.remove(actor)


class Actor:
    """A process on a machine whose clock is off by `skew`. `act` runs until its next call to store or disk at each step."""

    def __init__(self, schedule: Schedule, name: str, act: Callable[["Actor"], None], skew: int = 0) -> None:
        self.schedule, self.name, self.skew = schedule, name, skew
        self.wakes = schedule.now
        self.is_over = self.is_dead = False
        self.is_atomic = False
        """Whether its calls neither fail nor let others run in between."""
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
        self._greenlet.switch()

    def pause(self) -> None:
        """Others run; it goes on when it is chosen again, and is awake. Raises Died if it was killed meanwhile."""
        if self.is_dead:
            raise Died
        if not self.is_atomic:
            parent = self._greenlet.parent
            assert parent is not None
            parent.switch()
        if self.is_dead:
            raise Died

    def die(self) -> Died:
        self.is_dead = True
        return Died()

    def run_alone(self) -> None:
        """All of it, without others in between."""
        while not self.is_over:
            self.schedule.now = max(self.schedule.now, self.wakes)
            self.step()

    # Its clock

    def now_ms(self) -> int:
        return self.schedule.now + self.skew

    def sleep(self, seconds: float) -> None:
        self.wakes = self.schedule.now + round(seconds * 1000)
        if self.is_atomic:
            self.schedule.now = self.wakes
        self.pause()
