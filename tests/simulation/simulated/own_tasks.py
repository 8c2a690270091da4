"""What the tasks of a process that owns its log directory do, and its readers over both tiers."""

from local_log.engine.memory_records import batch_at, memory_batches
from local_log.errors import Corrupt, LogError, NotFound, OffsetOutOfRange
from local_log.log_reader import open_log
from remote.manifest.store import load_newest
from remote.read.context import ReadContext
from remote.store.store_time import StoreRun
from simulated.archive_tasks import OWN_TOPIC, Act, Tasks
from simulated.disks import DiskOf
from simulated.own_host import LOGS, PARTITION, OwnHost
from simulated.readers import decoded
from simulated.schedule import Actor
from tiering.local_tier.local_retention import retain
from tiering.local_tier.own_log_dir import OwnLogDir
from tiering.losses.seen_logs import SeenLogs
from tiering.offload.run import OffloadLogs
from tiering.read.live_log import LiveLog, archive_loader
from tiering.read.tiered_log import Isolation
from tiering.retention import expire
from tiering.retention.plan import RetentionPlan
from tiering.retention.run import LocalTier, Retention

FETCHES_MAX = 8
FETCH_BYTES = (1, 200, 600, 1 << 16)


class OwnTasks:
    """The tasks of `host`, which end when its process does."""

    def __init__(self, tasks: Tasks, host: OwnHost) -> None:
        self.tasks, self.host = tasks, host
        self.seen: SeenLogs = {}

    def _dir(self, actor: Actor) -> OwnLogDir:
        self.host.actors.append(actor)
        return OwnLogDir(DiskOf(actor, self.host), LOGS, self.host.tier)

    def offload(self, actor: Actor) -> None:
        """The agent's copies."""
        own = self._dir(actor)
        run = OffloadLogs(
            self.tasks.store(actor), actor, actor, own.id(), lambda size: None, self.tasks.transforms(actor), known=self.seen,
            deleted_to=own.deleted_to,
        )  # fmt: skip
        found = own.found(lambda topic: topic == OWN_TOPIC)
        own.settle(PARTITION)
        for _, done in run.run(found, 1):
            if done.entry is not None:
                self.tasks.judge.says_archived(self.host.path, done.entry)
            self.tasks.refuse(done.error, "offload of the own directory")
        self.seen = {p: seen for p, seen in {**self.seen, **run.changes}.items() if seen is not None}

    def retain(self, actor: Actor) -> None:
        """Local retention: what the archive has leaves the disk. The log starts where the archive does."""
        own, log = self._dir(actor), self.host.log
        now = log.offsets
        reader = open_log(own.disk, f"{LOGS}/{PARTITION}", PARTITION, now.log_start, now.high_watermark.offset)
        store, keep = self.tasks.store(actor), self.host.tier.checkpoint
        retain(log, reader, store, actor.now_ms(), decoded=decoded, keep_starts=keep)
        self.tasks.judge.check_local_log(self.host.path, log)
        self.host.start_max = max(self.host.start_max, log.log_start_offset)

    def expire(self, actor: Actor) -> None:
        """The agent's expiry: by the settings, and of what was deleted from the log."""
        own, store, path = self._dir(actor), self.tasks.store(actor), self.host.path
        start = self.host.tier.followed_start(PARTITION)
        reader = open_log(own.disk, f"{LOGS}/{PARTITION}", PARTITION, start, self.host.log.high_watermark)
        stored = load_newest(store, path)
        if stored is None:
            return
        run = Retention(store, actor, actor, self.tasks.given, LocalTier(LOGS, {PARTITION: reader}), follows=True)
        due = run.plan(path, stored.manifest)
        if isinstance(due, LogError):
            self.tasks.refuse(due, "expiry of the own log")
        elif isinstance(due, RetentionPlan) and not due.is_empty:
            done = expire.expire(due, StoreRun(store, actor, actor), "own")
            self.tasks.refuse(done.error, "expiry of the own log")
            self.tasks.judge.says_expired(path, done.log_start_offset)

    def reads(self, *, committed: bool) -> Act:
        """A client that fetches, and fetches on."""

        def act(actor: Actor) -> None:
            self.host.actors.append(actor)
            load = archive_loader(self.tasks.store(actor), self.host.path, ReadContext(decoded))
            live = LiveLog(self.host.log, PARTITION, load)
            isolation = Isolation.read_committed if committed else Isolation.read_uncommitted
            now = self.host.log.offsets
            offset: int | None = actor.random.randrange(now.log_start, now.end.offset + 1)
            for _ in range(FETCHES_MAX):
                if offset is None:
                    return
                offset = self._fetched(live, offset, actor.random.choice(FETCH_BYTES), isolation, actor.name)
                actor.pause()

        return act

    def _fetched(self, live: LiveLog, offset: int, size: int, isolation: Isolation, who: str) -> int | None:
        """Where to go on, once what was fetched is what was acknowledged."""
        host, violated = self.host, self.tasks.schedule.violated
        limit = live.end_offset(isolation)
        if live.end_offset() < host.end:
            raise violated(f"readers are let up to {live.end_offset()}, and {host.end} is acknowledged")
        try:
            found = live.fetch(offset, size, isolation)
        except (OffsetOutOfRange, NotFound, Corrupt) as e:
            if offset >= self._start():
                raise violated(f"{who} at {offset}: {e!r}") from e
            return None
        data = found.read()
        batches = {b.base_offset: data[b.position : b.position + b.size] for b in memory_batches(data)}
        self.tasks.judge.read(host.path, batches, who)
        ends = [batch_at(body, 0).last_offset + 1 for body in batches.values()]
        if not ends:
            if offset < limit and offset >= self._start():
                raise violated(f"{who} is given nothing at {offset}, and the log goes on to {limit}")
            return None
        if min(batches) > offset or ends[0] <= offset or ends[:-1] != [*batches][1:]:
            raise violated(f"{who} at {offset} is given the batches {sorted(batches)}")
        if found.aborted is not None:
            self.tasks.judge.check_aborted(host.path, batches, found.aborted, who)
        return ends[-1]

    def _start(self) -> int:
        """The first offset that may be read: by the log, or by the archive, whose retention goes first."""
        newest = self.tasks.judge.newest(self.host.path)
        archived = newest.manifest.log_start_offset if newest is not None else 0
        return max(archived, self.host.log.log_start_offset)
