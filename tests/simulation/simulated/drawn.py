"""What happens in the schedule of a seed, drawn event by event."""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from random import Random  # noqa: TID251  # seeded
from typing import TYPE_CHECKING

from simulated.agents import HAPPENINGS as AGENT_HAPPENINGS
from simulated.brokers import HAPPENINGS, REASSIGNED, REMAKE, UNMOUNTED
from simulated.profiles import ENDS, STOPS
from simulated.schedule import GOES_ON, HAPPENS, SLEEPS, STARTS, Event
from simulated.stores import LATE_MS_MAX, WRITE_FAULTS, fate_of

if TYPE_CHECKING:
    from simulated.world import Kind, World

TRIES = 5
"""Where a process of a kind runs that is there only once, another kind is drawn."""
STEP_MS_MAX = 3_000
BACKLOG_MAX = 16
"""Offsets of the brokers that are not archived; with more of them producers mostly wait: the end would take most of the time."""
WAITING_SHARE = 0.8
BEFORE = 25
"""What happens in the cluster before anybody archives it."""
WRITES_PAUSE = 3
"""How many times as often a process stops before a call that changes the store: what it knows may be out of date by then."""
WRONG_CLOCKS = 0.3
"""Of the machines, if some clocks may be off by more than usual."""
REMADE = 0.15
"""How often the brokers' topic is deleted and made again, beside what `HAPPENINGS` are."""
REMADE_OFTEN, REMADE_OFTEN_SHARE = 1.0, 0.3
"""The same, and of the schedules with agents beside brokers those in which it is so."""
UNMOUNTED_SHARE = 0.3
"""Of the schedules with agents beside brokers, those in which an agent has an empty folder at times in place of the disk."""
LOSES_POWER = 0.15
"""How often the power fails after an answer of which the profile says so."""
OUTAGE_CALLS = (3, 20)
OUTAGE_SHARE = 0.6
"""How much of its calls fails while an actor has bad luck with its network."""


def drawn(world: "World", kinds: Mapping[str, "Kind"]) -> Iterator[Event]:
    """The events of a world's seed. Each is drawn when the one before it has happened."""
    schedule, profile = world.schedule, world.profile
    random = Random(f"{schedule.seed}")
    share = profile.cluster * (2 if world.own else 1)
    names, weights = [*kinds], [*accumulate(kind.weight for kind in kinds.values())]
    of_own = {f"own: {what}": often for what, often in world.own.happenings.items()} if world.own else {}
    happenings = (HAPPENINGS | profile.happenings if profile.has_brokers else {}) | of_own
    if "remake" in profile.groups:
        is_often = world.broker_agents and Random(f"remakes {schedule.seed}").random() < REMADE_OFTEN_SHARE
        happenings |= {REMAKE: REMADE_OFTEN if is_often else REMADE}
    if world.broker_agents:
        happenings |= REASSIGNED | (UNMOUNTED if Random(f"mounted beside {schedule.seed}").random() < UNMOUNTED_SHARE else {})
    happenings |= {f"{agent.name} {what}": rate for agent in world.agents() for what, rate in AGENT_HAPPENINGS.items()}
    what_happens, often = [*happenings], [*accumulate(happenings.values())]
    outages: dict[int, int] = {}

    def happens() -> Event:
        what = random.choices(what_happens, cum_weights=often)[0]
        if what == "produce" and world.backlog() > BACKLOG_MAX and random.random() < WAITING_SHARE:
            what = "replicate"
        return Event(0, HAPPENS, random.getrandbits(32), what)

    def awake(after_ms: int = 0) -> list[int]:
        return [n for n, actor in schedule.actors.items() if actor.wakes <= schedule.now + after_ms]

    for _ in range(BEFORE if happenings else 0):
        yield happens()
    number = tries = 0
    while schedule.calls < profile.calls:
        while len(awake()) < profile.awake_max and len(schedule.actors) < profile.awake_max + profile.asleep_max:
            kind = random.choices(names, cum_weights=weights)[0]
            if not kinds[kind].may_begin():
                tries += 1
                if tries % TRIES:
                    continue
                break
            number += 1
            most_ms = kinds[kind].skew_ms * (profile.clocks if random.random() < WRONG_CLOCKS else 1)
            yield Event(0, STARTS, number, kind, random.randrange(-most_ms, most_ms + 1))
        after_ms = random.randrange(STEP_MS_MAX)
        if random.random() < profile.jumps:
            after_ms += random.choice(profile.waits.jumps_ms)
        if happenings and random.random() < share:
            yield happens()
        if profile.answered and world.has_answered(profile.answered) and random.random() < LOSES_POWER:
            yield Event(0, HAPPENS, random.getrandbits(32), "own: lose_power")
        ready = awake(after_ms)
        chosen = random.choice(ready) if ready else min(schedule.actors, key=lambda n: schedule.actors[n].wakes)
        may_fail = schedule.actors[chosen].may_fail
        if schedule.actors[chosen].is_about_to(profile.stops) and random.random() < STOPS:
            yield Event(after_ms, SLEEPS, chosen, "", random.choice(profile.waits.stops_ms))
            continue
        if schedule.actors[chosen].is_about_to(profile.late) and random.random() < STOPS:
            yield Event(after_ms, GOES_ON, chosen, "late", random.randrange(LATE_MS_MAX))
            continue
        if schedule.actors[chosen].is_about_to(profile.ends) and random.random() < ENDS:
            yield Event(after_ms, GOES_ON, chosen, random.choice(["killed before", "killed after"]))
            continue
        if may_fail and random.random() < profile.pauses * (WRITES_PAUSE if may_fail is WRITE_FAULTS else 1):
            yield Event(after_ms, SLEEPS, chosen, "", random.choice(profile.waits.pauses_ms))
            continue
        if profile.outages and random.random() < profile.outages:
            outages[chosen] = random.randrange(*OUTAGE_CALLS)
        fails = OUTAGE_SHARE if outages.get(chosen, 0) > 0 else profile.faults
        outages[chosen] = outages.get(chosen, 0) - 1
        fate, ms = fate_of(random, may_fail, fails, profile.credentials)
        yield Event(after_ms, GOES_ON, chosen, fate, ms)
