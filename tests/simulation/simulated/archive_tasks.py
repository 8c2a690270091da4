"""What is done to an archive, each as the command or the agent does it: offload, retention, sweep, key rotation, deletion."""

from collections.abc import Callable
from dataclasses import replace

from local_log.errors import Conflict, Corrupt, Fenced, Invalid, LogError, NotFound, Unavailable, Unknown
from local_log.log_dir import LogDir
from remote.keys import PartitionPath, partition_of
from remote.manifest.model import Manifest
from remote.store.api import ObjectStore
from remote.store.retrying import Retrying
from remote.store.store_time import StoreRun, store_now_ms
from remote.transforms.encoder import Encryption, Transforms
from remote.transforms.keys import LocalKeyRing
from simulated.broker import LOGS, PATH, Broker, Copy
from simulated.disks import DiskOf, HasDisk
from simulated.judge import Judge
from simulated.profiles import Profile
from simulated.schedule import Actor, Schedule
from simulated.stores import StoreOf
from tiering.keys.rotate import Rotator, partitions, plan_rotation
from tiering.losses import acknowledge
from tiering.losses.seen_logs import SeenLogs
from tiering.offload.copy import Done
from tiering.offload.run import OffloadLogs
from tiering.retention import delete_topic
from tiering.retention.policy import Given
from tiering.retention.run import Retention
from tiering.sweep import collect, writes

OWN_TOPIC = "payments"
KEYS = {f"k{number}": bytes([number]) * 32 for number in range(9)}
EXPECTED = (Unavailable, Unknown, Conflict, Fenced, Invalid, NotFound)
"""What may come of a task while things go wrong; anything else says that the archive is damaged."""

Act = Callable[[Actor], None]


