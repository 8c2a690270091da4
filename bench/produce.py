"""`tiering serve --own-log-dir` beside Kafka's broker: records that Kafka's own ProducerPerformance writes, commits, a rebalance.

Both are one node without replicas. What counts is the server: MB a second, its CPU seconds a GB, and how soon it acknowledges.
"""

import argparse
import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import count, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

import consumer_group_loads  # beside this file
import group_loads  # beside this file
import real_kafka  # beside the tests
import tiered_storage  # beside this file
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from endpoint_servers import cpu_seconds, process_of, served  # beside this file
from many_partitions import of_own_partitions  # beside this file
from producers import RECORD_BYTES, Producers, producers  # beside this file
from targets import Targets  # beside this file

RECORDS = 100_000
"""Of one pass, by all of its producers together."""
STEADY_BYTES, STEADY_SECONDS = 10_000_000, 5
PARTITIONS = 10_000
COUNTS = (1, 8)
"""Of producers, and of the topic's partitions."""
KAFKA, OURS, SYNCED, FLUSHED = "Kafka", "ours", "ours, group commit", "Kafka, flush.messages=1"
_numbers = count()


@dataclass(frozen=True)
class Server:
    """Which topics are written to where."""

    name: str
    address: str
    process: int
    config: dict[str, str] = field(default_factory=dict)
    """Of its topics."""


@dataclass(frozen=True)
class Pass:
    """The best of the rounds, each on its own: MB/s, CPU seconds of the server for a GB, ms to the acknowledgement."""

    speed: float = 0.0
    cpu: float = float("inf")
    p99_ms: float = float("inf")


def run(out: Path, rounds: int, records: int = RECORDS) -> None:
    """Prints the figures, their ratios and their targets."""
    targets = Targets()
    out.mkdir(parents=True)
    with ExitStack() as running:
        servers = started(out, running)
        kafka, ours, synced, _ = servers
        clients = running.enter_context(producers(out / "producers.err"))
        for server in servers:
            written(clients, server, 8, records)  # so that all are compiled
        unlimited(clients, kafka, ours, rounds, records, targets)
        durable(clients, servers, rounds, records)
        steady(clients, kafka, ours, min(rounds, 2), targets)
        group_loads.commits({one.name: (one.address, one.process) for one in (kafka, ours, synced)}, rounds)
        group_loads.rebalances({one.name: (one.address, one.process) for one in (kafka, ours)}, rounds)
        consumer_group_loads.assignments({one.name: (one.address, one.process) for one in (kafka, ours)}, rounds)
        of_own_partitions(out / "partitions", PARTITIONS, rounds, served)
    shutil.rmtree(out)
    targets.show()


def started(out: Path, running: ExitStack) -> list[Server]:
    """A broker, ours, ours with group commit, and the broker with topics whose appends are synced one by one."""
    at_once = {"group_consumer_assignment_interval_ms": "0"}
    address = running.enter_context(real_kafka.broker(out / "broker", for_speed=True, **at_once))
    java = process_of(str(out / "broker" / "server.properties"))
    found = [Server(KAFKA, address, java)]
    for name, options in ((OURS, []), (SYNCED, ["-c", "write.caching=false"])):
        folder = out / name.replace(", ", "-")
        folder.mkdir()
        no_delay = ["-c", "group.initial.rebalance.delay.ms=0", "-c", "group.consumer.assignment.interval.ms=0"]
        at, process, _ = running.enter_context(served(["--own-log-dir", str(folder), *no_delay, *options]))
        found.append(Server(name, at, process))
    return [*found, Server(FLUSHED, address, java, {"flush.messages": "1"})]


def unlimited(clients: Producers, kafka: Server, ours: Server, rounds: int, records: int, targets: Targets) -> None:
    """As fast as they can."""
    print(f"Records of {RECORD_BYTES} bytes by Kafka's ProducerPerformance; MB/s and CPU of the server: Kafka, ours, ratios")
    for acks, number, codec in product(("1", "all"), COUNTS, ("none", "lz4")):
        config = (f"acks={acks}", f"compression.type={codec}")
        of_kafka, of_ours = in_turns(clients, [kafka, ours], rounds, number, records, *config)
        what = f"acks={acks}, {number} {'producer' if number == 1 else 'producers'}, {codec}"
        print(
            f"  {what:28} {of_kafka.speed:6.0f} {of_ours.speed:6.0f} MB/s {of_ours.speed / of_kafka.speed:6.2f}"
            f"   {of_kafka.cpu:6.2f} {of_ours.cpu:6.2f} s/GB {of_ours.cpu / of_kafka.cpu:6.2f}",
            flush=True,
        )
        targets.at_least(f"{what}, speed / Kafka's", of_ours.speed / of_kafka.speed, 0.5)


