"""Real clients of an endpoint of our own whose disk fails: what is acknowledged is there afterwards, and nothing else is torn."""

import signal
import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from failing_calls import starting
from own_broker import OwnBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SETTINGS = ("offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1", "num.recovery.threads.per.data.dir=1")
METRICS = "endpoint.http.address=127.0.0.1:0"
WAIT_S = 20


class Client:
    """A producer that asks once; `acknowledged` are the values by topic."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.acknowledged: dict[str, list[str]] = {}
        quick = {"message.timeout.ms": 3_000, "message.send.max.retries": 0, "log_level": 0, "error_cb": lambda error: None}
        self._producer = Producer({"bootstrap.servers": address, "acks": "all", "linger.ms": 0, **quick})
        self._admin = AdminClient({"bootstrap.servers": address, "log_level": 0})

    def create(self, topic: str) -> None:
        self._admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(WAIT_S)

    def send(self, topic: str, value: str) -> KafkaError | None:
        """The error, None if it is acknowledged."""
        told: list[KafkaError | None] = []
        self._producer.produce(topic, value * 100, on_delivery=lambda error, message: told.append(error))
        self._producer.flush(WAIT_S)
        if told[0] is None:
            self.acknowledged.setdefault(topic, []).append(value * 100)
        return told[0]

    def read(self, topic: str) -> list[str]:
        """All that is there."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "none", "log_level": 0})
        _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), WAIT_S)
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = [(one.value() or b"").decode() for one in consumer.consume(end, WAIT_S) if one.error() is None]
        consumer.close()
        return found


def metric(broker: OwnBroker, name: str) -> float:
    address = next(line for line in broker.said.splitlines() if "metrics at" in line).split()[-1]
    with urllib.request.urlopen(address, timeout=WAIT_S) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line for line in lines if line.startswith(f"{name} ")).split()[-1])


def test_a_short_write_is_finished_and_one_without_room_after_it_takes_its_directory_offline_alone(tmp_path: Path) -> None:
    marker = tmp_path / "fault"
    options = ("--own-log-dir", str(tmp_path / "other"))
    broker = OwnBroker(tmp_path, *SETTINGS, METRICS, options=options, starts=starting(marker, "/orders-"))
    try:
        client = Client(broker.address)
        for topic in ("orders", "payments"):  # each goes where fewer logs are: not into the same directory
            client.create(topic)
            assert client.send(topic, "a") is None
        marker.write_text("short")
        assert client.send("orders", "b") is None
        assert client.read("orders") == client.acknowledged["orders"]
        marker.write_text("full")
        assert client.send("orders", "c") == KafkaError.KAFKA_STORAGE_ERROR
        assert [client.send("payments", value) for value in "bc"] == [None, None]
        assert metric(broker, "kafka_tiering_local_tier_offline_log_dirs") == 1
        assert "orders-0: an append fails" in broker.said
        assert "No space left on device; free some space there, then try again" in broker.said
        marker.unlink()
        assert client.send("orders", "d") is not None, "after a failed write nobody knows what is on the disk"
        broker.end(signal.SIGTERM)
        broker.start()
        assert client.send("orders", "e") is None
        assert {topic: client.read(topic) for topic in client.acknowledged} == client.acknowledged
    finally:
        broker.close()


def test_what_could_not_be_synced_is_not_acknowledged_and_an_endpoint_without_a_disk_ends(tmp_path: Path) -> None:
    marker = tmp_path / "fault"
    broker = OwnBroker(tmp_path, *SETTINGS, "write.caching=false", starts=starting(marker, "/orders-"))
    try:
        client = Client(broker.address)
        client.create("orders")
        assert client.send("orders", "a") is None
        marker.write_text("sync")
        assert client.send("orders", "b") == KafkaError.KAFKA_STORAGE_ERROR
        assert broker.process.wait(WAIT_S)
        assert "appended records are not synced" in broker.said
        assert "Input/output error; look into the system's log whether the disk fails, and mend it, then try again" in broker.said
        marker.unlink()
        broker.start()
        assert client.send("orders", "c") is None
        found = client.read("orders")
        assert [found[0], found[-1]] == client.acknowledged["orders"]
        assert found[1:-1] in ([], ["b" * 100]), "it was written, and perhaps not to the disk"
    finally:
        broker.close()
