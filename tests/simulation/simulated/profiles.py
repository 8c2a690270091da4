"""What the schedule of a seed is like: much of some things and nothing of others, so that what is rare otherwise comes about.

A fault that takes three tasks in one order is drowned where ten kinds of tasks run at once, and most of what can go wrong, does
(swarm testing: Groce et al., ISSTA 2012). So each seed draws which groups of tasks take part, how many of them run at a time,
what fails and how often, how long the waits of the archive are beside the pauses of processes, and how far clocks are off.

Where one task has to sleep in the right place while others do two things in order, that is seldom still. So every odd seed has
one of `OPPOSED`, with processes that stop often and for long.
"""

from dataclasses import dataclass, replace
from random import Random  # noqa: TID251  # seeded

from simulated.schedule import HOUR_MS, MINUTE_MS

GROUPS = ("offload", "copies", "local retention", "expire", "sweep", "rotate", "readers", "writes", "own")
SOURCES = ("offload", "copies", "writes", "own")
"""Without one of them there is nothing in the archive."""
SPARK = (frozenset({"splits"}), frozenset({"streams"}), frozenset({"splits", "streams"}))
SPARK_SHARE = 0.2
SERVING_SHARE = 0.15
"""Of the schedules, those whose process has clients. They take three times as long as others."""
OPPOSED = (
    frozenset({"offload", "rotate", "sweep"}),
    frozenset({"offload", "expire", "sweep", "readers"}),
    frozenset({"writes", "sweep"}),
)
"""Tasks of which one takes away what another has made: every odd seed has such a few of them, and nothing else."""


@dataclass(frozen=True, slots=True)
class Waits:
    """How long objects wait that are given up, and those that nobody names, how old records become, how long readers pin."""

    delay_ms: int
    grace_ms: int
    retention_ms: int
    pin_ms: int

    @property
    def pauses_ms(self) -> tuple[int, ...]:
        """For how long processes stop in the middle of a call."""
        return (MINUTE_MS, self.delay_ms, 2 * self.grace_ms, 5 * self.grace_ms)

    @property
    def jumps_ms(self) -> tuple[int, ...]:
        """How much later than usual a call may come."""
        return (5 * MINUTE_MS, self.delay_ms // 2, self.grace_ms, 2 * self.grace_ms)


LONG = Waits(4 * HOUR_MS, 6 * HOUR_MS, 8 * HOUR_MS, 12 * HOUR_MS)
SHORT = Waits(40 * MINUTE_MS, HOUR_MS, 90 * MINUTE_MS, 2 * HOUR_MS)


@dataclass(frozen=True, slots=True)
class Profile:
    """Shares are of calls. `awake_max` is how many actors run at a time besides those that sleep.

    `clocks` is by how much further than usual the clocks of some machines may be off.
    """

    groups: frozenset[str]
    waits: Waits
    clocks: int
    calls: int
    awake_max: int
    cluster: float
    jumps: float
    faults: float
    pauses: float
    outages: float
    credentials: float
    least: float = 0.0
    """How often each kind of its tasks is chosen at least."""
    serves: bool = False
    """Whether the process that owns its log directory has clients."""


def profile_of(seed: int) -> Profile:
    """The one of a seed."""
    random = Random(f"profile {seed}")
    choice = random.choice
    share = choice([0.3, 0.5, 0.8])
    groups = {group for group in GROUPS if random.random() < share}
    if groups.isdisjoint(SOURCES):
        groups.add(choice(SOURCES))
    drawn = Profile(
        frozenset(groups),
        waits=choice([LONG, SHORT, SHORT]),
        clocks=choice([1, 1, 12]),
        calls=choice([300, 500, 1_000]),
        awake_max=choice([1, 2, 3, 6]),
        cluster=choice([0.1, 0.2, 0.4]),
        jumps=choice([0.002, 0.01, 0.03, 0.1]),
        faults=choice([0.0, 0.005, 0.02, 0.06]),
        pauses=choice([0.0, 0.02, 0.06]),
        outages=choice([0.0, 0.0, 0.005]),
        credentials=choice([0.0, 0.0, 0.001]),
    )
    found = _with_spark(_opposed(drawn, random) if seed % 2 else drawn, Random(f"spark {seed}"))
    return _serving(found, Random(f"served {seed}"), is_alone=bool(seed % 2))


def _with_spark(drawn: Profile, random: Random) -> Profile:
    """In some schedules Spark reads what the others do, drawn apart: the others are what they would be without it."""
    if random.random() >= SPARK_SHARE:
        return drawn
    groups = drawn.groups | random.choice(SPARK)
    if random.random() < 0.5:
        others = random.choice(["rotate", "copies", "remake", "remake", "local retention"])
        groups = random.choice(SPARK) | {"offload", "expire", "sweep", others}
    return replace(drawn, groups=frozenset(groups))


def _serving(drawn: Profile, random: Random, *, is_alone: bool) -> Profile:
    """In some schedules the process that owns its log directory has clients: beside all else, or with little else."""
    if random.random() >= SERVING_SHARE:
        return drawn
    groups = frozenset({"own"}) if is_alone else drawn.groups | {"own"}
    calls, awake_max, jumps = random.choice([300, 500]), random.choice([2, 3, 6]), random.choice([0.0, 0.002, 0.02])
    return replace(drawn, groups=groups, serves=True, calls=calls, awake_max=awake_max, jumps=jumps)


def _opposed(drawn: Profile, random: Random) -> Profile:
    """Few tasks, which stop for long where the others go on: what one of them knows is out of date when it comes back."""
    choice = random.choice
    return replace(
        drawn,
        groups=choice(OPPOSED),
        calls=choice([300, 500, 1_000]),
        awake_max=choice([1, 2]),
        jumps=choice([0.01, 0.03]),
        faults=choice([0.0, 0.005, 0.02]),
        pauses=choice([0.03, 0.06]),
        least=1.0,
    )
