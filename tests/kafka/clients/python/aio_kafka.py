"""aiokafka as `write` has it."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from write import COMMITTED, aborted, chunks, digest


def run(command: Callable[..., Coroutine[Any, Any, object]]) -> Callable[..., object]:
    """A command in a loop of its own."""
    return functools.wraps(command)(lambda *words: asyncio.run(command(*words)))


class Client:
    """The commands."""

    def __init__(self, address: str) -> None:
        self._at = {"bootstrap_servers": address, "retry_backoff_ms": 50}

    @run
    async def create(self, topic: str, partitions: str) -> str:
        admin = AIOKafkaAdminClient(**self._at)
        await admin.start()
        await admin.create_topics([NewTopic(topic, int(partitions), 1)])
        await admin.close()
        return "ok"

    @run
    async def write(self, topic: str, codec: str, first: str, until: str) -> int:
        of = None if codec == "none" else codec
        last = int(first)
        async with AIOKafkaProducer(**self._at, enable_idempotence=True, compression_type=of) as producer:
            for chunk in chunks(last, until):
                await asyncio.gather(*[await producer.send(topic, key=key, value=value) for key, value in chunk])
                last += len(chunk)
        return last

    @run
    async def transact(self, topic: str, own_id: str, first: str, until: str, group: str) -> str:
        async with AIOKafkaProducer(**self._at, transactional_id=own_id) as producer:
            async with producer.transaction():
                for chunk in chunks(int(first), until):
                    for key, value in chunk:
                        await producer.send(topic, key=key, value=value)
                await producer.send_offsets_to_transaction({TopicPartition(topic, 0): COMMITTED}, group)
            await producer.begin_transaction()
            for key, value in aborted(first, until):
                await producer.send(topic, key=key, value=value)
            await producer.flush()
            await producer.abort_transaction()
        return "ok"

    @run
    async def read(self, topic: str, group: str, count: str) -> str:
        wanted = {"group_id": group, "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        found = []
        async with AIOKafkaConsumer(topic, **self._at, **wanted, enable_auto_commit=False, fetch_max_wait_ms=10) as consumer:
            while len(found) < int(count):
                for records in (await consumer.getmany(timeout_ms=60_000)).values():
                    found += [(r.partition, r.offset, r.key, r.value) for r in records]
            await consumer.commit()
        return digest(found)
