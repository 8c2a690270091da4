"""Consumers: of partitions that they choose, of groups that commit, and applications that read and write in transactions."""

import random  # noqa: TID251  # of a seed
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from histories.operations import NONE, Kind, Outcome, Polled, Position
from histories.recorder import Recorder
from histories.writers import ALL, DEBUG_CONSUMER, PARTITIONS, QUICK, Places, Transaction, Transactor

POLL_S, ASKED_S = 0.3, 6
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"
CLASSIC, CONSUMER = "classic", "consumer"
"""The protocols of groups, as `group.protocol` has them."""


def consumer_of(address: str, group: str, isolation: str, **more: Any) -> Consumer:
    return Consumer(
        {**QUICK, "bootstrap.servers": address, "group.id": group, "isolation.level": isolation, "enable.auto.commit": False,
         "auto.offset.reset": "earliest", "enable.partition.eof": True, "fetch.wait.max.ms": 100, "fetch.error.backoff.ms": 50,
         "queued.max.messages.kbytes": 4_096, "error_cb": lambda error: None, **more},
    )  # fmt: skip


def polled_of(message: Message) -> Polled:
    return Polled(f"{message.topic()}-{message.partition()}", message.offset(), message.value().decode().rstrip(" "))


@dataclass
class Reader:
    """A process that reads. `at` are the next offsets of the partitions that it has."""

    process: str
    address: str
    recorder: Recorder
    chance: random.Random
    isolation: str = COMMITTED
    at: dict[tuple[str, int], int | None] = field(default_factory=dict)
    places: Places = ALL
    """The topics and partitions that it reads."""

    @property
    def is_over(self) -> bool:
        return self.recorder.stopping.is_set()

    def positions(self, of: Mapping[tuple[str, int], int | None]) -> tuple[Position, ...]:
        return tuple(Position(f"{topic}-{number}", offset) for (topic, number), offset in of.items() if offset is not None)

    def note_assigned(self, *, is_final: bool = False) -> None:
        self.recorder.note(
            self.process, Kind.ASSIGN, self.recorder.now_ns(), positions=self.positions(self.at),
            is_committed_only=self.isolation == COMMITTED, is_final=is_final,
        )  # fmt: skip

    def note_polled(self, messages: Iterable[Message], invoked_ns: int) -> list[Polled]:
        """Notes what was read, and the ends that were reached; returns the records."""
        found: list[Polled] = []
        ends: list[Position] = []
        for message in messages:
            error, place = message.error(), (message.topic(), message.partition())
            if error is None:
                found.append(polled_of(message))
                self.at[place] = message.offset() + 1
            elif error.code() == KafkaError._PARTITION_EOF:
                ends.append(Position(f"{place[0]}-{place[1]}", message.offset()))
            else:
                self.recorder.count(f"poll: {error.name()}")
        if found or ends:
            self.recorder.note(
                self.process, Kind.POLL, invoked_ns, polled=tuple(found), positions=tuple(ends),
                is_committed_only=self.isolation == COMMITTED,
            )  # fmt: skip
        return found


@dataclass
class Assigned(Reader):
    """Reads all partitions, at first from their begin, later from anywhere."""

    def run(self) -> None:
        consumer = consumer_of(self.address, "none", self.isolation)
        self.start(consumer, dict.fromkeys(self.places, 0))
        while not self.is_over:
            invoked_ns = self.recorder.now_ns()
            self.note_polled(consumer.consume(300, POLL_S), invoked_ns)
            if self.chance.random() < 0.01:
                self.start(consumer, {place: self.chance.randrange((at or 0) + 1) for place, at in self.at.items()})
        consumer.close()

    def start(self, consumer: Consumer, at: Mapping[tuple[str, int], int | None], *, is_final: bool = False) -> None:
        self.at = dict(at)
        self.note_assigned(is_final=is_final)
        consumer.assign([TopicPartition(*place, offset or 0) for place, offset in self.at.items()])

    def read_all(self, ends: Mapping[tuple[str, int], int], until_s: float) -> bool:
        """The last read, of all partitions from their begin to these ends; whether it came there in time."""
        consumer, lacking = consumer_of(self.address, "none", self.isolation), dict(ends)
        self.start(consumer, dict.fromkeys(self.places, 0), is_final=True)
        began_ns = self.recorder.now_ns()
        while lacking and self.recorder.now_ns() - began_ns < until_s * 1e9:
            invoked_ns = self.recorder.now_ns()
            messages = consumer.consume(1_000, POLL_S)
            self.note_polled(messages, invoked_ns)
            for message in messages:
                place, error = (message.topic(), message.partition()), message.error()
                if (
                    error is not None
                    and error.code() == KafkaError._PARTITION_EOF
                    and message.offset() >= lacking.get(place, 1 << 63)
                ):
                    lacking.pop(place)
        consumer.close()
        return not lacking


