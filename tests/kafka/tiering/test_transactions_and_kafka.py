"""Kafka's own producer and tools, and librdkafka, in transactions that our endpoint coordinates."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import real_kafka
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka import TopicPartition as Place
from kafka_judge import oracle
from own_endpoint import OwnEndpoint
from served_endpoint import served

from local_log.engine.manager.config import ManagerConfig
from remote.clock import RandomIds, SystemClock
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.offsets_topic import OffsetsTopic
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.opening import OF_BROKERS, open_transactions
from tiering.local_tier.opening import local_tier

_GROUPS = GroupCoordinatorConfig(offsets_topic_partitions=2)
_TRANSACTIONS = TransactionConfig(state_partitions=2)


@contextmanager
def coordinating(folder: Path) -> Iterator[str]:
    """The endpoint's address, with the topics `orders` and `counts`."""
    tier = local_tier(ManagerConfig(log_dirs=(str(folder),), cleaner_enable=False), lambda topic: {})
    tier.start()
    for topic in ("orders", "counts"):
        if topic not in tier.topics():
            tier.create_topic(topic)
    endpoint = OwnEndpoint(tier)
    groups = GroupCoordinator(_GROUPS, OffsetsTopic.of(tier, _GROUPS), SystemClock(), RandomIds(), endpoint.said.append)
    groups.load()
    transactions = open_transactions(tier, _TRANSACTIONS, groups, SystemClock(), endpoint.said.append)
    endpoint.context = replace(endpoint.context, groups=groups, transactions=transactions)
    with served(endpoint) as (host, port):
        yield f"{host}:{port}"
    assert (tier.stop(), endpoint.said) == ((), [])


def consumer(address: str) -> Consumer:
    found = Consumer(
        {"bootstrap.servers": address, "group.id": "g", "isolation.level": "read_committed", "enable.partition.eof": True}
        | {"enable.auto.commit": False, "log_level": 0}
        | real_kafka.AT_ONCE
    )
    found.assign([Place("orders", 0, 0)])
    return found


def read(address: str) -> list[str]:
    """All that is committed."""
    of, found = consumer(address), list[str]()
    while (message := of.poll(20)) is not None and not message.error():
        found.append((message.value() or b"").decode())
    of.close()
    return found


def producer(address: str) -> Producer:
    found = Producer({"bootstrap.servers": address, "transactional.id": "shop", "log_level": 0})
    found.init_transactions(30)
    return found


@oracle
def test_java_s_producer_bumps_its_epoch_with_each_transaction_and_kafka_transactions_describes_it(tmp_path: Path) -> None:
    with coordinating(tmp_path / "logs") as address:
        server = ("--bootstrap-server", address)
        said = real_kafka.tool(
            "ProducerPerformance", "--topic", "orders", "--num-records", "2000", "--record-size", "100", "--throughput", "-1",
            "--transactional-id", "perf", "--transaction-duration-ms", "1", "--command-property", f"bootstrap.servers={address}",
        )  # fmt: skip
        assert "2000 records sent" in said
        assert len(read(address)) == 2000
        [_, row] = real_kafka.tool("TransactionsCommand", *server, "describe", "--transactional-id", "perf").splitlines()
        coordinator, own_id, producer_id, epoch, state = row.split()[:5]
        assert (coordinator, own_id, state) == ("1", "perf", "CompleteCommit")
        assert (int(producer_id) > OF_BROKERS, int(epoch) > 0) == (True, True)
        assert "perf" in real_kafka.tool("TransactionsCommand", *server, "list")


@oracle
def test_librdkafka_reads_and_writes_exactly_once_and_a_former_producer_is_fenced(tmp_path: Path) -> None:
    with coordinating(tmp_path / "logs") as address:
        shop, reader = producer(address), consumer(address)
        for number, commit in enumerate((True, False, True)):
            shop.begin_transaction()
            shop.produce("orders", b"%d" % number, partition=0)
            shop.send_offsets_to_transaction([Place("orders", 0, number + 1)], reader.consumer_group_metadata(), 30)
            shop.commit_transaction(30) if commit else shop.abort_transaction(30)
        assert read(address) == ["0", "2"]
        assert reader.committed([Place("orders", 0)], 30)[0].offset == 3
        shop.begin_transaction()
        shop.produce("orders", b"late", partition=0)
        shop.flush(30)
        reader.close()
    with coordinating(tmp_path / "logs") as address:
        again, reader = producer(address), consumer(address)
        again.begin_transaction()
        again.produce("orders", b"3", partition=0)
        again.commit_transaction(30)
        assert read(address) == ["0", "2", "3"]
        assert reader.committed([Place("orders", 0)], 30)[0].offset == 3
        former = producer(address)
        again.begin_transaction()
        again.produce("orders", b"fenced", partition=0)
        with pytest.raises(KafkaException, match="_FENCED"):
            again.commit_transaction(30)
        former.begin_transaction()
        former.abort_transaction(30)
        reader.close()
