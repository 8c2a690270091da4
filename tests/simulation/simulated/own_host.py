"""A process that owns its log directory, on a disk that fails and loses what was not synced: one partition over both tiers.

What it has acknowledged stays as long as its settings promise: over a kill always, over a loss of power what was synced. With
`flush.messages=1`, and where each append is synced before its answer, that is all of it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random  # noqa: TID251  # seeded
from typing import ClassVar

from small_logs import marker, produced, records

from local_log.engine.errors import Refused
from local_log.engine.manager.background import AtOnce
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.memory_records import MemoryBatch, batch_at, memory_batches
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Unreadable
from local_log.formats.control import ControlType, read_end_txn_marker
from local_log.formats.filenames import TopicPartition
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from remote.keys import PartitionPath
from simulated import own_compacted
from simulated.archive_tasks import OWN_TOPIC
from simulated.disks import Machine
from simulated.failing_disk import FailingDisk
from simulated.own_compacted import CompactedTopic
from simulated.schedule import HOUR_MS, Actor, Schedule
from tiering.local_tier.local_tier import LocalTier

LOGS = "/own"
PARTITION = TopicPartition(OWN_TOPIC, 0)
HAPPENINGS = {
    "produce": 8.0, "transact": 3.0, "tick": 3.0, "flush": 0.3, "delete_records": 0.3, "kill": 0.3, "lose_power": 0.3,
    "fail": 0.3, "restart": 0.3, "produce_keyed": 4.0, "transact_keyed": 2.0,
}  # fmt: skip
"""What happens to the process, and how often."""
FAULTS = (("write", "EIO"), ("write", "ENOSPC"), ("write", "short"), ("sync", "EIO"), ("sync", "EIO"), ("rename", "EIO"))
REMEMBERED_MS = 10 * HOUR_MS
"""Within this time a producer that is idle is not forgotten."""


@dataclass(eq=False)
class OwnHost:
    """The process of the moment, and the log as its clients know it. `durable` is the end of what no crash may take."""

    happenings: ClassVar[Mapping[str, float]] = HAPPENINGS
    local_retention_hours: ClassVar[Sequence[int]] = (0, 2, 20)
    schedule: Schedule
    disk: FailingDisk = field(default_factory=FailingDisk)
    committed: dict[int, bytes] = field(default_factory=dict)
    _begun_at: int = 0
    """Where the log went on after it had lost all from its start offset on."""
    times: dict[int, int] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    aborted: dict[int, int] = field(default_factory=dict)
    unanswered: dict[int, bytes] = field(default_factory=dict)
    """What a failing disk may have taken of appends that nobody was told of, by base offset."""
    start_max: int = 0
    gave_up_at: dict[str, int] = field(default_factory=dict)
    actors: list[Actor] = field(default_factory=list)
    machine: Machine | None = None
    sent: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Of each producer its last sequence number, the offset of its last batch, and when it was sent."""
    producers: int = 0
    random: Random = field(default_factory=Random)

    def __post_init__(self) -> None:
        choice = self.schedule.random.choice
        self.syncs = choice(["never", "each append", "flush.messages"])
        self.settings = {
            "internal.segment.bytes": choice(["700", "700", "2000"]), "segment.index.bytes": "1200", "index.interval.bytes": "1",
            "remote.storage.enable": "true", "retention.ms": "-1", "file.delete.delay.ms": "60000",
            "local.retention.ms": str(choice(self.local_retention_hours) * HOUR_MS),
            "flush.ms": str(choice([60_000, 8 * HOUR_MS])),
        }  # fmt: skip
        if self.syncs == "flush.messages":
            self.settings["flush.messages"] = "1"
        self.durable = 0
        self.start()
        self.tier.create_topic(PARTITION.topic)
        self.compacted = CompactedTopic(self)
        self.tier.create_topic(own_compacted.PARTITION.topic, 1, own_compacted.CONFIG)
        self.path = PartitionPath(PARTITION.topic, self.tier.topic(PARTITION.topic).topic_id or "", PARTITION.partition)

    # What is known of the log

    @property
    def log(self) -> UnifiedLog:
        """Raises Offline after a failure."""
        return self.tier.log(PARTITION)

    @property
    def end(self) -> int:
        last = max(self.committed, default=None)
        return self._begun_at if last is None else max(self._begun_at, batch_at(self.committed[last], 0).last_offset + 1)

    @property
    def high_watermark(self) -> int:
        return self.end

    @property
    def last_stable_offset(self) -> int:
        """Below it every transaction is ended, or its records are deleted."""
        start = self.tier.log(PARTITION).log_start_offset if not self.tier.offline else self.start_max
        return max(start, min([self.end, *self._open(start).values()]))

    def _open(self, start: int = 0) -> dict[int, int]:
        """The first offsets of the transactions that are open, by producer, of those with records from `start` on."""
        first: dict[int, int] = {}
        for base, body in self.committed.items():
            batch = batch_at(body, 0)
            if batch.is_control:
                first.pop(batch.producer_id, None)
            elif batch.is_transactional and batch.last_offset >= start:
                first.setdefault(batch.producer_id, base)
        return first

    # What happens

    def happens(self, what: str, seed: int) -> None:
        """One of `HAPPENINGS`, with random numbers of its own. A process whose disk has failed is started again first."""
        self.random.seed(seed)
        self.disk.now_ms = self.schedule.now
        if self.tier.offline:
            self._crashes(self.random.choice([0.0, 0.5, 1.0]), "its disk was mended")
        try:
            getattr(self, what)()
        except Unreadable as e:
            self.schedule.tell("own host", f"{what}: {e}")
        else:
            now = self.log.offsets
            self.schedule.tell("own host", f"{what}: [{now.log_start}, {now.last_stable}, {now.end.offset})")

    def start(self) -> None:
        config = ManagerConfig(log_dirs=(LOGS,), num_recovery_threads_per_data_dir=1, cleaner_dedupe_buffer_size=2 << 20)
        random = Random(self.schedule.seed)
        new_id = lambda: f"{random.getrandbits(128):032x}"  # noqa: E731
        now_ms = self.schedule.now_ms
        self.tier = LocalTier(self.disk, config, now_ms, lambda: 0.5, new_id, lambda topic: self.settings, AtOnce())
        started = self.tier.start()
        if started.unopened or started.damaged:
            raise self.schedule.violated(f"the own directory does not open: {started}")

    def produce(self) -> None:
        """Records of nobody, or of an idempotent producer, who sends its last batch again if it was told nothing of it."""
        kind = self.random.random()
        if kind < 0.5:
            value = b"own %d" % self.end * self.random.choice([1, 1, 8, 15])
            self._append(records(0, self.random.randrange(1, 4), value=value, time=self.schedule.now))
        elif self.sent and kind < 0.6:
            self._send_again(self.random.choice(sorted(self.sent)))
        else:
            self._send(self._producer(), transactional=False)

    def transact(self) -> None:
        ongoing = sorted(self.log.producers.ongoing.values())
        if ongoing and self.random.random() < 0.5:
            end = marker(0, self.random.choice(ongoing), commit=self.random.random() < 0.5, time=self.schedule.now)
            self._append(end, Origin.COORDINATOR)
        elif len(ongoing) < 2:
            self.producers += 1
            self._send(self.producers * 2, transactional=True)
        else:
            self._send(self.random.choice(ongoing), transactional=True)

    def _producer(self) -> int:
        known = [p for p, (_, _, at) in self.sent.items() if p % 2 and self.schedule.now - at < REMEMBERED_MS]
        if known and self.random.random() < 0.7:
            return self.random.choice(known)
        self.producers += 1
        return self.producers * 2 + 1

    def _send(self, producer: int, *, transactional: bool) -> None:
        sequence = self.sent[producer][0] + 1 if producer in self.sent else 0
        if transactional and producer not in self.sent:
            known = self.log.producers.producers.get(producer)
            sequence = 0 if known is None else known.last_sequence + 1
        offset = self._append(produced(0, producer, sequence, time=self.schedule.now, transactional=transactional))
        if offset is not None:
            self.sent[producer] = sequence, offset, self.schedule.now

    def _send_again(self, producer: int) -> None:
        sequence, offset, at = self.sent[producer]
        if self.schedule.now - at >= REMEMBERED_MS or producer % 2 == 0:
            return
        info = self.log.append_as_leader(produced(0, producer, sequence, time=at), 0)
        if not info.is_duplicate or info.first_offset != offset:
            raise self.schedule.violated(
                f"batch {sequence} of producer {producer} is at {offset}, and now at {info.first_offset}"
            )

    def _append(self, batch: bytes, origin: Origin = Origin.CLIENT) -> int | None:
        """Its offset, once it is acknowledged; None for a producer that is to begin anew."""
        log = self.log
        end = log.log_end_offset
        if end != self.end:
            raise self.schedule.violated(f"the log ends at {end}, and {self.end} is acknowledged")
        try:
            log.append_as_leader(batch, 0, origin)
            if self.syncs == "each append":
                log.sync_appended()
        except Refused as e:
            raise self.schedule.violated(f"an append at {end} is refused: {e!r}") from e
        except Unreadable:
            self._note_unanswered(end, batch)
            raise
        body = log.local.read(end, 1 << 20, log.local.end).records
        self._acknowledged(end, body)
        return end

    def _note_unanswered(self, end: int, batch: bytes) -> None:
        self.unanswered[end] = batch

    def _acknowledged(self, base: int, body: bytes) -> None:
        """A batch is as old as its producer has said, also one that was not answered and is found after a crash."""
        batch = batch_at(body, 0)
        self.committed[base], self.times[base] = body, batch.max_timestamp
        if batch.is_control:
            self.ended[base] = batch.producer_id
            if read_end_txn_marker(body[BATCH_HEADER_BYTES:]).control_type is ControlType.ABORT:
                self.aborted[base] = batch.producer_id
        if self.syncs != "never":
            self.durable = self.end

    def tick(self) -> None:
        """The background tasks: flushes, checkpoints, files that are deleted, the log cleaner."""
        self.tier.tick()
        self.compacted.flushed()
        if self.random.random() < 0.3:
            self.compacted.check()

    def produce_keyed(self) -> None:
        self.compacted.produce()

    def transact_keyed(self) -> None:
        self.compacted.transact()

    def flush(self) -> None:
        self.log.flush()
        if self.log.recovery_point > self.log.log_start_offset:  # else the start has moved it, and nothing was flushed
            self.durable = self.end

    def delete_records(self) -> None:
        """DeleteRecords: the log starts later."""
        log = self.log
        to = self.random.randrange(log.log_start_offset, log.high_watermark + 1)
        self.start_max = max(self.start_max, to)
        log.maybe_increment_log_start_offset(to)

    def fail(self) -> None:
        """One of the next calls of the disk fails."""
        self.disk.fault = self.random.choice(FAULTS)
        self.schedule.faults[f"disk: {' '.join(self.disk.fault)}"] += 1

    def kill(self) -> None:
        self._crashes(0.0, "is killed")

    def lose_power(self) -> None:
        self._crashes(self.random.choice([0.5, 1.0]), "loses its power")

    def restart(self) -> None:
        """A clean stop, and the next start."""
        self._ends("is stopped")
        errors = self.tier.stop()
        if errors and not self.tier.offline:
            raise self.schedule.violated(f"a stop fails: {errors}")
        self.durable = self.durable if errors else self.end
        self.disk = self.disk.after_power_failure(0.0, 0)
        self.start()
        self._recovered(is_killed=True)

    def _ends(self, why: str) -> None:
        self.schedule.faults[f"own process {why}"] += 1
        self.schedule.tell("own host", why)
        for actor in self.actors:
            actor.is_dead = True
        self.actors.clear()

    def _crashes(self, lost: float, why: str) -> None:
        self._ends(why)
        has_failed = bool(self.tier.offline)
        if not has_failed and self.log.recovery_point > self.log.log_start_offset:  # else the start has moved it
            self.durable = max(self.durable, self.log.recovery_point)
        if not has_failed:
            self.compacted.flushed()
        self.disk = self.disk.after_power_failure(lost, self.random.getrandbits(32))
        if self.machine is not None:
            self.machine.loses_power(lost, self.random.getrandbits(32))
        self.start()
        self._recovered(is_killed=lost == 0.0)

    def _recovered(self, *, is_killed: bool) -> None:
        """What is found is the beginning of what was appended, and all of it that no crash may take."""
        log = self.log
        found = self._found(log)
        end = log.log_end_offset
        kept = self.end if is_killed else min(self.durable, self.end)
        if end < kept:
            raise self.schedule.violated(f"the log ends at {end} after a crash, and [{end}, {kept}) was acknowledged and kept")
        if log.log_start_offset > self.start_max:
            raise self.schedule.violated(
                f"the log starts at {log.log_start_offset}; nobody has deleted more than {self.start_max}"
            )
        for base, body in found.items():
            known = self.committed.get(base)
            if known is None and base >= self.end and self._is_unanswered(base, body):
                self._acknowledged(base, body)
                self._adopt(batch_at(body, 0))
            elif known != body:
                raise self.schedule.violated(f"the log has other records at {base} after a crash than were appended")
        # Also a batch of which the log began in the middle, and which it lost: it begins at its start offset then.
        for base in [b for b, body in self.committed.items() if batch_at(body, 0).last_offset >= end]:
            for of in (self.committed, self.times, self.ended, self.aborted):
                of.pop(base, None)
        if end == log.log_start_offset:
            self._begun_at = end
        for base in self.committed:
            if base >= log.local_log_start_offset and base not in found:
                raise self.schedule.violated(f"the log lacks the batch at {base} after a crash")
        self.durable, self.unanswered = self.end, {}
        first = log.local.segments.first.base_offset
        self.compacted.recovered(is_killed=is_killed)
        self.sent = {p: sent for p, sent in self.sent.items() if max(first, log.log_start_offset) <= sent[1] < end}

    def _adopt(self, batch: MemoryBatch) -> None:
        """The producer of a batch that was not answered sees at its next start that it is there."""
        if batch.producer_id >= 0 and not batch.is_control:
            self.sent[batch.producer_id] = batch.last_sequence, batch.base_offset, self.schedule.now

    def _is_unanswered(self, base: int, body: bytes) -> bool:
        """Whether a batch is one of those whose append failed."""
        sent = self.unanswered.get(base)
        return sent is not None and body[BATCH_HEADER_BYTES:] == sent[BATCH_HEADER_BYTES:]

    def _found(self, log: UnifiedLog) -> dict[int, bytes]:
        found: dict[int, bytes] = {}
        for segment in log.local.segments:
            data = self.disk.read(segment.log_file, 0, segment.size)
            found |= {b.base_offset: data[b.position : b.position + b.size] for b in memory_batches(data)}
        return {base: body for base, body in found.items() if base >= log.local_log_start_offset}

    def settle(self) -> None:
        """All transactions are ended, and nothing fails any more."""
        self.disk.fault = None
        if self.tier.offline:
            self._crashes(0.0, "its disk was mended")
        # Those, too, of which the log has no record any more: their coordinator knows of them.
        for producer in sorted({*self.log.producers.ongoing.values(), *self._open()}):
            self._append(marker(0, producer, commit=True, time=self.schedule.now), Origin.COORDINATOR)
        for producer in sorted(self.compacted.log.producers.ongoing.values()):
            self.compacted.ends(producer, is_committed=True)
        for _ in range(2):
            self.schedule.now += HOUR_MS
            errors = self.tier.tick()
            if errors or self.tier.uncleanable():
                raise self.schedule.violated(f"a tick fails at the end: {errors} {self.tier.uncleanable()}")
        self.compacted.check()


class SteadyHost(OwnHost):
    """A process that nothing happens to, so that its tasks may sleep for long, and whose log is soon in the archive alone."""

    happenings: ClassVar[Mapping[str, float]] = {"produce": 6.0, "transact": 6.0, "tick": 3.0}
    local_retention_hours: ClassVar[Sequence[int]] = (0,)
