"""Kafka Streams counts words exactly once at an endpoint of its own log directory, which is killed twice meanwhile.

Each word of each line is told with its count so far. So the counts that are committed of a word are 1, 2, 3 and so on: one told
twice or left out is seen.
"""

import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import real_kafka
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from foreign_clients import Client, running
from java_tools import java
from kafka_judge import oracle
from own_broker import OwnBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

PARTITIONS, LINES, WORDS, PATIENCE_S = 2, 300, 20, 60
CHANGELOG = "word-count-counted-changelog"
SETTINGS = ("offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1", "group.initial.rebalance.delay.ms=0")


@dataclass
class Counting:
    """The broker, the application, and how often each word was written."""

    broker: OwnBroker
    application: Client
    written: Counter[str] = field(default_factory=Counter)

    def write(self) -> None:
        """So many lines more, all acknowledged."""
        producer = Producer({"bootstrap.servers": self.broker.address, "enable.idempotence": True, "log_level": 0})
        for number in range(LINES):
            words = [f"word-{(number + 1) * (place + 1) % WORDS}" for place in range(1 + number % 5)]
            self.written.update(words)
            producer.produce("lines", " ".join(words))
        assert producer.flush(PATIENCE_S) == 0

    def kill(self) -> None:
        """Ends the broker at once when the application has written something, and starts it."""
        before, until = self.size("counts"), time.monotonic() + PATIENCE_S
        while self.size("counts") == before:
            assert time.monotonic() < until
            time.sleep(0.01)
        self.broker.end(signal.SIGKILL)
        self.broker.start()

    def size(self, topic: str) -> int:
        """Of its logs, in bytes."""
        return sum(file.stat().st_size for file in self.broker.logs.glob(f"{topic}-?/*.log"))

    def counts(self, protocol: str) -> dict[str, list[int]]:
        """What is committed in the topic of counts, until that is as much as was written, and no more comes."""
        of_group = {"group.id": f"reads-{protocol}", "group.protocol": protocol, "auto.offset.reset": "earliest"}
        consumer = Consumer({"bootstrap.servers": self.broker.address, **of_group, **real_kafka.AT_ONCE, "log_level": 0})
        consumer.subscribe(["counts"])
        found, until, wanted = defaultdict[str, list[int]](list), time.monotonic() + PATIENCE_S, self.written.total()
        try:
            while (message := consumer.poll(0.5)) is not None or sum(map(len, found.values())) < wanted:
                assert time.monotonic() < until, f"{sum(map(len, found.values()))} of {wanted}"
                if message is None:
                    continue
                if message.error():
                    raise KafkaException(message.error())
                found[message.key().decode()].append(int(message.value()))
        finally:
            consumer.close()
        return found


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[Counting]:
    broker = OwnBroker(tmp_path, *SETTINGS)
    try:
        admin = AdminClient({"bootstrap.servers": broker.address})
        for made in admin.create_topics([NewTopic(name, PARTITIONS) for name in ("lines", "counts")]).values():
            made.result(PATIENCE_S)
        jars = real_kafka.jars(real_kafka.STREAMS)
        with running([*java(Path(__file__).parents[1] / "WordCount.java", jars), broker.address]) as application:
            yield Counting(broker, application)
    finally:
        broker.close()


@oracle
def test_words_are_counted_exactly_once_over_two_kills_and_go_on_from_the_changelog(counting: Counting, tmp_path: Path) -> None:
    application, written = counting.application, counting.written
    assert application.ask("start", tmp_path / "state", "classic") == "RUNNING"
    for _ in range(2):
        counting.write()
        counting.kill()
    assert counting.counts("classic") == {word: [*range(1, count + 1)] for word, count in written.items()}
    assert application.ask("stop") == "0 -"
    assert application.ask("start", tmp_path / "wiped", "classic") == "RUNNING"
    counting.write()
    assert counting.counts("consumer") == {word: [*range(1, count + 1)] for word, count in written.items()}
    restored, failure = application.ask("stop").split(" ", 1)
    assert (int(restored) > 0, failure) == (True, "-")
    assert "does not support the STREAMS group protocol" in application.ask("start", tmp_path / "refused", "streams")
