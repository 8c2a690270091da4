"""A broker of ours that is killed under a producer and a consumer, and started again: what it has acknowledged is there, once."""

import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

READY_S_MAX = 60
STARTS = "from tiering.cli import main; main()"
PARTITIONS = 2


class Broker:
    """The process of a moment, always at the same address."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.address = f"127.0.0.1:{free.getsockname()[1]}"
        self._said = folder / "said"
        own = ("serve", "--own-log-dir", str(folder / "logs"), "--listen", self.address)
        settings = (f"num.partitions={PARTITIONS}", "offsets.topic.num.partitions=1", "group.initial.rebalance.delay.ms=0")
        self._command = [sys.executable, "-c", STARTS, *own, *(word for one in settings for word in ("-c", one))]
        self.start()

    def start(self) -> None:
        with self._said.open("wb") as said:
            self.process = subprocess.Popen(self._command, stderr=said, stdout=said)
        until = time.monotonic() + READY_S_MAX
        while "topics at" not in self._said.read_text():
            assert time.monotonic() < until, self._said.read_text()
            assert self.process.poll() is None, self._said.read_text()
            time.sleep(0.05)

    def end(self, number: signal.Signals) -> str:
        """What it has said when it is gone."""
        self.process.send_signal(number)
        self.process.wait(60)
        return self._said.read_text()


def test_what_is_acknowledged_is_read_once_in_its_order_over_a_kill(tmp_path: Path) -> None:
    broker, acknowledged, failed = Broker(tmp_path), list[tuple[int, int, int]](), list[str]()
    try:
        quick = {"bootstrap.servers": broker.address, "log_level": 0, "reconnect.backoff.max.ms": 200}
        producer = Producer({**quick, "acks": "all", "linger.ms": 1, "message.timeout.ms": 60_000})

        def told(error: KafkaError | None, message: Message) -> None:
            if error is None:
                acknowledged.append((message.partition(), message.offset(), int(message.value())))
            else:
                failed.append(str(error))

        def produce_until(count: int) -> None:
            while len(acknowledged) < count:
                numbers[0] += 1
                producer.produce("orders", str(numbers[0]).encode(), partition=numbers[0] % PARTITIONS, on_delivery=told)
                producer.poll(0.1 if len(producer) > 200 else 0)

        numbers = [0]
        produce_until(1_000)
        broker.end(signal.SIGKILL)
        broker.start()
        produce_until(2_000)
        producer.flush(60)
        consumer = Consumer({**quick, "group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": False})
        consumer.subscribe(["orders"])
        found: list[tuple[int, int, int]] = []
        while not {*acknowledged} <= {*found}:
            message = consumer.poll(30)
            assert message is not None, f"{len({*acknowledged} - {*found})} of {len(acknowledged)} are not there"
            assert message.error() is None
            found.append((message.partition(), message.offset(), int(message.value())))
        consumer.close()
        assert "tiering: stopped" in broker.end(signal.SIGTERM)
    finally:
        broker.process.kill()
        broker.process.wait()
    assert failed == []
    assert max(Counter((partition, offset) for partition, offset, _ in found).values()) == 1
    for number in range(PARTITIONS):
        offsets = [offset for partition, offset, _ in found if partition == number]
        assert offsets == list(range(len(offsets)))
