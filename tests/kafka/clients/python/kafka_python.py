"""kafka-python as `write` has it."""

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import NewTopic
from kafka.structs import OffsetAndMetadata
from write import COMMITTED, aborted, chunks, digest

SOON = {"reconnect_backoff_max_ms": 200, "retry_backoff_ms": 50}


class Client:
    """The commands."""

    def __init__(self, address: str) -> None:
        self._at = {"bootstrap_servers": address, **SOON}

    def create(self, topic: str, partitions: str) -> str:
        admin = KafkaAdminClient(**self._at)
        admin.create_topics([NewTopic(topic, int(partitions), 1)])
        admin.close()
        return "ok"

    def write(self, topic: str, codec: str, first: str, until: str) -> int:
        of = None if codec == "none" else codec
        producer = KafkaProducer(**self._at, acks="all", enable_idempotence=True, compression_type=of)
        last = int(first)
        for chunk in chunks(last, until):
            for sent in [producer.send(topic, key=key, value=value) for key, value in chunk]:
                sent.get(60)
            last += len(chunk)
        producer.close()
        return last

    def transact(self, topic: str, own_id: str, first: str, until: str, group: str) -> str:
        producer = KafkaProducer(**self._at, transactional_id=own_id)
        producer.init_transactions()
        producer.begin_transaction()
        for chunk in chunks(int(first), until):
            for key, value in chunk:
                producer.send(topic, key=key, value=value)
        producer.send_offsets_to_transaction({TopicPartition(topic, 0): OffsetAndMetadata(COMMITTED, "", -1)}, group)
        producer.commit_transaction()
        producer.begin_transaction()
        for key, value in aborted(first, until):
            producer.send(topic, key=key, value=value)
        producer.flush()
        producer.abort_transaction()
        producer.close()
        return "ok"

    def read(self, topic: str, group: str, count: str) -> str:
        wanted = {"group_id": group, "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
        consumer = KafkaConsumer(topic, **self._at, **wanted, enable_auto_commit=False, fetch_max_wait_ms=10)
        found = []
        while len(found) < int(count):
            for records in consumer.poll(60_000).values():
                found += [(r.partition, r.offset, r.key, r.value) for r in records]
        consumer.commit()
        consumer.close()
        return digest(found)
