"""Runs schedules, seed by seed, and says what came of them."""

import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from simulated.prepared import forget
from simulated.schedule import Event, Violation
from simulated.world import World


@dataclass
class Outcome:
    """What became of some schedules; `found` has what does not hold, by seed."""

    schedules: int = 0
    steps: int = 0
    asked: int = 0
    actors: int = 0
    records: int = 0
    versions: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    found: dict[int, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    """Of one schedule alone: what happened, up to what does not hold."""

    def add(self, other: "Outcome") -> None:
        """Counts the schedules of another one, too."""
        for name in ("schedules", "steps", "asked", "actors", "records", "versions"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.faults.update(other.faults)
        self.errors.update(other.errors)
        self.found |= other.found

    def lines(self) -> list[str]:
        """For people."""
        said = [
            f"{self.schedules} schedules: {self.asked} calls, others between {self.steps} of them, {self.actors} tasks, "
            f"{self.records} records, {self.versions} manifests",
            "faults: " + (", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.items())) or "none"),
            "errors told: " + (", ".join(f"{count} {kind}" for kind, count in sorted(self.errors.items())) or "none"),
        ]
        return said + [f"seed {seed}: {what}" for seed, what in sorted(self.found.items())]


def run(seed: int, story: list[str] | None = None, events: Sequence[Event] | None = None) -> Outcome:
    """One schedule: a seed's own, or these events of it."""
    forget()
    outcome = Outcome(schedules=1)
    world = World(seed, story)
    try:
        world.run(events)
    except Violation as e:
        outcome.found[seed] = str(e)
    except Exception as e:  # an error that nobody expects is a finding, too
        outcome.found[seed] = "".join(traceback.format_exception_only(e)).strip()
        if story is not None:
            story += traceback.format_exc().splitlines()
    schedule = world.schedule
    outcome.steps, outcome.asked, outcome.actors = schedule.calls, schedule.asked, world.actors
    outcome.records = world.cluster.high_watermark
    outcome.events = world.events
    outcome.versions = sum(call[0] == "put_if_absent" for call in world.store.calls)
    outcome.faults, outcome.errors = schedule.faults, schedule.errors
    return outcome
