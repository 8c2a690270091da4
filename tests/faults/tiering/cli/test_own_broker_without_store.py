"""An endpoint of our own that starts while its archive's store does not respond, with real clients: the local tier serves."""

import signal
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import boto3
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from own_broker import OwnBroker
from s3_servers import serving

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]

SETTINGS = (
    "offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1", "remote.log.manager.task.interval.ms=100",
    "log.retention.check.interval.ms=100", "remote.log.manager.task.retry.backoff.max.ms=500",
)  # fmt: skip
CONFIG = {"remote.storage.enable": "true", "internal.segment.bytes": "20000", "local.retention.bytes": "1"}
WAIT_S, EACH = 60, 60
AT_BEGIN = TopicPartition("orders", 0, 0)


def produced(address: str, first: int) -> list[int]:
    """So many records, each of which is acknowledged."""
    done: list[int] = []
    producer = Producer({"bootstrap.servers": address, "acks": "all", "log_level": 0, "error_cb": lambda error: None})
    for number in range(first, first + EACH):
        producer.produce(
            "orders", f"{number} ".ljust(1_000, "x"), on_delivery=lambda e, m, n=number: done.append(n) if e is None else None
        )
        producer.poll(0)
        if number % 10 == 0:
            producer.flush(WAIT_S)  # batches that fit into small segments
    assert producer.flush(WAIT_S) == 0
    return done


def read(address: str, count: int) -> list[int]:
    """So many records from the begin."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "none", "auto.offset.reset": "error", "log_level": 0})
    consumer.assign([AT_BEGIN])
    found = [int((one.value() or b"").split()[0]) for one in consumer.consume(count, WAIT_S) if one.error() is None]
    consumer.close()
    return found


def until(what: str, is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def test_producing_and_local_reads_go_on_and_the_archive_follows_when_its_store_responds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(serving())
        port = int(url.rpartition(":")[2])
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}
        for name, value in {**keys, "AWS_ENDPOINT_URL": url, "AWS_EC2_METADATA_DISABLED": "true"}.items():
            monkeypatch.setenv(name, value)
        boto3.session.Session().client("s3").create_bucket(Bucket="later")
    options = ("--archive", "s3://later/kafka", "-c", f"agent.state.dir={tmp_path / 'state'}")
    broker = OwnBroker(tmp_path, *SETTINGS, options=options)
    segments = broker.logs / "orders-0"
    try:
        admin = AdminClient({"bootstrap.servers": broker.address})
        admin.create_topics([NewTopic("orders", 1, 1, config=CONFIG)])["orders"].result(WAIT_S)
        sent = produced(broker.address, 0)
        assert read(broker.address, EACH) == sent == [*range(EACH)]
        assert (segments / f"{0:020d}.log").exists(), "what is not archived stays"
        with serving(port=port):
            until("the first segment is archived and gone", lambda: not (segments / f"{0:020d}.log").exists())
            assert read(broker.address, EACH) == sent
        assert "s3://later/kafka has not answered yet" in broker.said
        sent += produced(broker.address, EACH)
        assert len(sent) == 2 * EACH
        assert "tiering: stopped" in broker.end(signal.SIGTERM)
    finally:
        broker.close()
