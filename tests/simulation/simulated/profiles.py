"""What the schedule of a seed is like: much of some things and nothing of others, so that what is rare otherwise comes about.

A fault that takes three tasks in one order is drowned where ten kinds of tasks run at once, and most of what can go wrong, does
(swarm testing: Groce et al., ISSTA 2012). So each seed draws which groups of tasks take part, how many of them run at a time,
what fails and how often, how long the waits of the archive are beside the pauses of processes, and how far clocks are off.

Where one task has to sleep in the right place while others do two things in order, that is seldom still. So every odd seed has
one of `OPPOSED`, with processes that stop often and for long. Some even seeds have `ELECTED`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from random import Random  # noqa: TID251  # seeded
from typing import Any

from simulated.schedule import HOUR_MS, MINUTE_MS

GROUPS = ("offload", "copies", "local retention", "expire", "sweep", "rotate", "readers", "writes", "own")
SOURCES = ("offload", "copies", "writes", "own")
"""Without one of them there is nothing in the archive."""
SPARK = (frozenset({"splits"}), frozenset({"streams"}), frozenset({"splits", "streams"}))
SPARK_SHARE = 0.2
OPPOSED_SPARK_SHARE = 0.5
"""Of the schedules with Spark."""
SERVING_SHARE = 0.12
"""Of the schedules, those whose process has clients. They take three times as long as others."""
ANSWERED = ("TxnOffsetCommit", "OffsetCommit", "Produce", "EndTxn")
"""What a process may have answered just before its power fails: it is to be on the disk."""
ANSWERED_SHARE = 0.5
"""Of the schedules with clients, those in which that is often so."""


@dataclass(frozen=True, slots=True)
class Opposed:
    """Few kinds of tasks, of which one takes away what another has made, and how often each is begun.

    `stops` are a kind of them, and the call before which it stops for long: it writes, or deletes, a kind of object, or reads it.
    `late` is a call that often has no answer, and reaches the store later; at `ends` the process often ends.
    `losses` says how often a broker deletes what is not archived. `is_steady`: where a task stops, nothing else happens to the
    process that owns its log directory. `is_slow`: objects wait for long, and while one task sleeps one other runs, many times.
    `happenings` says how often something happens to the brokers, where that is not as usual.
    """

    groups: frozenset[str]
    kinds: Mapping[str, float]
    stops: tuple[tuple[str, str], ...] = ()
    late: tuple[str, str] = ("", "")
    ends: tuple[str, str] = ("", "")
    losses: float = 0.05
    is_steady: bool = False
    is_slow: bool = False
    happenings: Mapping[str, float] = field(default_factory=dict)


OPPOSED = (
    Opposed(
        frozenset({"offload", "local retention", "rotate", "sweep"}),
        {
            "offload A": 0.6,
            "offload B": 0.5,
            "offload C": 0.5,
            "retention of B": 0.6,
            "retention of C": 0.6,
            "rotate": 0.5,
            "sweep": 1.5,
        },
        (("rotate", "write manifest"),),
        is_slow=True,
    ),
    Opposed(
        frozenset({"offload", "expire", "sweep"}),
        {"offload A": 1.0, "offload B": 0.5, "expire": 1.0, "sweep": 1.0},
        (("offload", "write manifest"), ("expire", "write manifest"), ("expire", "write segment"), ("sweep", "write segment")),
    ),
    Opposed(
        frozenset({"offload", "expire", "sweep", "readers"}),
        {"offload A": 1.0, "expire": 3.0, "sweep": 0.3, "reader": 1.0, "pinned reader": 1.5},
        (("expire", "write manifest"), ("expire", "write segment"), ("pinned reader", "write pin")),
    ),
    Opposed(
        frozenset({"writes", "sweep"}),
        {"write": 2.0, "write first": 0.3, "look": 0.5, "sweep": 1.5},
        (("write", "write record"), ("write", "write manifest"), ("sweep", "write segment"), ("sweep", "write record")),
    ),
    Opposed(
        frozenset({"copies", "offload", "expire", "local retention"}),
        {"offload A": 1.0, "offload of a copy of A": 1.0, "retention of A": 1.0, "expire": 0.3},
        (("offload", "read manifest"), ("", "")),
        late=("offload", "write manifest"),
        losses=0.5,
    ),
    Opposed(
        frozenset({"own"}),
        {"own offload": 1.0, "own retention": 1.5, "own expiry": 0.1, "committed consumer": 2.0, "own committed reader": 0.5},
        (("committed consumer", "read segment"), *[("committed consumer", "read segment indexes")] * 2),
        is_steady=True,
    ),
)
"""Every odd seed has one of these, and nothing else."""
OPPOSED_SPARK = (
    Opposed(
        frozenset({"offload", "expire", "splits"}),
        {"offload A": 1.0, "expire": 3.0, "spark driver": 1.0, "spark executor": 1.5},
        (*[("spark driver", "write pin")] * 2, ("spark executor", "read segment"), ("expire", "write segment")),
    ),
    Opposed(
        frozenset({"offload", "expire", "streams"}),
        {"offload A": 1.0, "expire": 0.5, "stream": 2.5},
        (("stream", "read segment"), ("stream", "read manifest"), ("expire", "write segment")),
        ends=("stream", "write"),
    ),
)
"""Some of the seeds with Spark have one of these, and nothing else."""
ELECTED = Opposed(
    frozenset({"offload", "local retention"}),
    {f"{task} {name}": often for task, often in (("offload", 0.3), ("retention of", 2.0)) for name in "ABC"},
    losses=1.0,
    happenings={"elect": 2.0, "fall_behind": 2.0, "replicate": 5.0},
)
"""Leaders change often, and delete records that a former leader has others for, which it has not truncated yet."""
ELECTED_SHARE = 0.1
"""Of the even seeds, those that have this, and nothing else."""
AGENTS_SHARE = 0.3
"""Of the schedules in which brokers are offloaded, those with agents."""
REMADE_SHARE = 0.4
"""Of these, those in which the topic is made again, too."""
OF_OWN_AGENT = ("own offload", "own retention", "own expiry")
"""The tasks that the agent of a process does that owns its log directory."""
AIMED = 0.8
"""The share of these seeds in which a task stops there, and others seldom; in the rest all of them do."""
STOPS = 0.4
"""How often a process stops before a call of which its profile says so."""
ENDS = 0.15
"""How often a process ends at a call of which its profile says so."""


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
    def stops_ms(self) -> tuple[int, ...]:
        """For how long processes stop where that is out of date which they know."""
        return (self.delay_ms, 2 * self.grace_ms, 5 * self.grace_ms)

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
    answered: str = ""
    """Its power often fails after an answer of this kind."""
    asleep_max: int = 4
    """Actors that are asleep while as many others run as `awake_max` says."""
    kinds: Mapping[str, float] = field(default_factory=dict)
    """How often each kind of its tasks is begun, where that is not drawn for each kind."""
    stops: tuple[str, str] = ("", "")
    """A kind of tasks, and the call before which they stop for long."""
    late: tuple[str, str] = ("", "")
    """A kind of tasks, and a call of theirs that often has no answer."""
    ends: tuple[str, str] = ("", "")
    """A kind of tasks, and a call of theirs at which their process often ends."""
    losses: float = 0.05
    """How often a broker deletes what is not archived."""
    is_steady: bool = False
    """Whether nothing happens to the process that owns its log directory."""
    happenings: Mapping[str, float] = field(default_factory=dict)
    """How often something happens to the brokers, where that is not as usual."""

    has_own_agent: bool = False
    """Whether an agent in the process that owns its log directory does what is a task of its own otherwise."""
    has_agents: bool = False
    """Whether the brokers are offloaded by agents beside them, which live on between two copies."""

    @property
    def has_brokers(self) -> bool:
        """Whether anybody has something to do with the brokers."""
        return not self.groups.isdisjoint({"offload", "copies"})


OF_ANY_KIND: Mapping[str, Any] = {
    "kinds": {}, "stops": ("", ""), "late": ("", ""), "ends": ("", ""), "asleep_max": 4, "is_steady": False, "happenings": {},
}  # fmt: skip
"""What a profile has whose groups are others than those that were opposed."""


def profile_of(seed: int) -> Profile:
    """The one of a seed. In some schedules agents do what the command does in others."""
    found, random = _without_agents(seed), Random(f"agents {seed}")
    of_brokers, of_own = (random.random() < AGENTS_SHARE and group in found.groups for group in ("offload", "own"))
    if of_own:
        kinds = {name: often for name, often in found.kinds.items() if name not in OF_OWN_AGENT}
        often = max((found.kinds[name] for name in OF_OWN_AGENT if name in found.kinds), default=0.0)
        found = replace(found, has_own_agent=True, kinds=kinds | ({"agent own": often} if often else {}))
    if not of_brokers:
        return found
    kinds = {_of_agent(name): often for name, often in found.kinds.items()}
    (stops, before), (late, of_late), (ends, at) = found.stops, found.late, found.ends
    groups = found.groups | ({"remake"} if random.random() < REMADE_SHARE else set())
    return replace(
        found, groups=groups, has_agents=True, kinds=kinds, stops=(_of_agent(stops), before), late=(_of_agent(late), of_late),
        ends=(_of_agent(ends), at),
    )  # fmt: skip


def _of_agent(kind: str) -> str:
    """The kind of actors that does what this one does."""
    return kind if " of a copy " in kind else kind.replace("offload", "agent")


def _without_agents(seed: int) -> Profile:
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
        calls=choice([200, 300, 500]),
        awake_max=choice([1, 2, 3, 6]),
        cluster=choice([0.1, 0.2, 0.4]),
        jumps=choice([0.002, 0.01, 0.03, 0.1]),
        faults=choice([0.0, 0.005, 0.02, 0.06]),
        pauses=choice([0.0, 0.02, 0.06]),
        outages=choice([0.0, 0.0, 0.005]),
        credentials=choice([0.0, 0.0, 0.001]),
    )
    elected = Random(f"elected {seed}")
    if not seed % 2 and elected.random() < ELECTED_SHARE:
        return replace(_opposed(drawn, elected, (ELECTED,)), calls=200, cluster=0.5)
    found = _with_spark(_opposed(drawn, random) if seed % 2 else drawn, Random(f"spark {seed}"), seed)
    return _serving(found, Random(f"served {seed}"), is_alone=bool(seed % 2))


def _with_spark(drawn: Profile, random: Random, seed: int) -> Profile:
    """In some schedules Spark reads what the others do, drawn apart: the others are what they would be without it."""
    if random.random() >= SPARK_SHARE:
        return drawn
    opposed = Random(f"opposed spark {seed}")
    if opposed.random() < OPPOSED_SPARK_SHARE:
        return _opposed(drawn, opposed, OPPOSED_SPARK)
    groups = drawn.groups | random.choice(SPARK)
    if random.random() < 0.5:
        others = random.choice(["rotate", "copies", "remake", "remake", "local retention"])
        groups = random.choice(SPARK) | {"offload", "expire", "sweep", others}
    return replace(drawn, groups=frozenset(groups), **OF_ANY_KIND)


def _serving(drawn: Profile, random: Random, *, is_alone: bool) -> Profile:
    """In some schedules the process that owns its log directory has clients: beside all else, or with little else."""
    if random.random() >= SERVING_SHARE:
        return drawn
    groups = frozenset({"own"}) if is_alone else drawn.groups | {"own"}
    calls, awake_max, jumps = random.choice([200, 400]), random.choice([2, 3, 6]), random.choice([0.0, 0.002, 0.02])
    answered = random.choice(ANSWERED) if random.random() < ANSWERED_SHARE else ""
    serving = replace(drawn, groups=groups, serves=True, answered=answered)
    return replace(serving, calls=calls, awake_max=awake_max, jumps=jumps, **OF_ANY_KIND)


def _opposed(drawn: Profile, random: Random, among: Sequence[Opposed] = OPPOSED) -> Profile:
    """Few tasks, which stop for long where the others go on: what one of them knows is out of date when it comes back."""
    choice, of = random.choice, random.choice(among)
    stops = choice(of.stops) if of.stops and random.random() < AIMED else ("", "")
    return replace(
        drawn,
        groups=of.groups,
        kinds=of.kinds,
        least=1.0,
        stops=stops,
        late=of.late if stops[0] else ("", ""),
        ends=of.ends,
        losses=of.losses,
        is_steady=of.is_steady and bool(stops[0]),
        happenings=of.happenings,
        waits=LONG if of.is_slow else drawn.waits,
        calls=800 if of.is_slow else choice([200, 300, 500]),
        awake_max=1 if of.is_slow else choice([1, 1, 2]),
        asleep_max=1 if of.is_slow else choice([0, 1, 1, 2]),
        cluster=choice([0.2, 0.5]),
        jumps=choice([0.01, 0.03, 0.1]),
        faults=choice([0.0, 0.005, 0.02]),
        pauses=choice([0.0, 0.0, 0.02] if stops[0] else [0.03, 0.06]),
    )
