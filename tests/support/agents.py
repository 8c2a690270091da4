"""Agents in a world of their own: a simulated disk with a broker's logs, a store in memory, and a clock that nobody waits for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from archive_fakes import CountingIds, FixedClock, MemoryStore
from logs_to_archive import finer_logs
from simulated_disk import SimulatedDisk

from local_log.formats.filenames import parse_partition_dir
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from remote import archive
from remote.store.api import ObjectStore
from remote.store.instrumented import Trouble
from tiering.agent.agent import Agent
from tiering.agent.controls import Controls
from tiering.agent.memory import MemoryFile
from tiering.agent.schedule import Backoff
from tiering.agent.settings import Settings, Source, Surroundings
from tiering.agent.tasks.copy import CopyTask
from tiering.agent.tasks.expire import ExpireTask
from tiering.agent.tasks.lost_partitions import LostPartitionsTask
from tiering.agent.tasks.scrub import ScrubTask
from tiering.agent.tasks.sweep import SweepTask
from tiering.agent.tasks.task import Task
from tiering.agent.workers import InTurn, Workers
from tiering.cluster import Cluster
from tiering.lag.unprotected import TopicRetention
from tiering.retention.policy import Given

LOGS = "/logs"
STATE = "/state"
MINUTE_MS = 60_000
BACKOFF = Backoff(500, 30_000, 0.0)


class WorldClock(FixedClock):
    """Time passes when somebody waits, and everybody's time: the disk's, the store's. `at` is what happens then."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[tuple[int, Callable[[], Any]]] = []
        self.on_tick: Callable[[int], None] = lambda now_ms: None

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        end = self.now + round(seconds * 1000)
        while self.at and self.at[0][0] <= end:
            at_ms, act = self.at.pop(0)
            self.set(max(self.now, at_ms))
            before = self.now
            act()
            end += self.now - before  # who waits goes on waiting for as long, whatever the clock is set to
        self.set(max(self.now, end))

    def set(self, now_ms: int) -> None:
        self.now = now_ms
        self.on_tick(now_ms)

    def when(self, at_ms: int, act: Callable[[], Any]) -> None:
        self.at = sorted([*self.at, (at_ms, act)], key=lambda one: one[0])


@cache
def _files(segments: int) -> dict[str, bytes]:
    with TemporaryDirectory() as folder:
        root = finer_logs(Path(folder), segments)
        return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@dataclass
class World:
    """A broker's disk, an archive, and the agent's own folder. `store` is what agents are given, around `archive`."""

    disk: SimulatedDisk = field(default_factory=SimulatedDisk)
    clock: WorldClock = field(default_factory=WorldClock)
    ids: CountingIds = field(default_factory=CountingIds)
    archive: MemoryStore = field(init=False)

    def __post_init__(self) -> None:
        self.archive = MemoryStore(self.clock)
        self.clock.on_tick = lambda now_ms: setattr(self.disk, "now_ms", now_ms)
        self.disk.now_ms = self.clock.now - 3_600_000
        self.disk.make_folder(LOGS)
        archive.create_archive(self.archive, self.clock, self.ids)
        self.archive.calls.clear()

    def has(self, *partitions: str, segments: int = 12) -> "World":
        """Puts these golden partitions into the log directory, each cut finer, and what the checkpoint files say of all."""
        for name, body in _files(segments).items():
            folder, slash, _ = name.rpartition("/")
            if not slash or folder in partitions:
                self.disk.make_folder(f"{LOGS}/{folder}" if slash else LOGS)
                self.disk.write(f"{LOGS}/{name}", 0, body)
        return self

    def copy(self, partition: str, name: str) -> None:
        """Another partition with the same log, in a topic of another id."""
        parsed = parse_partition_dir(name)
        assert parsed is not None
        self.disk.make_folder(f"{LOGS}/{name}")
        for file in self.disk.files(f"{LOGS}/{partition}"):
            body = self.disk.read(f"{LOGS}/{partition}/{file}")
            if file == "partition.metadata":
                body = f"version: 0\ntopic_id: {parsed.topic[-1] * 22}\n".encode()
            self.disk.write(f"{LOGS}/{name}/{file}", 0, body)
        for checkpoint in ("replication-offset-checkpoint",):
            lines = self.disk.read(f"{LOGS}/{checkpoint}").decode().splitlines()
            topic, _, number = partition.rpartition("-")
            of = next(line.split()[2] for line in lines[2:] if line.split()[:2] == [topic, number])
            lines.append(f"{parsed.topic} {parsed.partition} {of}")
            self.rewrite(checkpoint, "\n".join([lines[0], str(len(lines) - 2), *lines[2:], ""]))

    def rewrite(self, name: str, text: str) -> None:
        self.disk.truncate(f"{LOGS}/{name}", 0)
        self.disk.write(f"{LOGS}/{name}", 0, text.encode())

    def log_dir(self) -> LogDir:
        return LogDir(self.disk, LOGS)

    def logs(self) -> dict[str, LogReader]:
        return {str(log.partition): log for log in self.log_dir().logs()}

    def agent(
        self,
        store: ObjectStore | None = None,
        *,
        given: tuple[Given, ...] = (),
        tasks: tuple[str, ...] = ("copy", "expire"),
        settings: Settings | None = None,
        round_ms: int | None = None,
        wanted: Callable[[str], bool] = lambda topic: True,
        tell: Callable[[str], None] = lambda message: None,
        events: Callable[[str, Mapping[str, str | int]], None] = lambda message, fields: None,
        cluster: Cluster | None = None,
        trouble: Callable[[], Trouble | None] = lambda: None,
        retention: Callable[[str], TopicRetention | None] = lambda topic: None,
        workers: Workers | None = None,
    ) -> tuple[Agent, Controls]:
        """An agent that starts now."""
        inner, controls = store or self.archive, Controls()
        kinds: dict[str, list[Task]] = {
            "copy": [CopyTask(inner, self.clock, self.ids), LostPartitionsTask(inner, self.clock, self.ids)],
            "expire": [ExpireTask(inner, self.clock, self.ids, given, 5 * MINUTE_MS, cluster)],
            "sweep": [SweepTask(inner, self.clock, self.ids, 24 * 60 * MINUTE_MS, round_ms or 24 * 60 * MINUTE_MS)],
            "scrub": [ScrubTask(inner, self.clock, decoded(), 0.0, round_ms or 7 * 24 * 60 * MINUTE_MS)],
        }
        copied = (lambda topic: True) if "copy" in tasks else None
        source = Source((self.log_dir(),), "memory://store", wanted, copied, retention)
        around = Surroundings(workers or InTurn(self.clock), controls, self.clock, lambda: 0.5, tell, trouble, tell=events)
        agent = Agent(
            source, [one for kind in tasks for one in kinds[kind]], settings or Settings(1, BACKOFF), around,
            MemoryFile(self.disk, STATE, "agent.json"),
        )  # fmt: skip
        return agent, controls

    def run(self, agent: Agent, controls: Controls, minutes: float) -> int:
        """Lets an agent live for so long, then stops it."""
        self.clock.when(self.clock.now + round(minutes * MINUTE_MS), controls.stop)
        return agent.run()


def decoded() -> Any:
    from remote.read.context import ReadContext

    return ReadContext().decoded


def roll_again(world: World, partition: str) -> None:
    """The broker rolls: the active segment becomes inactive, up to the high watermark, and an empty one follows."""
    log = world.logs()[partition]
    end = log.log_end_offset
    for suffix in (".log", ".index", ".timeindex"):
        world.disk.write(f"{LOGS}/{partition}/{end:020d}{suffix}", 0, b"")
