"""A broker with a topic that is deleted and created again, and what agents tell of that."""

from collections.abc import Callable

from agents import LOGS, MINUTE_MS, World
from archive_fakes import FailsBefore
from logs_to_archive import path_of

from local_log.errors import Unavailable
from local_log.formats.filenames import PARTITION_METADATA
from local_log.formats.primitives import INT64_MAX
from remote.manifest.losses import acknowledged, unacknowledged
from remote.manifest.store import ManifestWriter, load_newest
from tiering.agent.agent import Agent
from tiering.metrics.series import LOST
from tiering.metrics.values import values

ONE, TXN = "g-codec-lz4-0", "g-txn-0"
LABELS = ("g-codec-lz4", "0")


class TopicMadeAgain(World):
    """A broker with a topic that is deleted and created again. `said` is what agents have reported."""

    def __post_init__(self) -> None:
        World.__post_init__(self)
        self.has(ONE, TXN)
        log = self.logs()[ONE]
        self.path, self.lost = path_of(log), log.log_end_offset - log.segments[-1].base_offset
        self.said: list[str] = []

    def delete(self) -> None:
        self.disk.delete_folder(f"{LOGS}/{ONE}")

    def make_again(self) -> None:
        folder = f"{LOGS}/{ONE}"
        if self.disk.exists(folder):
            self.delete()
        self.disk.make_folder(folder)
        for suffix in (".log", ".index", ".timeindex"):
            self.disk.write(f"{folder}/{0:020d}{suffix}", 0, b"")
        self.disk.write(f"{folder}/{PARTITION_METADATA}", 0, b"version: 0\ntopic_id: " + b"Z" * 21 + b"A\n")

    def fill_again(self) -> None:
        """The topic is made again, and gets as many records as it had."""
        if self.disk.exists(f"{LOGS}/{ONE}"):
            self.delete()
        self.has(ONE)
        self.rewrite(f"{ONE}/{PARTITION_METADATA}", "version: 0\ntopic_id: " + "Y" * 21 + "A\n")

    def grow_unrecorded(self) -> int:
        """The manifest has recorded the beginning of the log, the state folder all of it; gives what is not archived."""
        checkpoint, log = "replication-offset-checkpoint", self.logs()[ONE]
        end, few, offsets = log.log_end_offset, log.segments[2].base_offset, self.disk.read(f"{LOGS}/{checkpoint}").decode()
        self.rewrite(checkpoint, offsets.replace(f"g-codec-lz4 0 {end}", f"g-codec-lz4 0 {few:04d}"))
        for name in self.disk.files(f"{LOGS}/{ONE}"):
            if name[0].isdigit() and name >= f"{few:020d}":
                self.disk.delete(f"{LOGS}/{ONE}/{name}")
        self.lives(5)
        self.has(ONE)
        takes_nothing = FailsBefore(self.archive, Unavailable("full"), lambda verb, *_: verb in ("upload", "put_if_absent"))
        self.run(*self.agent(takes_nothing), 3)
        stored = load_newest(self.archive, self.path)
        assert stored is not None
        assert max(stored.manifest.local_log_end_offsets.values()) < end
        return end - stored.manifest.end_offset

    def after_the_next_id(self, act: Callable[[], None]) -> None:
        """It happens once the topic id has been read, in the midst of a look."""
        read, left = self.disk.read, [True]

        def then(file: str, start: int = 0, end: int | None = None) -> bytes:
            found = read(file, start, end)
            if file == f"{LOGS}/{ONE}/{PARTITION_METADATA}" and left:
                left.clear()
                act()
            return found

        self.disk.read = then  # type: ignore[method-assign]

    def lives(self, minutes: int, *acts: object) -> Agent:
        """An agent lives for so long; each of `acts` happens two minutes after the one before."""
        agent, controls = self.agent(tell=self.said.append)
        for number, act in enumerate(acts, 1):
            self.clock.when(self.clock.now + 2 * number * MINUTE_MS + 11_000, act)  # type: ignore[arg-type]
        self.run(agent, controls, minutes)
        return agent

    def assert_told(self, agent: Agent, lost: int) -> None:
        view = agent.view()
        assert {labels: n for labels, n in values(view, {})[LOST].items() if n} == ({LABELS: lost} if lost else {})
        assert view.row()["lost_offsets"] == lost
        assert (view.row()["lost_since_ms"] is not None) == bool(lost)
        rows = [row for row in (*view.row()["partitions"], *view.row()["gone"]) if row["lost_offsets"]]
        assert [row["lost_offsets"] for row in rows] == ([lost] if lost else [])

    def acknowledge(self) -> None:
        stored = load_newest(self.archive, self.path)
        assert stored is not None
        assert sum(loss.end - loss.start for loss in unacknowledged(stored.manifest)) == self.lost
        writer = ManifestWriter(self.archive, self.path, self.clock, self.ids, "jo", stored.manifest.writer_epoch)
        writer.commit(stored.manifest, lambda m: acknowledged(m, [(0, INT64_MAX)], "jo", self.clock.now_ms()))

    def messages(self) -> list[str]:
        return [message for message in self.said if f"{ONE}: {self.lost} offsets are lost" in message]