class Tasks:
    """The tasks over one archive, and what they share: the current key, and what each broker's host remembers of its logs."""

    def __init__(self, schedule: Schedule, judge: Judge, profile: Profile, store_of: Callable[[Actor], StoreOf]) -> None:
        self.schedule, self.judge, self.waits, self._store_of = schedule, judge, profile.waits, store_of
        self.losses = profile.losses
        waits = profile.waits
        settings = {"retention.ms": waits.retention_ms, "file.delete.delay.ms": waits.delay_ms, "cleanup.policy": "delete"}
        self.given = tuple(Given(topic, name, str(of)) for topic in (PATH.topic, OWN_TOPIC) for name, of in settings.items())
        self.key = 0
        self.is_encrypted = "rotate" in profile.groups or schedule.random.random() < 0.2
        self.retries = schedule.random.random() < 0.6
        self.seen: dict[str, SeenLogs] = {}
        self.path = PATH
        """Of the brokers' topic, as it is now."""

    def store(self, actor: Actor) -> ObjectStore:
        """The archive as a process opens it."""
        way = self._store_of(actor)
        return Retrying(way, actor, actor.random.random) if self.retries else way

    def ring(self) -> LocalKeyRing:
        return LocalKeyRing("simulation", f"k{self.key}", KEYS)

    def transforms(self, actor: Actor) -> Transforms:
        return Transforms(encryption=Encryption(self.ring(), actor)) if self.is_encrypted else Transforms()

    def refuse(self, error: LogError | None, what: str) -> None:
        """Notes an error that may come; any other is a violation."""
        if error is None:
            return
        self.schedule.errors[type(error).__name__] += 1
        self.schedule.tell(what, repr(error))
        if not isinstance(error, EXPECTED):
            raise self.schedule.violated(f"{what}: {error!r}")

    def offload(self, broker: Broker) -> Act:
        """An offload of a broker's directory, by the agent on its host."""

        def act(actor: Actor) -> None:
            self._offload(actor, broker, broker.source)

        return act

    def offload_copy(self, broker: Broker) -> Act:
        """An offload of a copy of a broker's directory, in which only the last leader epoch is known."""

        def act(actor: Actor) -> None:
            self._offload(actor, Copy(broker), f"copy of {broker.name}")

        return act

    def _offload(self, actor: Actor, broker: HasDisk, name: str) -> None:
        path = self.path
        known = self.seen.get(name, {})
        run = OffloadLogs(self.store(actor), actor, actor, name, lambda size: None, self.transforms(actor), known=known)
        for _, done in run.run(LogDir(DiskOf(actor, broker), LOGS).found(), 1):
            self._offloaded(name, done, path)
        self.seen[name] = {p: seen for p, seen in {**known, **run.changes}.items() if seen is not None}

    def read_manifests_again(self) -> None:
        """Each offload reads the manifest, as it does once a day where its log is as it was: others may have changed it."""
        for name, seen in self.seen.items():
            self.seen[name] = {p: replace(one, recorded_ms=min(one.recorded_ms, 1)) for p, one in seen.items()}

    def _offloaded(self, name: str, done: Done, path: PartitionPath) -> None:
        if done.entry is not None and path == self.path:  # else the topic was made again meanwhile, and it is one of both
            self.judge.says_archived(path, done.entry)
        if isinstance(done.error, Corrupt):  # of a directory in the midst of its recovery; in the end it is a violation
            self.schedule.errors["Corrupt"] += 1
            return
        self.refuse(done.error, f"offload of {name}")

    def drop_archived(self, broker: Broker) -> Act:
        """The broker's own retention deletes what its log has had for long: what is archived, seldom what is not."""

        def act(actor: Actor) -> None:
            newest = self.judge.newest(self.path)
            archived = newest.manifest.end_offset if newest is not None else 0
            limit = broker.log.high_watermark if actor.chance(self.losses) else min(archived, broker.log.high_watermark)
            if not broker.has_replica:
                return
            bases = [s.base_offset for s in broker.log.local.segments if broker.log.log_start_offset < s.base_offset <= limit]
            if bases:
                to = actor.random.choice(bases)
                broker.log.maybe_increment_log_start_offset(to)
                self.judge.watched[self.path].dropped_below[broker.name] = to
                broker.checkpoint()

        return act

    def retain(self, actor: Actor) -> None:
        """`tiering expire`."""
        run = Retention(self.store(actor), actor, actor, self.given, is_archive_alone=True)
        for path, due in run.done([PATH.topic]):
            if isinstance(due, LogError):
                self.refuse(due, f"retention of {path}")

    def paths(self) -> list[PartitionPath]:
        """Of all partitions of which the store has something."""
        found, key = list[PartitionPath](), self.judge.store.first_from("")
        while key is not None:
            path = partition_of(key)
            found += [path] if path is not None else []
            key = self.judge.store.first_from(f"{path.prefix}\x7f" if path is not None else f"{key}\0")
        return found

    def sweep(self, actor: Actor) -> None:
        """`tiering sweep`."""
        store = self.store(actor)
        now_ms = store_now_ms(store, actor)
        for path in self.paths():
            due = collect.plan(store, path, now_ms, self.waits.grace_ms)
            if due.damaged_pins:
                raise self.schedule.violated(f"damaged pins: {due.damaged_pins}")
            for _ in collect.sweep(due, store, actor, actor, now_ms):
                pass
        for topic, topic_id in [*writes.topic_ids(store, sorted({path.topic for path in self.paths()}))]:
            for _ in writes.sweep(writes.plan(store, topic, topic_id, now_ms, self.waits.grace_ms), store):
                pass
        for piece in collect.strays(store, now_ms, self.waits.grace_ms):
            collect.sweep_stray(store, piece)

    def rotate(self, actor: Actor) -> None:
        """`tiering rotate-keys` to a new key."""
        self.key = (self.key + 1) % len(KEYS)
        store, keys = self.store(actor), self.ring()
        for _, manifest in partitions(store, [PATH.topic]):
            if isinstance(manifest, Manifest):
                planned = plan_rotation(store, manifest, keys.current)
                rotator = Rotator(store, keys, actor, actor, "rotation", pages_per_step=2)
                self.refuse(rotator.rotate(planned, manifest).error, "rotation")

    def acknowledge(self, actor: Actor) -> None:
        """`tiering manifest acknowledge` of the topic and those that had its name before."""
        store = self.store(actor)
        for manifest in acknowledge.with_losses(store, PATH.topic, None, None):
            acknowledge.acknowledge(manifest, store, actor, actor, "jo")

    def delete(self, actor: Actor) -> None:
        """`tiering delete-topic`."""
        store = self.store(actor)
        ids = [None, *(path.topic_id for path in self.judge.watched if path.topic == PATH.topic)]
        for manifest in delete_topic.partitions(store, PATH.topic, actor.random.choice(ids) if len(ids) > 2 else None):
            self.judge.watched[manifest.path].may_be_deleted = True
            run = StoreRun(store, actor, actor)
            self.refuse(delete_topic.delete_partition(manifest, run, "deletion").error, "deletion")
