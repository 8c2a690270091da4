"""What happens in the schedule of a seed, drawn event by event."""

from collections.abc import Iterator, Mapping
from random import Random  # noqa: TID251  # seeded
from typing import TYPE_CHECKING

from simulated import own_host
from simulated.brokers import HAPPENINGS
from simulated.schedule import GOES_ON, HAPPENS, HOUR_MS, MINUTE_MS, SLEEPS, STARTS, Event
from simulated.stores import PAUSES_MS

if TYPE_CHECKING:
    from simulated.world import Kind, World

ACTORS_MAX = 6
CALLS = (500, 700, 1_000)
"""Of actors in a schedule, before all of them come to their ends."""
CLUSTER_SHARE = 0.12
"""How often something happens in the cluster between two calls of actors."""
STEP_MS_MAX = 3_000
JUMPS_MS = (5 * MINUTE_MS, HOUR_MS, 5 * HOUR_MS, 11 * HOUR_MS)
BEFORE = 40
"""What happens in the cluster before anybody archives it."""


def drawn(world: "World", kinds: Mapping[str, "Kind"]) -> Iterator[Event]:
    """The events of a world's seed. Each is drawn when the one before it has happened."""
    schedule, faults = world.schedule, world.faults
    random = Random(f"{schedule.seed}")
    share = CLUSTER_SHARE * (2 if world.own else 1)
    jump = random.choice([0.002, 0.01, 0.03])
    names, weights = [*kinds], [kind.weight for kind in kinds.values()]
    happenings = HAPPENINGS | ({f"own: {what}": often for what, often in own_host.HAPPENINGS.items()} if world.own else {})
    what_happens, often = [*happenings], [*happenings.values()]

    def happens() -> Event:
        return Event(0, HAPPENS, random.getrandbits(32), random.choices(what_happens, often)[0])

    for _ in range(BEFORE):
        yield happens()
    number = 0
    calls = random.choice(CALLS)
    while schedule.calls < calls:
        while len(schedule.actors) < ACTORS_MAX:
            number += 1
            kind = random.choices(names, weights)[0]
            skew_ms = random.randrange(-kinds[kind].skew_ms, kinds[kind].skew_ms + 1)
            yield Event(0, STARTS, number, kind, skew_ms)
            later_ms = random.choice([0, 0, MINUTE_MS, HOUR_MS, 4 * HOUR_MS])
            if later_ms:
                yield Event(0, SLEEPS, number, "", later_ms)
        after_ms = random.randrange(STEP_MS_MAX)
        if random.random() < jump:
            after_ms += random.choice(JUMPS_MS)
        if random.random() < share:
            yield happens()
        awake = [n for n, actor in schedule.actors.items() if actor.wakes <= schedule.now + after_ms]
        chosen = random.choice(awake) if awake else min(schedule.actors, key=lambda n: schedule.actors[n].wakes)
        actor = schedule.actors[chosen]
        if actor.may_fail and random.random() < faults.pauses:
            yield Event(after_ms, SLEEPS, chosen, "", random.choice(PAUSES_MS))
        else:
            fate, ms = faults.drawn(random, actor.may_fail)
            yield Event(after_ms, GOES_ON, chosen, fate, ms)
