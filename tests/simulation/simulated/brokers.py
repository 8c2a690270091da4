"""Three brokers with a replica each of one partition: our engine on simulated disks, as Kafka's leader and followers use theirs.

A record below the high watermark is on all replicas that are in sync, and stays as it is: `committed` has these batches. What a
leader has above it may be lost with its broker, and is then overwritten by the records of the next leader.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from random import Random  # noqa: TID251  # seeded
from typing import Any

from logs_at_work import settings
from small_logs import marker, produced, records

from local_log.engine.manager.retention import delete_old_segments
from local_log.engine.memory_records import memory_batches
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.control import ControlType, read_end_txn_marker
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.ranges import Range
from remote.keys import PartitionPath
from simulated.broker import PATH, Broker
from simulated.predicates import disordered
from simulated.schedule import Schedule

SEGMENT_BYTES = (420, 560, 700)
"""Of each broker another, so that replicas roll at other offsets."""
FETCH_BYTES = 400
REMAKE = "remake the topic"
HAPPENINGS = {
    "produce": 10.0, "transact": 2.0, "replicate": 12.0, "checkpoint": 5.0, "elect": 0.4, "lose_power": 0.3, "fall_behind": 0.3,
}  # fmt: skip
"""What happens in the cluster, and how often."""
REASSIGNED = {"give_up": 0.15, "take_up": 0.5}
"""The same, where agents are beside the brokers."""
UNMOUNTED = {"unmount": 3.0, "mount": 6.0}
"""The same, where agents do not always have the disks of their brokers."""


@dataclass(eq=False)
class DeletedLog:
    """What was committed of a topic that is deleted."""

    committed: dict[int, bytes]
    times: dict[int, int]
    ended: dict[int, int]
    aborted: dict[int, int]
    start_max: int
    high_watermark: int
    last_stable_offset: int
    gave_up_at: dict[str, int]


@dataclass(eq=False)
class Cluster:
    """The brokers, who of them leads, and what is committed; `open_batches` are those of each producer's open transaction."""

    schedule: Schedule
    path: PartitionPath = PATH
    brokers: list[Broker] = field(init=False)
    leader: int = 0
    epoch: int = 0
    in_sync: set[int] = field(default_factory=lambda: {0, 1, 2})
    without: set[int] = field(default_factory=set)
    """Those that have no replica now."""
    gave_up_at: dict[str, int] = field(default_factory=dict)
    """Where the log of a broker ended that gave it up, or where one had ended that was truncated before."""
    longest: int = 0
    """Where a log ended at most that was truncated, which an agent may have seen."""
    high_watermark: int = 0
    committed: dict[int, bytes] = field(default_factory=dict)
    times: dict[int, int] = field(default_factory=dict)
    """The time of each committed batch, by its base offset."""
    open_batches: dict[int, list[Range]] = field(default_factory=dict)
    ended: dict[int, int] = field(default_factory=dict)
    aborted: dict[int, int] = field(default_factory=dict)
    """The producers of transactions, by the offsets of their markers."""
    producers: int = 0
    fetched: dict[int, int] = field(default_factory=dict)
    """Up to which offset each follower has fetched from this leader."""
    start_max: int = 0
    """Nobody asks these brokers to delete records."""
    random: Random = field(default_factory=Random)
    """Of what happens now."""

    def __post_init__(self) -> None:
        self.brokers = [
            Broker(name, self, settings(segment_bytes=size, index_interval_bytes=1, file_delete_delay_ms=0))
            for name, size in zip("ABC", SEGMENT_BYTES, strict=True)
        ]

    @property
    def log(self) -> UnifiedLog:
        """The leader's."""
        return self.brokers[self.leader].log

    @property
    def replicas(self) -> list[int]:
        """The brokers that have a replica."""
        return [number for number in range(len(self.brokers)) if number not in self.without]

    @property
    def last_stable_offset(self) -> int:
        """Below it everything is committed, and no record that each broker still has is of an open transaction."""
        start = max(self.brokers[number].log.log_start_offset for number in self.replicas)
        undecided = [max(base, start) for of in self.open_batches.values() for base, end in of if end > start]
        return min([self.high_watermark, *undecided])

    def happens(self, what: str, seed: int) -> None:
        """One of `HAPPENINGS`, with random numbers of its own."""
        self.random.seed(seed)
        for broker in self.brokers:
            broker.disk.now_ms = self.schedule.now
        getattr(self, what)()
        for broker in (self.brokers[number] for number in self.replicas):
            if wrong := disordered(broker.log):
                raise self.schedule.violated(f"broker {broker.name} after {what}: {wrong}")
        self.schedule.tell("cluster", f"{what}: {self.log.log_end_offset}, {self.high_watermark} is the high watermark")

    def produce(self) -> None:
        value = b"epoch %d offset %d" % (self.epoch, self.log.log_end_offset)
        count = self.random.randrange(1, 4)
        self.log.append_as_leader(records(0, count, value=value, time=self.schedule.now), self.epoch)

    def transact(self) -> None:
        """Begins a transaction, adds to one that is open, or ends it."""
        random, state = self.random, self.log.producers
        ongoing = sorted(state.ongoing.values())
        if ongoing and random.random() < 0.5:
            end = marker(0, random.choice(ongoing), commit=random.random() < 0.5, time=self.schedule.now)
            self.log.append_as_leader(end, self.epoch, Origin.COORDINATOR)
            return
        if len(ongoing) < 2:
            self.producers += 1
            producer, sequence = self.producers, 0
        else:
            producer = random.choice(ongoing)
            sequence = state.producers[producer].last_sequence + 1
        self.log.append_as_leader(produced(0, producer, sequence, time=self.schedule.now, transactional=True), self.epoch)

    def replicate(self) -> None:
        """A follower fetches from the leader, as Kafka's ReplicaFetcherThread does."""
        number = self.random.choice([n for n in self.replicas if n != self.leader])
        log = self.brokers[number].log
        self._fetch(self.brokers[number])
        self.fetched[number] = log.log_end_offset
        if log.log_end_offset >= self.high_watermark:
            self.in_sync.add(number)
        elif number in self.in_sync:
            raise self.schedule.violated(f"a replica in sync ends at {log.log_end_offset}, below {self.high_watermark}")
        self._advance()

    def _fetch(self, follower: Broker) -> None:
        mine, theirs = follower.log, self.log
        self._truncate(mine, theirs)
        if theirs.log_start_offset > mine.log_end_offset:
            mine.truncate_fully_and_start_at(theirs.log_start_offset)
        found = theirs.read(mine.log_end_offset, FETCH_BYTES).records
        at = 0
        for batch in memory_batches(found):
            mine.append_as_follower(found[at : at + batch.size], self.epoch)
            at += batch.size
        mine.update_high_watermark(min(self.high_watermark, mine.log_end_offset))
        # As Kafka's fetcher does, whatever the follower has below that offset.
        if mine.log_start_offset < theirs.log_start_offset <= mine.high_watermark:
            mine.maybe_increment_log_start_offset(theirs.log_start_offset)

    def _truncate(self, mine: UnifiedLog, theirs: UnifiedLog) -> None:
        """Removes what the leader does not have: to the end of the last epoch that both know (KIP-101, KIP-279).

        Without an epoch, whose file a loss of power may have taken, to its own high watermark, as Kafka's followers do.
        """
        if mine.epochs.latest_epoch is None and mine.high_watermark < mine.log_end_offset:
            mine.truncate_to(max(mine.log_start_offset, mine.high_watermark))
        while (latest := mine.epochs.latest_epoch) is not None:
            end = theirs.epochs.end_offset_for(latest, theirs.log_end_offset)
            if end is None:
                return
            own = mine.epochs.end_offset_for(end.epoch, mine.log_end_offset)
            to = min(end.start_offset, own.start_offset if own is not None else mine.log_end_offset)
            self.longest = max(self.longest, mine.log_end_offset)
            mine.truncate_to(to)  # at the log's end, too: it removes epochs without records
            if end.epoch == latest or mine.epochs.latest_epoch == latest:
                return

    def _advance(self) -> None:
        """The high watermark follows the replicas that are in sync."""
        self.fetched[self.leader] = self.log.log_end_offset
        reached = min(self.fetched.get(n, self.high_watermark) for n in self.in_sync)
        while self.high_watermark < reached:
            found = self.log.read(self.high_watermark, 1).records
            batch = memory_batches(found)[0]
            if batch.last_offset >= reached:
                break
            self._commit(found[: batch.size], batch.base_offset, batch.last_offset, batch)
        self.log.update_high_watermark(self.high_watermark)

    def _commit(self, body: bytes, base: int, last: int, batch: Any) -> None:
        self.committed[base], self.times[base] = body, batch.max_timestamp
        self.high_watermark = last + 1
        if batch.is_control:
            self.open_batches.pop(batch.producer_id, None)
            self.ended[base] = batch.producer_id
            if read_end_txn_marker(body[BATCH_HEADER_BYTES:]).control_type is ControlType.ABORT:
                self.aborted[base] = batch.producer_id
        elif batch.is_transactional:
            self.open_batches.setdefault(batch.producer_id, []).append((base, last + 1))

    def checkpoint(self) -> None:
        broker = self.brokers[self.random.choice(self.replicas)]
        broker.checkpoint(with_start=self.random.random() < 0.2)

    def elect(self) -> None:
        """Another replica that is in sync leads."""
        others = sorted(self.in_sync - {self.leader})
        if others:
            self._lead(self.random.choice(others))

    def _lead(self, number: int) -> None:
        self.leader = number
        self.epoch += 1
        self.fetched.clear()
        self.log.epochs.assign(self.epoch, self.log.log_end_offset)
        self.schedule.tell("cluster", f"broker {self.brokers[number].name} leads in epoch {self.epoch}")

    def remake(self, topic_id: str) -> DeletedLog:
        """The topic is deleted, and another one of its name is made: it begins at offset 0 in epoch 0. What the first one had."""
        deleted = DeletedLog(
            self.committed, self.times, self.ended, self.aborted, self.start_max, self.high_watermark, self.last_stable_offset,
            self.gave_up_at,
        )  # fmt: skip
        self.path = replace(self.path, topic_id=topic_id)
        self.leader = self.epoch = self.high_watermark = 0
        self.committed, self.times, self.ended, self.aborted = {}, {}, {}, {}
        self.open_batches, self.fetched, self.in_sync = {}, {}, {0, 1, 2}
        for number, broker in enumerate(self.brokers):
            broker.disk.now_ms = self.schedule.now
            if broker.machine is not None:
                broker.machine.topic_is_deleted()
            broker.takes_up() if number in self.without else broker.remake()
        self.without, self.gave_up_at, self.longest = set(), {}, 0
        self.schedule.tell("cluster", f"the topic is deleted and made again with the id {topic_id}")
        return deleted

    def give_up(self) -> None:
        """A follower's replica is moved away from its broker: another one has what is in sync."""
        followers = [number for number in self.replicas if number != self.leader]
        number = self.random.choice(followers)
        if len(followers) > 1 and self.in_sync != {number}:
            broker = self.brokers[number]
            self.gave_up_at[broker.name] = max(broker.log.log_end_offset, self.longest, self.gave_up_at.get(broker.name, 0))
            self.in_sync.discard(number)
            self.fetched.pop(number, None)
            self.without.add(number)
            broker.gives_up()
            self.schedule.tell("cluster", f"broker {broker.name} has no replica any more")

    def take_up(self) -> None:
        """A broker has a replica again, which is empty and begins where the leader's log does."""
        for number in sorted(self.without):
            self.without.discard(number)
            self.brokers[number].takes_up()
            if (machine := self.brokers[number].machine) is not None:
                machine.log_is_new()
            self.brokers[number].log.truncate_fully_and_start_at(self.log.log_start_offset)

    def fall_behind(self) -> None:
        """A follower is no longer in sync, so that records are committed without it."""
        followers = sorted(self.in_sync - {self.leader})
        if len(followers) == len(self.brokers) - 1:
            self.in_sync.discard(self.random.choice(followers))

    def lose_power(self) -> None:
        """A broker's machine loses its power while others are in sync; if it led, one of them does now."""
        number = self.random.randrange(len(self.brokers))
        if self.in_sync == {number} or number in self.without:
            return
        self.in_sync.discard(number)
        if number == self.leader:
            self._lead(self.random.choice(sorted(self.in_sync)))
        self.schedule.faults["power lost"] += 1
        self.schedule.tell("cluster", f"broker {self.brokers[number].name} loses its power")
        self.brokers[number].loses_power()

    def unmount(self) -> None:
        """The agent beside a broker has an empty folder in place of its disk."""
        broker = self.random.choice(self.brokers)
        broker.is_mounted = False
        broker.unmounts += 1

    def mount(self) -> None:
        """It has the disk again."""
        for broker in self.brokers:
            broker.is_mounted = True

    def settle(self) -> None:
        """All replicas have everything, all transactions are ended, all checkpoints are written."""
        self.mount()
        self.take_up()
        self._end_transactions(self.log.producers.ongoing.values())
        # A leader does not know of one that began below its log start offset, but the coordinator does.
        self._end_transactions(self.open_batches)
        for broker in self.brokers:
            broker.log.update_high_watermark(self.high_watermark)
            delete_old_segments(broker.log, self.schedule.now, ())
            broker.checkpoint()

    def _end_transactions(self, producers: Iterable[int]) -> None:
        """Commits theirs; all replicas have everything then."""
        for producer in sorted(producers):
            self.log.append_as_leader(marker(0, producer, commit=True, time=self.schedule.now), self.epoch, Origin.COORDINATOR)
        followers = [b for n, b in enumerate(self.brokers) if n != self.leader]
        for _ in range(2):
            for follower in followers:
                self._fetch(follower)
                while follower.log.log_end_offset < self.log.log_end_offset:
                    self._fetch(follower)
                self.fetched[self.brokers.index(follower)] = follower.log.log_end_offset
            self.in_sync = set(range(len(self.brokers)))
            self._advance()