def durable(clients: Producers, servers: list[Server], rounds: int, records: int) -> None:
    """What it costs to have records on the disk before they are acknowledged."""
    for number in COUNTS:
        best = in_turns(clients, servers, rounds, number, records, "acks=all")
        print(f"On the disk before they are acknowledged, acks=all, {number} of both: ratios to {KAFKA} and {OURS}")
        for server, found in zip(servers, best, strict=True):
            ratios = f"{found.speed / best[0].speed:6.2f} {found.speed / best[1].speed:6.2f}"
            print(f"  {server.name:24} {found.speed:6.0f} MB/s {ratios}   {found.cpu:6.2f} s/GB", flush=True)


def steady(clients: Producers, kafka: Server, ours: Server, rounds: int, targets: Targets) -> None:
    """The time until a record is acknowledged while less is sent than there could be."""
    a_second = STEADY_BYTES // RECORD_BYTES
    count = a_second * STEADY_SECONDS
    found = in_turns(clients, [kafka, ours], rounds, 1, count, "acks=all", a_second=a_second)
    of_kafka, of_ours = (one.p99_ms for one in found)
    print(f"Acknowledged at {STEADY_BYTES / 1e6:.0f} MB/s, acks=all, p99: {KAFKA} {of_kafka:.0f} ms, {OURS} {of_ours:.0f} ms")
    print(f"  CPU of the server: {found[0].cpu:.2f} s/GB, {found[1].cpu:.2f} s/GB", flush=True)
    targets.at_most("p99 of acknowledgement at 10 MB/s / Kafka's", of_ours / of_kafka, 1.0)


def in_turns(
    clients: Producers, servers: list[Server], rounds: int, number: int, records: int, *config: str, a_second: int = -1
) -> list[Pass]:
    """The best of each."""
    best = [Pass()] * len(servers)
    for _ in range(rounds):
        for at, server in enumerate(servers):
            found, known = written(clients, server, number, records, *config, a_second=a_second), best[at]
            best[at] = Pass(max(known.speed, found.speed), min(known.cpu, found.cpu), min(known.p99_ms, found.p99_ms))
    return best


def written(clients: Producers, server: Server, number: int, records: int, *config: str, a_second: int = -1) -> Pass:
    """One pass of so many producers into a topic of so many partitions, which is deleted afterwards."""
    admin, topic = AdminClient({"bootstrap.servers": server.address, "log_level": 0}), f"produced-{next(_numbers)}"
    of_topic = {"file.delete.delay.ms": "0", **server.config}
    admin.create_topics([NewTopic(topic, number, 1, config=of_topic)])[topic].result()
    for number_of in range(number):  # or idempotent producers' first batches are refused, and the second ones are not
        tiered_storage.wait_until(partial(leads, admin, TopicPartition(topic, number_of)), f"{topic}-{number_of} has no leader")
    cpu = cpu_seconds(server.process)
    found = clients.produce(server.address, topic, number, records // number, *config or ("acks=all",), a_second=a_second)
    cpu, size = cpu_seconds(server.process) - cpu, records * RECORD_BYTES
    admin.delete_topics([topic])[topic].result()
    return Pass(size / found.seconds / 1e6, cpu / size * 1e9, found.p99_ms)


def leads(admin: AdminClient, partition: TopicPartition) -> bool:
    """Whether a partition that was created can be written to."""
    try:
        return admin.list_offsets({partition: OffsetSpec.latest()})[partition].result().offset == 0
    except KafkaException:
        return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="produce", description="This part of make bench alone.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--records", type=int, default=RECORDS)
    given = parser.parse_args()
    run(Path("bench-out/produce").absolute(), given.rounds, given.records)
