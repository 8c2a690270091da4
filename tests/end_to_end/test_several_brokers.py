"""Three processes that serve one archive: one is killed under a consumer, which goes on without a gap."""

import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from tiered_worlds import ARCHIVED, made

from remote.store.open import open_store

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

READY_S_MAX = 60
STARTS = "from tiering.cli import main; main()"


def started(archive: Path, said_to: Path, *options: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", STARTS, "serve", "--archive", str(archive), *options]
    with said_to.open("wb") as said:
        return subprocess.Popen(command, stderr=said, stdout=said)


def said(file: Path, pattern: str) -> str:
    """What a broker says, as soon as it does."""
    until = time.monotonic() + READY_S_MAX
    while (found := re.search(pattern, file.read_text())) is None:
        assert time.monotonic() < until, file.read_text()
        time.sleep(0.05)
    return found[1]


def wait_for_all(address: str) -> None:
    """Until the broker there knows all three."""
    client, until = AdminClient({"bootstrap.servers": address, "log_level": 0}), time.monotonic() + READY_S_MAX
    while client.list_topics(timeout=30).brokers.keys() != {1, 2, 3}:
        assert time.monotonic() < until, address
        time.sleep(0.05)


@dataclass(frozen=True)
class Brokers:
    """Processes by their ids, on one archive, and the offsets of all its records by topic; each has one partition."""

    running: dict[int, subprocess.Popen[bytes]]
    address: str
    offsets: dict[str, list[int]]


def wait_for_leaders(consumer: Consumer, brokers: Brokers) -> None:
    """Until each of the three leads a topic: on a busy machine one may be taken for dead for a moment."""
    until = time.monotonic() + READY_S_MAX
    while (leaders := {consumer.list_topics(topic).topics[topic].partitions[0].leader for topic in brokers.offsets}) != {1, 2, 3}:
        assert time.monotonic() < until, leaders
        time.sleep(0.05)


def ways_to_know_each_other() -> dict[str, dict[int, list[str]]]:
    """The options of each broker."""
    with ExitStack() as held:
        sockets = [held.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(3)]
        ports = [one.getsockname()[1] for one in sockets]
    listed = [word for number, port in enumerate(ports, 1) for word in ("--broker", f"{number}@127.0.0.1:{port}")]
    return {
        "registered": {number: ["--listen", "127.0.0.1:0", "--register"] for number in (1, 2, 3)},
        "listed": {number: ["--listen", f"127.0.0.1:{port}", *listed] for number, port in enumerate(ports, 1)},
    }


@pytest.fixture(params=["registered", "listed"])
def brokers(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Brokers]:
    world, store = made(tmp_path / "made"), open_store(str(tmp_path / "archive"))
    for meta in world.store.list(""):
        store.put_if_absent(meta.key, world.store.get(meta.key))
    offsets = {}
    for partition in ARCHIVED:
        log = world.archived(partition)
        offsets[partition[:-2]] = [n for records in log.read(log.log_start_offset) for n in records["offset"].to_pylist()]
    with ExitStack() as stack:
        running = {}
        for number, options in ways_to_know_each_other()[request.param].items():
            said_to = tmp_path / str(number)
            running[number] = started(tmp_path / "archive", said_to, "--broker-id", str(number), *options)
            stack.callback(running[number].wait)
            stack.callback(running[number].kill)
        addresses = [said(tmp_path / str(number), r"topics at (\S+)\n") for number in running]
        for address in addresses:
            wait_for_all(address)
        yield Brokers(running, addresses[0], offsets)


def test_a_consumer_goes_on_where_it_was_when_a_broker_is_killed(brokers: Brokers) -> None:
    small = {"fetch.message.max.bytes": 20_000, "topic.metadata.refresh.interval.ms": 1_000}
    asked = {"bootstrap.servers": brokers.address, "group.id": "none", "auto.offset.reset": "error", "log_level": 0}
    consumer = Consumer({**asked, **small, "isolation.level": "read_uncommitted", "enable.auto.commit": False})
    try:
        wait_for_leaders(consumer, brokers)
        consumer.assign([TopicPartition(topic, 0, offsets[0]) for topic, offsets in brokers.offsets.items()])
        read: dict[str, list[int]] = {topic: [] for topic in brokers.offsets}
        wanted = sum(map(len, brokers.offsets.values()))
        until = time.monotonic() + READY_S_MAX
        while sum(map(len, read.values())) < wanted:
            message = consumer.poll(1.0)
            assert time.monotonic() < until, {topic: len(found) for topic, found in read.items()}
            if message is None:
                continue
            assert message.error() is None, message.error()
            read[message.topic()].append(message.offset())
            if sum(map(len, read.values())) == 50:
                brokers.running[2].kill()
    finally:
        consumer.close()
    assert read == brokers.offsets
