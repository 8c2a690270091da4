"""Clients of Kafka that others wrote, at work with an endpoint of its own log directory, which is killed while they write.

All at once with one endpoint: each creates its topic, writes with every codec that it has, goes on over `kill -9` and a start,
ends transactions, and reads in a group. Then the endpoint is killed and started once more.
"""

import hashlib
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
import real_kafka
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from foreign_clients import go_clients, js_clients, running
from own_broker import OwnBroker
from writing_clients import ALL_CODECS, Program, answers, programs

pytestmark = [pytest.mark.slow, pytest.mark.made_before.with_args(go_clients, js_clients)]

Records = list[tuple[int, int, str, str]]
"""Partition, offset, key and value of each; those of a partition in their order."""

PARTITIONS, EACH, COMMITTED, PATIENCE_S = 3, 100, 7, 60
SETTINGS = ("offsets.topic.num.partitions=2", "transaction.state.log.num.partitions=2", "group.initial.rebalance.delay.ms=0")


def one_of(program: Program) -> object:
    """A parameter."""
    is_missing = pytest.mark.skipif(not program.is_here, reason=f"{program.needs} is not here")
    return pytest.param(program.name, marks=is_missing)


EACH_CLIENT = pytest.mark.parametrize("name", [one_of(program) for program in programs()])


@dataclass
class Done:
    """What clients did, by name; the topic of each has its name, and its group, too."""

    programs: dict[str, Program]
    records: dict[str, Records]
    offsets: dict[tuple[str, str], dict[int, int]]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    folder = tmp_path_factory.mktemp("own")
    broker = OwnBroker(folder, *SETTINGS)
    here = [one for one in programs() if one.is_here]
    with ExitStack() as stack:
        stack.callback(broker.close)
        for one in here:
            one.client = stack.enter_context(running([*map(str, one.command()), broker.address]))
        work(broker, here, folder / "over")
        broker.end(signal.SIGKILL)
        broker.start()
        groups = [(one.name, group) for one in here for group in (one.name, f"{one.name}-transactions")]
        by_name = {one.name: one for one in here}
        yield Done(by_name, read(broker.address, list(by_name)), {of: offsets(broker.address, *of) for of in groups})
        assert "tiering: stopped" in broker.end(signal.SIGTERM)


def work(broker: OwnBroker, here: list[Program], over: Path) -> None:
    """What each does; all at the same time."""
    answers(here, lambda one: ["create", one.name, PARTITIONS])
    for codec in ALL_CODECS:
        of = [one for one in here if codec in one.codecs]
        for one, last in answers(of, lambda one: ["write", one.name, codec, one.wrote, one.wrote + EACH]):  # noqa: B023
            one.wrote = int(last)

    def kill() -> None:
        grown(broker, here)
        broker.end(signal.SIGKILL)
        broker.start()
        grown(broker, here)
        over.touch()

    for one, last in answers(here, lambda one: ["write", one.name, one.codecs[-1], one.wrote, over], kill):
        one.wrote = int(last)

    def transact(one: Program) -> list[object]:
        return ["transact", one.name, f"{one.name}-id", one.wrote, one.wrote + EACH, f"{one.name}-transactions"]

    for one, _ in answers(here, transact):
        one.wrote += EACH
    for one, digest in answers(here, lambda one: ["read", one.name, one.name, one.wrote]):
        one.read = digest


def grown(broker: OwnBroker, here: list[Program]) -> None:
    """Until the log of each is larger than now."""
    sizes = {one.name: size(broker, one.name) for one in here if not one.failures}
    until = time.monotonic() + PATIENCE_S
    while any(size(broker, name) <= before for name, before in sizes.items()):
        assert time.monotonic() < until, sizes
        time.sleep(0.02)


def size(broker: OwnBroker, topic: str) -> int:
    return sum(file.stat().st_size for file in broker.logs.glob(f"{topic}-?/*.log"))


def read(address: str, topics: list[str]) -> dict[str, Records]:
    """All that is committed."""
    config = {"bootstrap.servers": address, "group.id": "-", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer, found = Consumer({**config, **real_kafka.AT_ONCE, "log_level": 0}), defaultdict[str, Records](list)
    consumer.assign([TopicPartition(topic, number, 0) for topic in topics for number in range(PARTITIONS)])
    open_ends, until = len(topics) * PARTITIONS, time.monotonic() + PATIENCE_S
    while open_ends:
        assert time.monotonic() < until, f"{open_ends} partitions are not read to their end"
        for message in consumer.consume(1_000, 0.1):
            if message.error() is not None:
                open_ends -= 1
                continue
            record = message.partition(), message.offset(), message.key().decode(), message.value().decode()
            found[message.topic()].append(record)
    consumer.close()
    return found


def offsets(address: str, topic: str, group: str) -> dict[int, int]:
    """The committed offsets of a group, by partition."""
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
    found = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])[group].result(PATIENCE_S)
    return {one.partition: one.offset for one in found.topic_partitions if one.topic == topic}


@EACH_CLIENT
def test_all_that_it_wrote_is_there_once_and_in_order(done: Done, name: str) -> None:
    one, of_key = done.programs[name], defaultdict[str, list[int]](list)
    assert one.failures == []
    for _, _, key, value in done.records[name]:
        of_key[key].append(int(value))
    assert of_key == {str(key): list(range(key, one.wrote, 10)) for key in range(10)}
    assert one.wrote > (len(one.codecs) + 1) * EACH, "it has not written over the kill"


@EACH_CLIENT
def test_it_reads_all_of_it_in_a_group_and_commits(done: Done, name: str) -> None:
    records = done.records[name]
    lines = sorted(f"{partition} {offset} {key} {value}\n" for partition, offset, key, value in records)
    assert done.programs[name].read == f"{len(lines)} {hashlib.sha256(''.join(lines).encode()).hexdigest()}"
    last = {partition: offset for partition, offset, _, _ in records}
    committed = done.offsets[name, name]
    assert committed.keys() == last.keys()
    assert all(last[number] < offset for number, offset in committed.items())


@EACH_CLIENT
def test_its_transaction_commits_the_offsets_of_a_group(done: Done, name: str) -> None:
    wanted = {0: COMMITTED} if done.programs[name].commits_offsets else {}
    assert done.offsets[name, f"{name}-transactions"] == wanted
