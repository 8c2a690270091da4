"""Topics of a broker for the trial: what is produced, deleted and consumed there, and what has been acknowledged."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

VALUE_BYTES = 1_000

Records = dict[int, bytes]


@dataclass
class Topics:
    """What a broker has acknowledged, by topic; each has one partition."""

    address: str
    acknowledged: dict[str, Records] = field(default_factory=dict)

    def create(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        admin = AdminClient({"bootstrap.servers": self.address})
        topics = [NewTopic(name, 1, 1, config=dict(config)) for name, config in configs.items()]
        for future in admin.create_topics(topics).values():
            future.result()

    def produce(self, topic: str, records: int, *, keys: int = 0) -> None:
        known = self.acknowledged.setdefault(topic, {})

        def delivered(error: Any, message: Any) -> None:
            assert error is None, error
            known[message.offset()] = message.value()

        producer = Producer({"bootstrap.servers": self.address, "log_level": 0, "enable.idempotence": True, "linger.ms": 20})
        for number in range(records):
            key = b"%06d" % (number % keys) if keys else None
            producer.produce(topic, b"%08d" % number + os.urandom(VALUE_BYTES), key, 0, on_delivery=delivered)
            producer.poll(0)
            if number % 2_000 == 1_999:
                producer.flush()
        producer.flush()

    def consume(self, topic: str, end: int) -> Records:
        """What a consumer is given from the first offset to `end`."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "trial", "enable.auto.commit": False, "log_level": 0})
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
        consumer.assign([TopicPartition(topic, 0, low)])
        given: Records = {}
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for message in consumer.consume(1_000, 1):
                given[message.offset()] = message.value()
            (position,) = consumer.position([TopicPartition(topic, 0)])
            if position.offset >= end:
                break
        consumer.close()
        return {offset: value for offset, value in given.items() if offset < end}

    def delete_records(self, topic: str, before: int) -> None:
        admin = AdminClient({"bootstrap.servers": self.address})
        for future in admin.delete_records([TopicPartition(topic, 0, before)]).values():
            future.result()

    def delete(self, topic: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.address})
        for future in admin.delete_topics([topic]).values():
            future.result()
