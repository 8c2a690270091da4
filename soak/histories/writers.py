"""Producers: plain, idempotent, transactional, and transactional ones that are fenced and go on."""

import random  # noqa: TID251  # of a seed
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from histories.operations import Kind, Outcome, Polled, Position, Sent
from histories.recorder import Recorder

QUICK = {
    "log_level": 0, "reconnect.backoff.ms": 50, "reconnect.backoff.max.ms": 500, "socket.timeout.ms": 6_000,
    "retry.backoff.ms": 50, "topic.metadata.refresh.fast.interval.ms": 50, "metadata.recovery.strategy": "none",
}  # fmt: skip
"""Without the strategy "rebootstrap" of librdkafka 2.16: send_offsets_to_transaction can wait for ever for the connection of a
coordinator that was dropped with the brokers of before."""
DEBUG_PRODUCER, DEBUG_CONSUMER = "eos,broker", "cgrp,broker"
"""What librdkafka logs of clients with transactions."""
PAD = 1_000
ATTEMPT_S, TXN_S = 4, 30
TRANSACTION_TIMEOUT_MS = 8_000
PARTITIONS = {"orders": 4, "out": 2}
ALL = tuple((topic, number) for topic, count in PARTITIONS.items() for number in range(count))


Places = tuple[tuple[str, int], ...]


def padded(value: str, size: int = PAD) -> bytes:
    return value.encode().ljust(size, b" ")


@dataclass
class Writer:
    """A process that writes; `chance` draws what."""

    process: str
    address: str
    recorder: Recorder
    chance: random.Random
    places: Places = ALL
    """The topics and partitions that it writes to."""

    def producer(self, **more: Any) -> Producer:
        made = {"bootstrap.servers": self.address, "linger.ms": 2, "batch.size": 50_000, "error_cb": lambda error: None}
        return Producer({**QUICK, **made, "client.id": self.process, **more})

    def pause(self, most_s: float) -> None:
        self.recorder.stopping.wait(self.chance.random() * most_s)

    @property
    def is_over(self) -> bool:
        return self.recorder.stopping.is_set()


@dataclass
class Sender(Writer):
    """One record after the other. Without `is_idempotent` nothing is sent twice, so that nothing may be there twice."""

    is_idempotent: bool = True

    def run(self) -> None:
        codec = self.chance.choice(["none", "lz4", "zstd"])
        if self.is_idempotent:
            # Sent again to a paused process, a batch is in two of its connections when it goes on.
            made = {"enable.idempotence": True, "message.timeout.ms": 90_000}
            made |= dict.fromkeys(("socket.timeout.ms", "request.timeout.ms"), 1_500)
        else:
            made = {"message.send.max.retries": 0, "message.timeout.ms": 6_000, "acks": self.chance.choice(["1", "all"])}
        producer = self.producer(**made, **{"compression.type": codec})
        while not self.is_over:
            for _ in range(self.chance.randrange(1, 20)):
                self.send(producer)
            producer.poll(0)
            if len(producer) > 500:
                producer.poll(0.2)
            self.pause(0.3)
        producer.flush(90)

    def send(self, producer: Producer, size: int = PAD) -> None:
        """One record of so many bytes, to any partition."""
        value, (topic, number), invoked_ns = (
            self.recorder.new_value(self.process),
            self.chance.choice(self.places),
            self.recorder.now_ns(),
        )

        def told(error: Any, message: Message) -> None:
            offset = message.offset() if error is None and message.offset() is not None and message.offset() >= 0 else None
            if error is not None:
                self.recorder.count(f"{self.process}: {error.name()}")
            outcome = Outcome.UNKNOWN if error is not None else Outcome.OK
            self.recorder.note(self.process, Kind.SEND, invoked_ns, outcome, sent=(Sent(f"{topic}-{number}", value, offset),))

        producer.produce(topic, padded(value, size), partition=number, on_delivery=told)


