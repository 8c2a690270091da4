"""Reads partitions with Python's clients of Kafka that are not librdkafka, in the way of ../go/main.go.

python consume.py kafka-python|aiokafka ADDRESS
"""

import asyncio
import functools
import hashlib
import sys
from typing import Any

PATIENCE_MS, WAIT_MS = 60_000, 10


class Digest:
    """Of records."""

    def __init__(self) -> None:
        self._hash, self._count, self.last = hashlib.sha256(), 0, -1

    def add(self, offset: int, timestamp: int, key: bytes | None, value: bytes | None) -> None:
        self._hash.update(b"%d %d " % (offset, timestamp) + (key or b"") + (value or b""))
        self._count, self.last = self._count + 1, offset

    def __str__(self) -> str:
        return f"{self._hash.hexdigest()} {self._count}"


@functools.cache
def kafka_python(address: str, isolation: str) -> Any:
    """A consumer, which takes its time to begin."""
    import kafka

    return kafka.KafkaConsumer(
        bootstrap_servers=address,
        isolation_level=isolation,
        auto_offset_reset="none",
        enable_auto_commit=False,
        fetch_max_wait_ms=WAIT_MS,
    )


def of_kafka_python(address: str, topic: str, isolation: str, start: str, last: int) -> Digest:
    from kafka import TopicPartition

    consumer, partition = kafka_python(address, isolation), TopicPartition(topic, 0)
    consumer.assign([partition])
    offset = consumer.offsets_for_times({partition: int(start[1:])})[partition].offset if start[0] == "@" else int(start)
    consumer.seek(partition, offset)
    digest = Digest()
    while digest.last < last:
        add_all(digest, consumer.poll(timeout_ms=PATIENCE_MS).get(partition, []))
    return digest


async def of_aiokafka(address: str, topic: str, isolation: str, start: str, last: int) -> Digest:
    from aiokafka import AIOKafkaConsumer
    from aiokafka.structs import TopicPartition

    consumer = AIOKafkaConsumer(
        bootstrap_servers=address,
        isolation_level=isolation,
        auto_offset_reset="none",
        enable_auto_commit=False,
        fetch_max_wait_ms=WAIT_MS,
    )
    await consumer.start()
    partition = TopicPartition(topic, 0)
    consumer.assign([partition])
    offset = (await consumer.offsets_for_times({partition: int(start[1:])}))[partition].offset if start[0] == "@" else int(start)
    consumer.seek(partition, offset)
    digest = Digest()
    while digest.last < last:
        add_all(digest, (await consumer.getmany(partition, timeout_ms=PATIENCE_MS))[partition])
    await consumer.stop()
    return digest


def add_all(digest: Digest, records: list[Any]) -> None:
    for record in records:
        digest.add(record.offset, record.timestamp, record.key, record.value)


def main() -> None:
    client, address = sys.argv[1:]
    for line in sys.stdin:
        topic, isolation, start, last = line.split()
        asked = address, topic, isolation, start, int(last)
        print(of_kafka_python(*asked) if client == "kafka-python" else asyncio.run(of_aiokafka(*asked)), flush=True)


if __name__ == "__main__":
    main()
