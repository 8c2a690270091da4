"""One schedule: brokers that are offloaded, an archive that is kept and read, and an end at which all of it is judged."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from random import Random  # noqa: TID251  # seeded

from archive_fakes import CountingIds

from local_log.formats.primitives import INT64_MAX
from remote import archive
from remote.keys import PartitionPath
from simulated.agents import AGENT, AgentHost
from simulated.agents_judge import check_agent, check_agents
from simulated.archive_tasks import Act, Tasks
from simulated.bit_rot import BitRot
from simulated.broker import Broker
from simulated.broker_agents import BrokerAgent
from simulated.brokers import REMAKE, Cluster
from simulated.clients import lives, produces
from simulated.consumer_groups import last_viewer, views_in_group
from simulated.drawn import drawn
from simulated.endpoint_readers import EndpointReaders
from simulated.groups import last_mover, last_reader, moves_in_group, reads_in_group
from simulated.judge import Judge, Watched
from simulated.own_agents import OwnAgent
from simulated.own_host import OwnHost, SteadyHost
from simulated.own_tasks import OwnTasks
from simulated.profiles import profile_of
from simulated.readers import reads
from simulated.remains import Remains
from simulated.schedule import GOES_ON, HAPPENS, HOUR_MS, MINUTE_MS, SLEEPS, Actor, Event, Schedule
from simulated.scrubs import anomalies
from simulated.serving_host import ServingHost
from simulated.splits import Spark
from simulated.stores import Faults, JudgedStore, StoreOf
from simulated.streams import Streams
from simulated.transactions_of_clients import transacts
from simulated.writes import WRITES, Writes

OWN = "own: "
SCRUBS = 0.3
"""Of the schedules with agents, those in which these scrub, too."""
ACKNOWLEDGES = 0.1
"""How often users acknowledge what agents have told them."""
TOPICS_MAX = 4
CLIENTS = {
    "producer": produces, "transactional producer": transacts, "member": reads_in_group, "mover": moves_in_group,
    "viewer": views_in_group,
}  # fmt: skip
LAST_CLIENTS = {"the last member": last_reader, "the last mover": last_mover, "the last viewer": last_viewer}
ROUNDS_MAX = 5
"""Of retention and sweeps in the end, until nothing is left to do."""


@dataclass(frozen=True)
class Kind:
    """A kind of actor: how often it is chosen, by how much its machine's clock may be off, and what it does."""

    weight: float
    skew_ms: int
    make: Callable[[], Act]
    may_begin: Callable[[], bool] = lambda: True


