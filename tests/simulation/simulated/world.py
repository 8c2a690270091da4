"""One schedule: brokers that are offloaded, an archive that is kept and read, and an end at which all of it is judged."""

from collections.abc import Callable
from dataclasses import dataclass, field

from archive_fakes import CountingIds

from remote import archive
from remote.scrub.budget import RequestBudget
from remote.scrub.scrub import scrub
from remote.scrub.settings import ScrubSettings
from simulated.archive_tasks import DELAY_MS, GRACE_MS, RETENTION_MS, Act, Tasks
from simulated.brokers import PATH, Cluster
from simulated.judge import Judge
from simulated.readers import batches_of, decoded, reads
from simulated.schedule import HOUR_MS, MINUTE_MS, Actor, Schedule
from simulated.stores import Faults, JudgedStore, StoreOf, Unwatched
from simulated.writes import WRITES, Writes

ACTORS_MAX = 6
STEPS = 900
CLUSTER_SHARE = 0.12
"""How often something happens in the cluster between two steps of actors."""


@dataclass(frozen=True)
class Kind:
    """A kind of actor: how often it is chosen, by how much its machine's clock may be off, and what it does."""

    weight: float
    skew_ms: int
    make: Callable[[], Act]


@dataclass(eq=False)
class World:
    """The world of one seed. `run` raises Violation."""

    seed: int
    story: list[str] | None = None
    schedule: Schedule = field(init=False)

    def __post_init__(self) -> None:
        self.schedule = Schedule(self.seed, story=self.story)
        self.faults = Faults(self.schedule)
        self.store = JudgedStore(self.schedule)
        self.cluster = Cluster(self.schedule)
        self.judge = Judge(self.schedule, self.store, self.cluster, RETENTION_MS)
        self.tasks = Tasks(self.schedule, self.judge, lambda actor: StoreOf(actor, self.store, self.faults))
        self.writes = Writes(self.tasks)
        self.schedule.before_step = self._before_step
        self.actors = 0
        archive.create_archive(self.store, self.schedule, CountingIds("a"))

    def _before_step(self) -> None:
        self.faults.land()
        if self.schedule.chance(CLUSTER_SHARE):
            self.cluster.step()

    def kinds(self) -> dict[str, Kind]:
        """The kinds of actors of this schedule, some often and some seldom."""
        tasks, random = self.tasks, self.schedule.random

        def often() -> float:
            return random.choice([0.2, 1.0, 2.0])

        found: dict[str, Kind] = {}
        for broker in self.cluster.brokers:
            found[f"offload {broker.name}"] = Kind(often(), 2 * HOUR_MS, lambda of=broker: tasks.offload(of))
            found[f"retention of {broker.name}"] = Kind(often() / 4, 0, lambda of=broker: tasks.drop_archived(of))
        found["expire"] = Kind(often(), 10 * MINUTE_MS, lambda: tasks.retain)
        found["sweep"] = Kind(often(), 10 * MINUTE_MS, lambda: tasks.sweep)
        found["rotate"] = Kind(often() if tasks.is_encrypted else 0.0, 2 * HOUR_MS, lambda: tasks.rotate)
        found["pinned reader"] = Kind(often(), 20 * MINUTE_MS, lambda: reads(tasks, pinned=True))
        found["reader"] = Kind(often(), 20 * MINUTE_MS, lambda: reads(tasks, pinned=False))
        for write_id in WRITES:
            found[f"write {write_id}"] = Kind(often() / 3, 2 * HOUR_MS, lambda of=write_id: self.writes.write(of))
        found["look"] = Kind(often(), 0, lambda: self.writes.look)
        found["delete"] = Kind(0.05 if random.random() < 0.1 else 0.0, 10 * MINUTE_MS, lambda: tasks.delete)
        return found

    def run(self, steps: int = STEPS) -> None:
        """Lives for so many steps, ends what is under way, and judges what is left."""
        kinds = self.kinds()
        weights = [kind.weight for kind in kinds.values()]
        for _ in range(40):
            self.cluster.step()
        while self.schedule.steps < steps:
            while len(self.schedule.actors) < ACTORS_MAX:
                self._spawn(*self.schedule.random.choices(list(kinds.items()), weights)[0])
            self.schedule.run(min(steps, self.schedule.steps + 40))
        self._end()

    def _spawn(self, name: str, kind: Kind) -> None:
        self.actors += 1
        skew = self.schedule.random.randrange(-kind.skew_ms, kind.skew_ms + 1)
        actor = Actor(self.schedule, f"{name} #{self.actors}", kind.make(), skew)
        actor.wakes += self.schedule.random.choice([0, 0, MINUTE_MS, HOUR_MS, 4 * HOUR_MS])
        self.schedule.actors.append(actor)

    # The end

    def _end(self) -> None:
        """No new faults: those that are under way end, and everything is done once more until nothing is left to do."""
        self.faults.are_over = True
        self.schedule.before_step = lambda: self.faults.land()
        self.schedule.run(self.schedule.steps + 50_000)
        if self.schedule.actors:
            raise self.schedule.violated(f"{self.schedule.actors[0].name} does not come to an end")
        self.faults.land(all_of_them=True)
        self.judge.readings.clear()
        self.cluster.settle()
        for broker in self.cluster.brokers:
            self._quietly(self.tasks.offload(broker), f"offload of {broker.name}")
        for write_id in sorted(self.writes.tried):
            self._quietly(self.writes.write(write_id), f"write {write_id}")
        for _ in range(4):
            self._quietly(self.tasks.retain, "retention")
            self.schedule.now += GRACE_MS + DELAY_MS + 10 * HOUR_MS
            self._quietly(self.tasks.sweep, "sweep")
        self._judge()

    def _quietly(self, act: Act, what: str) -> None:
        """One task alone, without faults: it has no reason to fail."""
        actor = Actor(self.schedule, what, act)
        actor.is_atomic = True
        before = sum(self.schedule.errors.values())
        actor.run_alone()
        if sum(self.schedule.errors.values()) != before and not self.judge.may_be_deleted:
            raise self.schedule.violated(f"{what} fails at the end, when nothing goes wrong: {self.schedule.errors}")

    def _judge(self) -> None:
        judge, unwatched = self.judge, Unwatched(self.store)
        newest = judge.newest(PATH)
        if newest is not None and not newest.manifest.is_deleted:
            m = newest.manifest
            found = batches_of(unwatched, m, m.log_start_offset, m.end_offset)
            judge.read(found, "the last reader")
            judge.check_whole(m, found, m.log_start_offset, m.end_offset, "the last reader")
            judge.check_gaps(m)
            gone = {n for n in judge.acknowledged if n >= m.end_offset}
            if gone:
                raise self.schedule.violated(
                    f"offsets {min(gone)} to {max(gone)} were archived, and the archive ends at {m.end_offset}"
                )
        elif newest is not None and not judge.may_be_deleted:
            raise self.schedule.violated("the topic was deleted by nobody")
        self.writes.check_last()
        waits = newest is not None and bool(newest.manifest.deleting)
        orphans = judge.orphans(self.tasks.paths())
        if orphans and not waits:
            raise self.schedule.violated(f"{len(orphans)} orphans after sweeps, as {min(orphans)}")
        findings = [
            f for f in scrub(RequestBudget(unwatched, None), decoded, ScrubSettings(deep=True), self.schedule.now) if f.is_anomaly
        ]
        if findings:
            raise self.schedule.violated(f"a scrub finds {findings[0]}")
