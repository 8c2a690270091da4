"""librdkafka as `write` has it."""

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from write import COMMITTED, aborted, chunks, digest


class Client:
    """The commands."""

    def __init__(self, address: str) -> None:
        self._at = {"bootstrap.servers": address, "log_level": 0, "reconnect.backoff.max.ms": 200}

    def create(self, topic: str, partitions: str) -> str:
        admin = AdminClient(self._at)
        admin.create_topics([NewTopic(topic, int(partitions), 1)])[topic].result(60)
        return "ok"

    def write(self, topic: str, codec: str, first: str, until: str) -> int:
        wanted = {"enable.idempotence": True, "compression.type": codec, "linger.ms": 1}
        producer, last, failed = Producer({**self._at, **wanted}), int(first), []
        for chunk in chunks(last, until):
            for key, value in chunk:
                producer.produce(topic, value, key, on_delivery=lambda error, _: error and failed.append(error))
            assert producer.flush(60) == 0
            assert not failed, failed
            last += len(chunk)
        return last

    def transact(self, topic: str, own_id: str, first: str, until: str, group: str) -> str:
        producer = Producer({**self._at, "transactional.id": own_id})
        producer.init_transactions(60)
        producer.begin_transaction()
        for chunk in chunks(int(first), until):
            for key, value in chunk:
                producer.produce(topic, value, key)
        member = Consumer({**self._at, "group.id": group})
        producer.send_offsets_to_transaction([TopicPartition(topic, 0, COMMITTED)], member.consumer_group_metadata(), 60)
        producer.commit_transaction(60)
        producer.begin_transaction()
        for key, value in aborted(first, until):
            producer.produce(topic, value, key)
        producer.flush(60)
        producer.abort_transaction(60)
        return "ok"

    def read(self, topic: str, group: str, count: str) -> str:
        wanted = {"group.id": group, "auto.offset.reset": "earliest", "fetch.wait.max.ms": 10, "enable.auto.commit": False}
        consumer, found = Consumer({**self._at, **wanted, "group.protocol": "consumer"}), []
        consumer.subscribe([topic])
        while len(found) < int(count):
            for message in consumer.consume(1_000, 0.1):
                assert message.error() is None, message.error()
                found.append((message.partition(), message.offset(), message.key(), message.value()))
        consumer.commit(asynchronous=False)
        consumer.close()
        return digest(found)