@dataclass(eq=False)
class World:
    """The world of one seed. `run` raises Violation."""

    seed: int
    story: list[str] | None = None
    schedule: Schedule = field(init=False)

    def __post_init__(self) -> None:
        self.schedule, self.profile = Schedule(self.seed, story=self.story), profile_of(self.seed)
        self.faults = Faults(self.schedule)
        self.store = JudgedStore(self.schedule)
        self.cluster = Cluster(self.schedule)
        self.judge = Judge(self.schedule, self.store, self.profile.waits, {self.cluster.path: Watched(self.cluster)})
        self.tasks = Tasks(self.schedule, self.judge, self.profile, lambda actor: StoreOf(actor, self.store, self.faults))
        self.writes = Writes(self.tasks)
        self.spark = Spark(self.tasks)
        self.streams = Streams(self.tasks, self.cluster, self.faults)
        self.rot = BitRot(self.schedule)
        scrubs, groups = Random(f"scrubs {self.seed}").random() < SCRUBS, self.profile.groups
        self.broker_agents = [
            BrokerAgent(self.tasks, groups, scrubs, broker=broker)
            for broker in (self.cluster.brokers if self.profile.has_agents else ())
        ]
        self.own_agent: OwnAgent | None = None
        self.own: OwnHost | None = None
        if "own" in self.profile.groups:
            if self.profile.serves:
                self.own = ServingHost(self.schedule, store_of=self.tasks.store)
            else:
                self.own = SteadyHost(self.schedule) if self.profile.is_steady else OwnHost(self.schedule)
            self.judge.watched[self.own.path] = Watched(self.own)
            if self.profile.has_own_agent:
                self.own_agent = OwnAgent(self.tasks, groups, scrubs, host=self.own)
        self.schedule.before_step = self._before_step
        self.actors = self.alone = 0
        self.events: list[Event] = []
        archive.create_archive(self.store, self.schedule, CountingIds("a"))

    def _before_step(self) -> None:
        self.faults.land()
        if isinstance(self.own, ServingHost):
            self.own.before_step()

    def kinds(self) -> dict[str, Kind]:
        """The kinds of actors of this schedule, some often, some seldom, some never."""
        tasks, random = self.tasks, self.schedule.random

        def often(group: str) -> float:
            drawn = random.choice([0.0, 0.2, 1.0, 2.0])
            return drawn if group in self.profile.groups else 0.0

        found: dict[str, Kind] = {
            agent.name: Kind(often("offload"), HOUR_MS, lambda of=agent: of.live, agent.may_begin) for agent in self.broker_agents
        }
        for broker in self.cluster.brokers:
            found[f"offload {broker.name}"] = Kind(
                0.0 if self.broker_agents else often("offload"), 2 * HOUR_MS, lambda of=broker: tasks.offload(of)
            )
            found[f"offload of a copy of {broker.name}"] = Kind(
                often("copies") / 3, 2 * HOUR_MS, lambda of=broker: tasks.offload_copy(of)
            )
            found[f"retention of {broker.name}"] = Kind(
                often("local retention") / 4, 0, lambda of=broker: tasks.drop_archived(of)
            )
        found["expire"] = Kind(often("expire"), 10 * MINUTE_MS, lambda: tasks.retain)
        found["sweep"] = Kind(often("sweep"), 10 * MINUTE_MS, lambda: tasks.sweep)
        found["acknowledge"] = Kind(ACKNOWLEDGES if self.broker_agents else 0.0, HOUR_MS, lambda: tasks.acknowledge)
        found["rotate"] = Kind(often("rotate"), 2 * HOUR_MS, lambda: tasks.rotate)
        found["pinned reader"] = Kind(often("readers"), 2 * HOUR_MS, lambda: reads(tasks, self._path(), pinned=True))
        found["reader"] = Kind(often("readers"), 20 * MINUTE_MS, lambda: reads(tasks, self._path(), pinned=False))
        for write_id in WRITES:
            found[f"write {write_id}"] = Kind(often("writes") / 3, 2 * HOUR_MS, lambda of=write_id: self.writes.write(of))
        found["write"] = Kind(often("writes") / 2, 2 * HOUR_MS, lambda: self.writes.write_once)
        found["look"] = Kind(often("writes"), 0, lambda: self.writes.look)
        found["delete"] = Kind(0.05 if random.random() < 0.1 else 0.0, 10 * MINUTE_MS, lambda: tasks.delete)
        if self.own is not None:
            own, path, consumers = OwnTasks(tasks, self.own), self.own.path, EndpointReaders(tasks, self.own)
            agent = self.own_agent
            if agent is not None:
                found[agent.name] = Kind(often("own"), 10 * MINUTE_MS, lambda: agent.live, agent.may_begin)
            share = 0.0 if agent is not None else 1.0
            found["own offload"] = Kind(share * often("own"), 0, lambda: own.offload)
            found["own retention"] = Kind(share * often("own"), 0, lambda: own.retain)
            found["own expiry"] = Kind(share * often("own") / 2, 10 * MINUTE_MS, lambda: own.expire)
            found["own reader"] = Kind(often("own") / 2, 0, lambda: own.reads(committed=False))
            found["own committed reader"] = Kind(often("own") / 2, 0, lambda: own.reads(committed=True))
            found["consumer"] = Kind(often("own") / 2, 0, lambda: consumers.reads(committed=False))
            found["committed consumer"] = Kind(often("own") / 2, 0, lambda: consumers.reads(committed=True))
            found["pinned reader of own"] = Kind(often("own") / 2, 2 * HOUR_MS, lambda: reads(tasks, path, pinned=True))
        found |= self._spark_kinds()
        serving = self.own
        if isinstance(serving, ServingHost):
            for name, life in CLIENTS.items():
                found[name] = Kind(2 * often("own"), 0, lambda of=life, to=serving: lives(to, of))
        if self.profile.kinds:
            return {name: replace(found[name], weight=weight) for name, weight in self.profile.kinds.items()}
        if not any(kind.weight for kind in found.values()):
            first = "agent A" if self.broker_agents else "offload A"
            found[first] = replace(found[first], weight=1.0)
        return found

    def _spark_kinds(self) -> dict[str, Kind]:
        """Those of Spark's queries. Other schedules are what they would be without them."""
        groups, hours = self.profile.groups, 2 * HOUR_MS
        of_splits, of_streams = (float(group in groups) for group in ("splits", "streams"))
        return {
            "spark driver": Kind(0.5 * of_splits, hours, lambda: self.spark.plan),
            "spark executor": Kind(2 * of_splits, hours, lambda: self.spark.execute),
            "stream": Kind(1.5 * of_streams, hours, lambda: self.streams.drive),
            "live tail": Kind(0.2 * of_streams, hours, lambda: self.streams.boundary_of),
        }

    def run(self, events: Iterable[Event] | None = None) -> None:
        """Lives through these events, or those of its seed, ends what is under way, and judges what is left."""
        kinds = self.kinds()
        for event in drawn(self, kinds) if events is None else events:
            self.events.append(event)
            self._happens(event, kinds)
        self._end()

    def _happens(self, event: Event, kinds: dict[str, Kind]) -> None:
        schedule = self.schedule
        schedule.later(event.after_ms)
        if event.verb == GOES_ON:
            schedule.goes_on(event.number, event.what, event.ms)
        elif event.verb == HAPPENS and event.what == REMAKE:
            self._remake()
        elif event.verb == HAPPENS and event.what.startswith(AGENT):
            of, what = event.what.removeprefix(AGENT).split()
            for agent in self.agents():
                if agent.of == of:
                    agent.happens(what, event.number)
        elif event.verb == HAPPENS:
            where: Cluster | OwnHost | None = self.own if event.what.startswith(OWN) else self.cluster
            if where is not None:
                where.happens(event.what.removeprefix(OWN), event.number)
        elif event.verb == SLEEPS:
            if event.number in schedule.actors:
                schedule.faults["pause"] += bool(schedule.actors[event.number].may_fail)
                schedule.tell(schedule.actors[event.number].name, f"sleeps for {event.ms / HOUR_MS:.1f} h")
                schedule.actors[event.number].wakes = schedule.now + event.ms
        else:
            self.actors += 1
            name = f"{event.what} #{event.number}"
            schedule.actors[event.number] = Actor(schedule, name, kinds[event.what].make(), event.ms, event.number)

    def agents(self) -> list[AgentHost]:
        """The machines with agents."""
        return [*self.broker_agents, *([self.own_agent] if self.own_agent is not None else [])]

    def has_answered(self, what: str) -> bool:
        """Whether the latest answer of the process that has clients is of this kind."""
        return isinstance(self.own, ServingHost) and self.own.answered == what

    def backlog(self) -> int:
        """How many offsets of the brokers' log are not archived."""
        newest = self.judge.newest(self.cluster.path)
        return self.cluster.high_watermark - (newest.manifest.end_offset if newest is not None else 0)

    def _path(self) -> PartitionPath:
        """Of the brokers' topic, at times of one of this name that was deleted."""
        paths = [path for path in self.judge.watched if path.topic == self.cluster.path.topic]
        return paths[-1] if len(paths) == 1 else paths[self.schedule.calls % len(paths)]

    def _remake(self) -> None:
        """The brokers' topic is deleted and made again; the archive keeps what it has until somebody deletes it there, too."""
        if len(self.judge.watched) < TOPICS_MAX:
            old = self.judge.watched[self.cluster.path]
            # Also what was truncated before, which an offload may have seen.
            old.dropped_below |= {broker.name: INT64_MAX for broker in self.cluster.brokers}
            old.log = self.cluster.remake("UVWX"[len(self.judge.watched) - 1] * 22)
            self.tasks.path = self.cluster.path
            self.judge.watched[self.cluster.path] = Watched(self.cluster)

    # The end

    def _end(self) -> None:
        """No new faults: those that are under way end, and everything is done once more until nothing is left to do."""
        self.schedule.ends(50_000)
        if self.schedule.actors:
            raise self.schedule.violated(f"{min(self.schedule.actors.items())[1].name} does not come to an end")
        self.faults.land(all_of_them=True)
        self.judge.readings.clear()
        self.cluster.settle()
        if self.own is not None:
            self.own.settle()
            own = OwnTasks(self.tasks, self.own)
            if isinstance(self.own, ServingHost):
                for name, life in LAST_CLIENTS.items():
                    self._quietly(lives(self.own, life), name)
            if self.own_agent is not None:
                for _ in range(ROUNDS_MAX):
                    before = {*self.store.objects}
                    self._quietly(self.own_agent.live, "the last agent of the own log")
                    if before == {*self.store.objects}:
                        break
                check_agent(self.judge, self.own_agent)
            before = {*self.store.objects}
            self._quietly(own.offload, "offload of the own directory")
            if self.own_agent is not None and before != {*self.store.objects}:
                raise self.schedule.violated(f"an offload of the own directory writes {min({*self.store.objects} ^ before)}")
        self._offload_all()
        for write_id in self.writes.to_repeat():
            self._quietly(self.writes.write(write_id), f"write {write_id}")
        if "splits" in self.profile.groups:
            self._quietly(self.spark.read_all, "the last read of Spark", "MissingRange")
        self._quietly(self.streams.settle, "the last drivers of streams")
        self._judge_logs()  # before most of it expires
        self.rot.check(self.judge, self.tasks.paths())
        for _ in range(ROUNDS_MAX):
            before = {*self.store.objects}
            self._quietly(self.tasks.retain, "retention")
            if self.own is not None:
                self._quietly(own.expire, "expiry of the own log")
                self._quietly(own.retain, "local retention")
            waits = self.profile.waits
            self.schedule.now += waits.grace_ms + waits.delay_ms + waits.pin_ms
            self._quietly(self.tasks.sweep, "sweep")
            if before == {*self.store.objects}:
                break
        if self.own is not None:
            for committed in (False, True):
                self._quietly(own.reads(committed=committed), "the last own reader")
                self._quietly(EndpointReaders(self.tasks, self.own).reads(committed=committed), "the last consumer")
        self._judge()

    def _offload_all(self) -> None:
        """One of the brokers may have a disk on which a bit has changed; what it does not archive, another does."""
        newest, brokers = self.judge.newest(self.cluster.path), [*self.cluster.brokers]
        archived_to = newest.manifest.end_offset if newest is not None else 0
        rotten = next(
            (broker for broker in brokers if _is_replicated(broker, brokers) and self.rot.rots(broker, archived_to)), None
        )
        in_turn = sorted(brokers, key=lambda one: one is not rotten)
        self.tasks.read_manifests_again()
        # Twice: what one broker has is not lost for the others, even where it lies in a damaged file, or cannot be copied. They
        # know it once that broker has told of it.
        lives = {agent.of: agent.live for agent in self.broker_agents}
        for number in range(ROUNDS_MAX):
            before = {*self.store.objects}
            for broker in in_turn:
                act = lives.get(broker.name) or self.tasks.offload(broker)
                self._quietly(act, f"offload of {broker.name}", "Corrupt" if broker is rotten else None)
            if number and (not lives or before == {*self.store.objects}):
                break
        before = {*self.store.objects}
        self._quietly(self.tasks.offload(brokers[0]), "offload of what is archived", "Corrupt" if brokers[0] is rotten else None)
        if before != {*self.store.objects}:
            raise self.schedule.violated(f"an offload again writes {min({*self.store.objects} ^ before)}")
        self._check_copied(one for one in brokers if one is not rotten)
        if self.broker_agents:
            check_agents(self.judge, self.broker_agents, self.cluster.path)

    def _check_copied(self, brokers: Iterable[Broker]) -> None:
        """What has rolled is archived, in each log that begins with a whole segment."""
        newest, segments = self.judge.newest(self.cluster.path), [(one, one.log.local.segments) for one in brokers]
        archived_to = newest.manifest.end_offset if newest is not None else 0
        for broker, of in segments if not self.judge.watched[self.cluster.path].may_be_deleted else ():
            start, rolled = broker.log.log_start_offset, of.active.base_offset
            if of.first.base_offset >= start and min(rolled, broker.log.last_stable_offset) > max(archived_to, start):
                raise self.schedule.violated(f"{broker.name} has rolled at {rolled}, and the archive ends at {archived_to}")

    def _quietly(self, act: Act, what: str, may_fail: str | None = None) -> None:
        """One task alone, without faults: it has no reason to fail, or this one."""
        self.alone += 1
        actor = Actor(self.schedule, what, act, number=-self.alone)
        actor.is_atomic = True
        before = Counter(self.schedule.errors)
        actor.run_alone()
        new = {name: count for name, count in (self.schedule.errors - before).items() if name != may_fail}
        if new and not any(watched.may_be_deleted for watched in self.judge.watched.values()):
            raise self.schedule.violated(f"{what} fails at the end, when nothing goes wrong: {new}")

    def _judge(self) -> None:
        waits = self._judge_logs()
        self.writes.check_last()
        orphans = self.judge.orphans(self.tasks.paths())
        if orphans and not any(waits):
            raise self.schedule.violated(f"{len(orphans)} orphans after sweeps, as {min(orphans)}")
        if self.store.uploads and not any(waits):
            raise self.schedule.violated(f"{len(self.store.uploads)} uploads that nobody has ended after sweeps")
        if findings := anomalies(self.judge):
            raise self.schedule.violated(f"a scrub finds {findings[0]}")

    def _judge_logs(self) -> list[bool]:
        remains = Remains(self.judge, self.cluster, self.own)
        return [remains.check(path, watched) for path, watched in self.judge.watched.items()]


def _is_replicated(broker: Broker, brokers: Iterable[Broker]) -> bool:
    """Whether another one is sure to archive what it has in inactive segments.

    One whose first segment begins below its log start offset may no longer know how transactions have ended that began there, and
    archives nothing after them until it has deleted that segment.
    """
    logs, end = [other.log for other in brokers if other is not broker], broker.log.local.segments.active.base_offset
    parts = [(log, log.local.segments.first.base_offset, log.local.segments.active.base_offset) for log in logs]
    return any(first >= log.log_start_offset and active >= end for log, first, active in parts)
