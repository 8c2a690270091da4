"""A broker of ours that is killed under a producer and a consumer, and started again: what it has acknowledged is there, once."""

import signal
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, Message, Producer
from own_broker import OwnBroker

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]

PARTITIONS = 2
SETTINGS = (f"num.partitions={PARTITIONS}", "offsets.topic.num.partitions=1", "group.initial.rebalance.delay.ms=0")


def test_what_is_acknowledged_is_read_once_in_its_order_over_a_kill(tmp_path: Path) -> None:
    broker, acknowledged, failed = OwnBroker(tmp_path, *SETTINGS), list[tuple[int, int, int]](), list[str]()
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
        broker.close()
    assert failed == []
    assert max(Counter((partition, offset) for partition, offset, _ in found).values()) == 1
    for number in range(PARTITIONS):
        offsets = [offset for partition, offset, _ in found if partition == number]
        assert offsets == list(range(len(offsets)))