@dataclass
class Member(Reader):
    """A member of a group, which commits what it has read, and leaves the group at times."""

    group: str = "readers"
    protocols: tuple[str, ...] = (CLASSIC,)
    """The protocols that it joins by: one of them is drawn each time. A group with members of both is upgraded and downgraded."""
    settings: dict[str, Any] = field(default_factory=lambda: {"debug": DEBUG_CONSUMER})
    _is_incremental: bool = False
    _buffer: list[Message] = field(default_factory=list)
    _began_ns: int = 0

    def run(self) -> None:
        while not self.is_over:
            consumer = self.joined()
            for _ in range(self.chance.randrange(5, 60)):
                if self.is_over:
                    break
                if self.polled(consumer, 40):
                    self.commit(consumer)
            consumer.close()

    def joined(self) -> Consumer:
        protocol = self.chance.choice(self.protocols)
        self._is_incremental = protocol == CONSUMER
        classic = {} if self._is_incremental else {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 300}
        named = {"client.id": self.process, "group.protocol": protocol, **self.settings}
        self.recorder.count(f"{self.group}: joins by {protocol}")
        consumer = consumer_of(self.address, self.group, self.isolation, **classic, **named)
        self.at = {}
        consumer.subscribe([*self.topics()], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._revoked)
        return consumer

    def topics(self) -> Iterable[str]:
        return sorted({topic for topic, _ in self.places})

    def polled(self, consumer: Consumer, count: int) -> list[Polled]:
        """What is there, one message at a time: each is of the partitions that it has then."""
        self._began_ns = self.recorder.now_ns()
        for number in range(count):
            message = consumer.poll(POLL_S if not number else 0.01)
            if message is None:
                break
            self._buffer.append(message)
        return self._flush()

    def _flush(self) -> list[Polled]:
        messages, self._buffer = self._buffer, []
        return self.note_polled(messages, self._began_ns)

    def _assigned(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._flush()
        if not self._is_incremental:
            self.at = {}
        known = self.told(consumer, partitions)
        self.at |= {(one.topic, one.partition): max(offset, 0) if offset is not None else None
                    for one, offset in zip(partitions, known, strict=True)}  # fmt: skip
        self.note_assigned()
        if known and known[0] is not None:
            partitions = [
                TopicPartition(one.topic, one.partition, max(offset or 0, 0))
                for one, offset in zip(partitions, known, strict=True)
            ]
        if self._is_incremental:
            consumer.incremental_assign(partitions)
        else:
            consumer.assign(partitions)

    def told(self, consumer: Consumer, partitions: list[TopicPartition]) -> list[int | None]:
        """The positions that the group has; None for all if nobody says so."""
        if not partitions:
            return []
        invoked_ns = self.recorder.now_ns()
        try:
            found = consumer.committed([TopicPartition(one.topic, one.partition) for one in partitions], ASKED_S)
        except KafkaException as e:
            self.recorder.count(f"committed: {e.args[0].name()}")
            return [None] * len(partitions)
        if any(one.error is not None for one in found):
            return [None] * len(partitions)
        offsets = {(one.topic, one.partition): one.offset if one.offset >= 0 else NONE for one in found}
        self.recorder.note(self.process, Kind.COMMITTED, invoked_ns, group=self.group, positions=self.positions(offsets))
        return [offsets[one.topic, one.partition] for one in partitions]

    def _revoked(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._flush()
        for one in partitions:
            self.at.pop((one.topic, one.partition), None)

    def commit(self, consumer: Consumer) -> None:
        """Commits where it is."""
        at = {place: offset for place, offset in self.at.items() if offset is not None}
        if not at:
            return
        invoked_ns = self.recorder.now_ns()
        try:
            done = consumer.commit(offsets=[TopicPartition(*place, offset) for place, offset in at.items()], asynchronous=False)
        except KafkaException as e:
            self.recorder.count(f"commit offsets: {e.args[0].name()}")
            done = None
        is_done = done is not None and all(one.error is None for one in done)
        outcome = Outcome.OK if is_done else Outcome.UNKNOWN
        self.recorder.note(self.process, Kind.COMMIT, invoked_ns, outcome, group=self.group, positions=self.positions(at))


@dataclass
class App(Member):
    """Reads the orders of its group, and writes one record for each, with its position, in one transaction."""

    group: str = "app"
    protocols: tuple[str, ...] = (CLASSIC, CONSUMER)

    def topics(self) -> Iterable[str]:
        return ("orders",)

    def run(self) -> None:
        writer = Transactor(self.process, self.address, self.recorder, self.chance)
        while not self.is_over:
            producer = writer.begun(self.process)
            consumer = self.joined()
            outcome = Outcome.OK if producer is not None else Outcome.UNKNOWN
            while outcome is not Outcome.UNKNOWN and not self.is_over:
                try:
                    outcome = self.transform(
                        consumer, Transactor(self.process, self.address, self.recorder, self.chance), producer
                    )
                except KafkaException as e:
                    self.recorder.count(f"{self.process}: {e.args[0].name()}")
                    outcome = Outcome.UNKNOWN
                if self.chance.random() < 0.02:
                    outcome = Outcome.UNKNOWN
            consumer.close()

    def transform(self, consumer: Consumer, writer: Transactor, producer: Any) -> Outcome:
        before = dict(self.at)
        read = self.polled(consumer, 20)
        if not read:
            return Outcome.OK
        if None in self.at.values():
            return Outcome.UNKNOWN  # nobody has said where a partition begins: what was read is read again
        consumed = [one for one in read if _place(one) in self.at]
        if len(consumed) != len(read) or not before.keys() >= {_place(one) for one in read}:
            return Outcome.UNKNOWN  # a rebalance came between: the group is joined anew
        transaction = Transaction(writer, producer, self.process)
        transaction.polled, transaction.group = tuple(consumed), self.group
        at = {place: self.at[place] for place in {_place(one) for one in consumed}}
        transaction.positions = self.positions(at)
        try:
            for _ in consumed:
                transaction.send("out", self.chance.randrange(PARTITIONS["out"]))
            offsets = [TopicPartition(*place, offset or 0) for place, offset in at.items()]
            producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), ASKED_S)
        except KafkaException as e:
            self.recorder.count(f"send offsets: {e.args[0].name()}")
            transaction.end(is_committed=False)
            return Outcome.UNKNOWN
        writer.pause(0.2)
        outcome = transaction.end(is_committed=self.chance.random() < 0.8)
        return outcome if outcome is Outcome.OK else Outcome.UNKNOWN  # else the group is joined anew, to read again


def _place(one: Polled) -> tuple[str, int]:
    topic, _, number = one.partition.rpartition("-")
    return topic, int(number)


@dataclass
class Ends(Reader):
    """Asks for the ends of partitions."""

    def run(self) -> None:
        consumer = consumer_of(self.address, "none", UNCOMMITTED)
        while not self.is_over:
            self.ends(consumer)
            self.recorder.stopping.wait(0.5)
        consumer.close()

    def ends(self, consumer: Consumer) -> dict[tuple[str, int], int]:
        """Those that are told."""
        found: dict[tuple[str, int], int] = {}
        for place in self.places:
            invoked_ns = self.recorder.now_ns()
            try:
                _, found[place] = consumer.get_watermark_offsets(TopicPartition(*place), ASKED_S, cached=False)
            except KafkaException as e:
                self.recorder.count(f"ends: {e.args[0].name()}")
                continue
            self.recorder.note(self.process, Kind.END_OFFSETS, invoked_ns, positions=self.positions({place: found[place]}))
        return found
