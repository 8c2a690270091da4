"""An agent: its loop, its queue and its tasks over a log directory, and what it keeps in a folder of its own.

Each turn is a thread: others run before its calls, as the agent's own loop does, which looks at the log directory meanwhile. The
agent is stopped and killed, and its machine loses power with the broker's; the next one finds the folder of the one before.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from random import Random  # noqa: TID251  # seeded

from local_log.errors import LogError, TopicDeleted, Unavailable, Unknown
from local_log.log_dir import LogDir
from remote import archive
from remote.keys import PartitionPath
from remote.scrub.finding import Kind as Finding
from remote.store.api import ObjectStore
from simulated.agent_threads import Lock, Turns
from simulated.archive_tasks import Tasks
from simulated.readers import decoded
from simulated.schedule import HOUR_MS, MINUTE_MS, Actor
from simulated.state_disks import StateDisk
from tiering.agent.abortable import Abortable
from tiering.agent.agent import Agent
from tiering.agent.controls import Controls
from tiering.agent.memory import MemoryFile
from tiering.agent.opening import Opening
from tiering.agent.outcome import Outcome
from tiering.agent.overview import agent_overview
from tiering.agent.schedule import Backoff, Job, Kind, Waiting
from tiering.agent.settings import Settings, Source, Surroundings
from tiering.agent.state import AgentState, Changes
from tiering.agent.tasks.scrub import ScrubTask
from tiering.agent.tasks.task import Task
from tiering.agent.view import AgentView
from tiering.agent.workers import Turn
from tiering.lag.unprotected import TopicRetention
from tiering.metrics.values import values
from tiering.offload.due import plan
from tiering.offload.plan import Action

AGENT = "agent "
STATE = "/state"
THREADS = 3
HAPPENINGS = {"kill": 0.1, "set_clock": 0.05}
"""What happens to each agent, and how often."""
CLOCK_MS_MAX = 2 * HOUR_MS
BACKOFF = Backoff(500, 30_000, 0.2)
STEPS_MAX = 40
"""Of a loop, before it is stopped."""
LOOK_MS = (30_000, 30_000, 10 * MINUTE_MS)
CALM_STEPS = 30
"""How long an agent lives on when nothing goes wrong any more: hours."""
CALM_ROUNDS = 4
"""How many times as long an agent may need that still has an error, or much to copy."""
OF_EACH_PARTITION = (Kind.copy, Kind.expire, Kind.local)
"""Kinds of jobs that each partition always has, if an agent does them at all."""
LASTS_MS = HOUR_MS
"""How long an agent lives that is alone."""
KILLED = 0.01
"""How often a process ends at a change of its folder."""
STATE_FAILS = 0.3
"""Of the schedules with agents, those in which the disks of their folders fail."""
STATE_BEGINS_TO_FAIL = 0.2
"""How often such a disk begins to fail at a call."""
FIRST_LOOKS_FAIL = 0.5
"""Of the schedules with agents and a topic that is made again, those in which an agent often cannot read its files at first."""
FIRST_LOOK_FAILS = 0.7
"""How often it cannot, once it has read the file that it begins with."""
STATE_FAILING = (frozenset({"write"}), frozenset({"read"}), frozenset({"read", "write"}))
STATE_FAILS_MS = (MINUTE_MS, 5 * MINUTE_MS, 30 * MINUTE_MS, 3 * HOUR_MS)
NO_DAMAGE = tuple(f"{kind}: " for kind in (Finding.lost, Finding.orphan, Finding.dangling_pin))
"""What a scrub may find: processes have ended, and brokers have deleted what was not archived."""


@dataclass
class JudgedTask:
    """A task whose outcomes are held against the archive."""

    inner: Task
    host: "AgentHost"

    @property
    def kind(self) -> Kind:
        """See Task."""
        return self.inner.kind

    @property
    def attempts_max(self) -> int | None:
        """See Task."""
        return self.inner.attempts_max

    def plan(self, state: AgentState, changes: Changes, now_ms: int) -> None:
        """See Task."""
        self.inner.plan(state, changes, now_ms)

    def turn(self, job: Job, state: AgentState) -> Turn:
        """See Task."""
        mark, turn = state.marks.get(job.subject), self.inner.turn(job, state)
        return lambda: self.host.judged(turn(), mark.topic_id if mark is not None else None)

    def done(self, outcome: Outcome, was: Waiting, state: AgentState, now_ms: int) -> None:
        """See Task."""
        self.inner.done(outcome, was, state, now_ms)


@dataclass(eq=False)
class AgentHost:
    """A machine with an agent on it, if one runs. `reported` is what agents have told their users."""

    tasks: Tasks
    groups: frozenset[str]
    """The groups of tasks of the schedule."""
    scrubs: bool
    disk: StateDisk = field(default_factory=StateDisk)
    process: Actor | None = None
    reported: list[str] = field(default_factory=list)
    view: AgentView | None = None
    """What the agent before knew in the end."""
    of: str = ""
    """Whose log directory it is."""
    topic: str = ""
    forgotten: set[str] = field(default_factory=set)
    """Topics of which it may have known what it could not keep: the disk of its folder had failed before the process ended."""
    _fails_until: int = 0

    @property
    def _state_fails(self) -> bool:
        return Random(f"state {self.tasks.schedule.seed}").random() < STATE_FAILS

    @property
    def _first_looks_fail(self) -> bool:
        return "remake" in self.groups and Random(f"unread begins {self.tasks.schedule.seed}").random() < FIRST_LOOKS_FAIL

    @property
    def name(self) -> str:
        """The kind of its actors."""
        return f"{AGENT}{self.of}"

    def live(self, actor: Actor) -> None:
        """An agent, until it is stopped. Only one at a time has the log directory."""
        if not self.may_begin():
            return
        self.ends()  # the one before may have died in one of its threads
        self.process = actor
        self.disk.changed = self._may_end
        if self._state_fails or self._first_looks_fail:
            self.disk.begins = self._may_fail
        try:
            self._lives(actor)
        finally:
            if self.process is actor:  # else its machine has lost its power, and this is the next one's
                self.ends()

    def ends(self) -> None:
        """The process ends, with all of its threads."""
        if self.process is not None:
            self.process.die()
            if self.disk.failures:
                self.forgotten |= {path.topic_id for path in self.tasks.judge.watched}
                self.disk.failures = 0
        self.process = None

    def loses_power(self, lost: float, seed: int) -> None:
        """See Machine."""
        self.ends()
        self.disk = self.disk.after_power_failure(lost, seed)

    def topic_is_deleted(self) -> None:
        """See Machine."""

    def log_is_new(self) -> None:
        """See Machine."""

    def may_begin(self) -> bool:
        """Whether no agent has the log directory."""
        return self.process is None or self.process.is_dead

    def happens(self, what: str, seed: int) -> None:
        """One of `HAPPENINGS`."""
        if self.process is None:
            return
        if what == "kill":
            self.tasks.schedule.faults["agent killed"] += 1
            self.tasks.schedule.tell(self.name, "is killed")
            self.ends()
        else:
            self.process.skew += Random(seed).randrange(-CLOCK_MS_MAX, CLOCK_MS_MAX)
            self.tasks.schedule.tell(self.name, "has its clock set")

    def judged(self, outcome: Outcome, topic_id: str | None) -> Outcome:
        """What a turn has come to: it is so, or it is one of the errors that may come."""
        tasks, what = self.tasks, f"{self.name}: {outcome.job.kind.name}"
        for error in (outcome.error, outcome.refused):
            if error is not None and self.may_come(error, outcome.job.kind):
                tasks.schedule.errors[type(error).__name__] += 1
            else:
                tasks.refuse(error, what)
        if outcome.copied is not None and topic_id is not None:
            tasks.judge.says_archived(self.path(topic_id), outcome.copied)
        if damage := [one for one in outcome.findings if not one.startswith(NO_DAMAGE)]:
            raise tasks.schedule.violated(f"{self.name}: a scrub finds {damage[0]}")
        return outcome

    # What differs between a broker's log directory and one of our own

    def log_dir(self, process: Actor) -> LogDir:
        """The directory as the agent reads it."""
        raise NotImplementedError

    def log_dir_now(self) -> LogDir:
        """The same at this moment, for the judge, whose calls neither fail nor let others run."""
        raise NotImplementedError

    def path(self, topic_id: str) -> PartitionPath:
        """The partition of its topic of this id."""
        raise NotImplementedError

    def its_tasks(self, process: Actor, store: ObjectStore) -> list[Task]:
        """Those that the configuration of the agent has, but for the scrub."""
        raise NotImplementedError

    def may_come(self, error: LogError, kind: Kind) -> bool:
        """Whether a turn may fail so, beside what may happen to a store."""
        return False

    def steps(self, agent: Agent) -> None:
        """One step of the loop."""
        agent.step()

    def has_stopped(self, agent: Agent) -> None:
        """It was not killed, and has kept what it knew."""

    # The process

    def _step(self, agent: Agent) -> None:
        """One step; where the folder's disk has failed in it, the agent tells."""
        failures, told, disk = self.disk.failures, agent._state.failures, self.disk
        self.steps(agent)
        if disk.failures > failures and agent._state.failures == told:
            raise self.tasks.schedule.violated(f"{self.name} does not tell that the disk of its folder fails")

    def _lives(self, process: Actor) -> None:
        controls, schedule = Controls(), process.schedule
        agent, opening = self._agent(process, controls)
        if self._first_looks_fail and not process.is_atomic and process.chance(FIRST_LOOK_FAILS):
            self._fails(process, frozenset({"read"}))
        with suppress(Unavailable, Unknown):  # as the command does: its turns try again
            opening()
        if process.is_atomic:
            until = schedule.now + LASTS_MS
            while schedule.now < until:
                self._step(agent)
        else:
            steps = process.random.randrange(1, STEPS_MAX)
            while steps and not schedule.is_calm:
                steps -= 1
                self._step(agent)
            if steps:
                self._lives_on(process, agent)
        self.view, failures = _looked_at(agent), self.disk.failures
        controls.stop()
        agent.run()
        if self.disk.failures == failures:
            self.has_stopped(agent)

    def _lives_on(self, process: Actor, agent: Agent) -> None:
        """It goes on for some time when nothing goes wrong any more, and comes to know and to do what it had failed to."""
        process.skew = 0
        begun = {*agent._state.queue.running}  # a turn may sleep for long, and have the wrong time until it ends
        for _ in range(CALM_ROUNDS):
            steps = 0
            while begun or steps < CALM_STEPS:
                self._step(agent)
                begun &= agent._state.queue.running.keys()
                steps += not begun
            if not _is_wrong(_looked_at(agent)) and not self._due():  # others may have claimed the partition just now
                break
        for job in _forgotten(agent):
            raise self.tasks.schedule.violated(f"{self.name}, which lives on, never looks again at {job}")
        self.is_calm(_looked_at(agent))

    def is_calm(self, view: AgentView) -> None:
        """What an agent knows that has lived on for long while nothing went wrong."""
        if wrong := _is_wrong(view):
            raise self.tasks.schedule.violated(f"{self.name}, which lives on when nothing goes wrong: {wrong}")
        for due in self._due():
            raise self.tasks.schedule.violated(f"{self.name}, which lives on, has not copied {due}")

    def _due(self) -> list[int]:
        """The base offsets of segments that an offload would copy now."""
        try:
            logs = [log for log in self.log_dir_now().logs() if log.partition.topic == self.topic]
            plans = [plan(log, self.tasks.judge.unwatched) for log in logs]
        except TopicDeleted:
            return []
        return [one.segment.base_offset for due in plans for one in due.decisions if one.action is Action.copy]

    def _agent(self, process: Actor, controls: Controls) -> tuple[Agent, Opening]:
        store = Abortable(self.tasks.store(process), controls)
        opening = Opening(partial(archive.create_archive, store, process, process))
        opening._turn = Lock(process)  # type: ignore[assignment]
        topic, retention = self.topic, TopicRetention(self.tasks.waits.retention_ms, None)
        source = Source((self.log_dir(process),), store.url, topic.__eq__, lambda topic: True, lambda topic: retention)
        around = Surroundings(
            Turns(process), controls, process, process.random.random, partial(self._reports, process), ready=opening
        )
        tasks = self.its_tasks(process, store)
        if self.scrubs:
            tasks.append(ScrubTask(store, process, decoded, 1.0, 4 * HOUR_MS))
        settings = Settings(THREADS, BACKOFF, process.random.choice(LOOK_MS))
        memory = MemoryFile(self.disk, STATE, "agent.json")
        return Agent(source, [JudgedTask(one, self) for one in tasks], settings, around, memory), opening

    def _reports(self, process: Actor, message: str) -> None:
        self.reported.append(message)
        process.schedule.tell(process.name, f"reports {message}")

    def _may_fail(self, verb: str) -> None:
        """The folder's disk begins to fail, or works again."""
        process, schedule = self.process, self.tasks.schedule
        if schedule.now >= self._fails_until:
            self.disk.failing = frozenset()
        if process is None or process.is_atomic or schedule.is_calm:
            self.disk.failing = frozenset()
        elif self._state_fails and not self.disk.failing and process.chance(STATE_BEGINS_TO_FAIL):
            self._fails(process, process.random.choice(STATE_FAILING))

    def _fails(self, process: Actor, verbs: frozenset[str]) -> None:
        schedule = self.tasks.schedule
        self.disk.failing = verbs
        self._fails_until = schedule.now + process.random.choice(STATE_FAILS_MS)
        schedule.faults["agent's state fails"] += 1
        schedule.tell(self.name, f"has a disk that does not {' and '.join(sorted(verbs))}")

    def _may_end(self) -> None:
        process = self.process
        if process is not None and not process.schedule.is_calm and not process.is_dead and process.chance(KILLED):
            process.schedule.faults["agent killed at its state"] += 1
            raise process.die()


def _is_wrong(view: AgentView) -> list[object]:
    """The errors that it shows."""
    wrong = [one.error for one in view.partitions if one.error is not None and one.error.kind != "TopicDeleted"]
    return [*wrong, *(one for one in (view.error, view.store) if one is not None)]


def _forgotten(agent: Agent) -> Iterator[Job]:
    """What it is to do for each of its partitions, if it neither does it nor will."""
    queue = agent._state.queue
    for folder in agent._state.views:
        for job in (Job(kind, folder) for kind in OF_EACH_PARTITION if kind in agent._tasks):
            if job not in queue.waiting and job not in queue.running:
                yield job


def _looked_at(agent: Agent) -> AgentView:
    """What it knows, which its pages and its metrics can tell."""
    view = agent.view()
    agent_overview(view)
    view.row()
    values(view, {})
    return view