@dataclass
class Transaction:
    """What a producer does from its begin to its end."""

    writer: Writer
    producer: Producer
    process: str
    _sent: dict[str, Sent] = field(default_factory=dict)
    polled: tuple[Polled, ...] = ()
    positions: tuple[Position, ...] = ()
    group: str = ""
    ends_ns: int = 0

    def __post_init__(self) -> None:
        self._began_ns = self.writer.recorder.now_ns()
        self.producer.begin_transaction()
        self.writer.recorder.open[id(self)] = lambda: self.note(Outcome.UNKNOWN)

    @property
    def is_answered(self) -> bool:
        """Whether the offset of every record was told."""
        return all(one.offset is not None for one in self._sent.values())

    def send(self, topic: str, number: int) -> None:
        value, partition = self.writer.recorder.new_value(self.process), f"{topic}-{number}"
        self._sent[value] = Sent(partition, value)

        def told(error: Any, message: Message) -> None:
            if error is None and message.offset() is not None and message.offset() >= 0:
                self._sent[value] = Sent(partition, value, message.offset())

        self.producer.produce(topic, padded(value), partition=number, on_delivery=told)
        self.producer.poll(0)

    def end(self, *, is_committed: bool) -> Outcome:
        """Ends it, with all the attempts that it takes, and notes it."""
        self.ends_ns = self.writer.recorder.now_ns()
        outcome = self._commit() if is_committed else self._abort()
        self.note(outcome)
        return outcome

    def note(self, outcome: Outcome) -> None:
        """Notes how it has ended."""
        self.writer.recorder.open.pop(id(self), None)
        now = self.ends_ns or self.writer.recorder.now_ns()
        self.writer.recorder.note(
            self.process, Kind.TXN, self._began_ns, outcome, sent=tuple(self._sent.values()), polled=self.polled,
            positions=self.positions, group=self.group, ends_ns=now,
        )  # fmt: skip

    def _commit(self) -> Outcome:
        error = attempted(self.writer.recorder, "commit", self.producer.commit_transaction)
        if error is not None and error.txn_requires_abort():
            return self._abort()
        return Outcome.OK if error is None else Outcome.UNKNOWN

    def _abort(self) -> Outcome:
        """Nothing of it is committed, whatever is answered: a producer that begins with its id aborts it, or time does."""
        attempted(self.writer.recorder, "abort", self.producer.abort_transaction)
        return Outcome.FAIL


@dataclass
class Transactor(Writer):
    """Transactions of some records in some partitions, which it commits or aborts, and holds open for a while."""

    def begun(self, transactional_id: str) -> Producer | None:
        """A producer that may begin transactions."""
        made = {"transactional.id": transactional_id, "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS, "debug": DEBUG_PRODUCER}
        producer = self.producer(**made, **{"request.timeout.ms": 2_500, "message.timeout.ms": TRANSACTION_TIMEOUT_MS})
        return producer if attempted(self.recorder, "init", producer.init_transactions) is None else None

    def run(self) -> None:
        while not self.is_over:
            producer = self.begun(self.process)
            outcome = Outcome.OK
            while producer is not None and outcome is not Outcome.UNKNOWN and not self.is_over:
                try:
                    outcome = self.transact(producer)
                except KafkaException as e:  # a fatal one: another producer has to be made
                    self.recorder.count(f"{self.process}: {e.args[0].name()}")
                    outcome = Outcome.UNKNOWN

    def transact(self, producer: Producer) -> Outcome:
        transaction = Transaction(self, producer, self.process)
        try:
            for _ in range(self.chance.randrange(1, 8)):
                transaction.send(*self.chance.choice(self.places))
                self.pause(0.15)
        except (KafkaException, BufferError):
            transaction.end(is_committed=False)
            return Outcome.UNKNOWN
        outcome = transaction.end(is_committed=self.chance.random() < 0.65)
        # librdkafka (2.8 to 2.16) gives the sequence numbers of aborted records that had no answer to later ones. If a broker
        # had taken the aborted ones, it answers the later ones as their duplicates, and they are lost: by Kafka, too.
        return outcome if transaction.is_answered else Outcome.UNKNOWN


@dataclass
class Zombie(Transactor):
    """Producers that have been fenced by another one with their id, and go on all the same."""

    def run(self) -> None:
        number = 0
        while not self.is_over:
            number += 1
            old = self.begun(self.process)
            if old is None:
                continue
            try:
                self._go_on_fenced(old, number)
            except KafkaException as e:
                self.recorder.count(f"{self.process}: {e.args[0].name()}")
            self.pause(1)

    def _go_on_fenced(self, old: Producer, number: int) -> None:
        fenced = Transaction(self, old, f"{self.process}.old{number}")
        fenced.send("orders", 0)
        fenced.send("out", 0)
        old.flush(ATTEMPT_S)
        new = self.begun(self.process)
        if new is None:
            fenced.ends_ns = self.recorder.now_ns()
            fenced.note(Outcome.FAIL)
            return
        following = Transaction(self, new, f"{self.process}.new{number}")
        following.send("orders", 0)
        new.flush(ATTEMPT_S)
        outcome = Outcome.FAIL
        try:
            fenced.send("orders", 0)
            fenced.send("orders", 1)
            old.flush(ATTEMPT_S)
            fenced.ends_ns = self.recorder.now_ns()
            old.commit_transaction(ATTEMPT_S)
            outcome = Outcome.OK
        except KafkaException as e:
            self.recorder.count(f"fenced: {e.args[0].name()}")
        fenced.note(outcome)
        following.end(is_committed=True)


def attempted(recorder: Recorder, what: str, call: Callable[[float], object]) -> KafkaError | None:
    """Calls until it is done, and there is no error, or asking again is of no use, or TXN_S are over; counts what goes wrong."""
    until = time.monotonic() + TXN_S
    while True:
        try:
            call(ATTEMPT_S)
        except KafkaException as e:
            error: KafkaError = e.args[0]
            recorder.count(f"{what}: {error.name()}")
            if error.txn_requires_abort() or not error.retriable() or time.monotonic() > until:
                return error
        else:
            return None
