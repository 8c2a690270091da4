"""Kafka's own consumers, and librdkafka's, in groups that our endpoint coordinates, with a restart of it in between."""

import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from asked_endpoint import Endpoint
from confluent_kafka import Consumer, KafkaException
from golden_logs import live
from kafka_judge import oracle
from served_endpoint import served
from tiered_worlds import World

from remote.clock import RandomIds, SystemClock
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.opening import offsets_topic
from tiering.endpoint.hosted_topics import HostedTopics

_CLIENT = Path(__file__).parents[1] / "Groups.java"
_CONFIG = GroupCoordinatorConfig(
    group_initial_rebalance_delay_ms=500, offsets_topic_partitions=3, consumer_group_heartbeat_interval_ms=100
)
TOPICS = ("g-txn", "g-mixed", "g-epochs", "g-trimmed")


@contextmanager
def coordinating(world: World, offsets: Path | None, before: str = ":0") -> Iterator[str]:
    """The endpoint's address, which may be one of before; what was committed is in a directory, if there is one."""
    endpoint = Endpoint(world.folders["local alone"], None)

    @contextmanager
    def serving(log: Any) -> Iterator[str]:
        topics = HostedTopics(endpoint.context.logs)
        groups = GroupCoordinator(_CONFIG, log, SystemClock(), RandomIds(), endpoint.said.append, topics)
        groups.load()
        endpoint.context = replace(endpoint.context, groups=groups)
        with served(endpoint, port=int(before.partition(":")[2])) as (host, port):
            yield f"{host}:{port}"

    if offsets is None:
        with serving(None) as address:
            yield address
    else:
        with offsets_topic(str(offsets), _CONFIG, endpoint.said.append) as log, serving(log) as address:
            yield address
    assert endpoint.said == [] or offsets is None


def all_read() -> str:
    """Every partition with its end, and nothing after it."""
    return " ".join(sorted(f"{topic}-0={live(f'{topic}-0')['latest'][0]}+0" for topic in TOPICS))


@oracle
def test_java_consumers_share_partitions_change_their_protocol_and_go_on_after_restarts(world: World, tmp_path: Path) -> None:
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with real_kafka.program(_CLIENT, **pipes) as client, closing(client.stdin):
        assert client.stdout

        def ask(*words: object) -> str:
            client.stdin.write(" ".join(map(str, words)) + "\n")
            client.stdin.flush()
            return client.stdout.readline().strip()

        with coordinating(world, tmp_path) as at:
            ask(at, "start", "a", *TOPICS)
            ask(at, "start", "b", *TOPICS)
            assert ask(at, "shared", "a,b", 4) == "2 2"
            assert ask(at, "group") == "Stable cooperative-sticky a=2@/127.0.0.1 b=2@/127.0.0.1"
            ask(at, "start", "c", *TOPICS)
            assert sorted(ask(at, "shared", "a,b,c", 4).split()) == ["1", "1", "2"]
            assert any(ask(at, "lag") == all_read() for _ in range(500))
            counts = ask(at, "stop", "a", "b", "c").split()
            assert sum(map(int, counts)) >= sum(live(f"{topic}-0")["read_uncommitted_count"] for topic in TOPICS)
        with coordinating(world, tmp_path) as at:
            assert ask(at, "lag") == all_read()
            assert ask(at, "group") == "Empty"
            assert ask(at, "start", "a", *TOPICS) == "started"
            assert ask(at, "shared", "a", 4) == "4"
            assert "GroupNotEmptyException" in ask(at, "forget")
            ask(at, "join", "d", *TOPICS)
            assert ask(at, "shared", "a,d", 4) == "2 2", "the group is upgraded, and its classic member goes on"
            assert ask(at, "group") == "Stable uniform a=2@/127.0.0.1 d=2@/127.0.0.1"
        with coordinating(world, tmp_path, at):
            assert ask(at, "shared", "a,d", 4) == "2 2"
            assert ask(at, "stop", "d") == "0"
            assert ask(at, "shared", "a", 4) == "4", "the group is a classic one again"
            assert ask(at, "group") == "Stable cooperative-sticky a=4@/127.0.0.1"
            ask(at, "join", "d", *TOPICS)
            assert ask(at, "shared", "a,d", 4) == "2 2"
            assert ask(at, "stop", "a") == "0", "everything was read and committed before"
            assert ask(at, "shared", "d", 4) == "4"
            ask(at, "join", "e", "/g-(txn|mixed|epochs|trimmed)/")
            assert ask(at, "shared", "d,e", 4) == "2 2"
            assert ask(at, "group") == "Stable uniform d=2@/127.0.0.1 e=2@/127.0.0.1"
            assert ask(at, "stop", "d", "e") == "0 0"
            assert (ask(at, "lag"), ask(at, "group")) == (all_read(), "Empty uniform")
            assert ask(at, "forget") == "left"


@pytest.mark.slow
def test_librdkafka_s_consumers_share_partitions_without_a_directory_and_are_told_why_they_cannot_commit(world: World) -> None:
    with coordinating(world, None) as at:
        config = {"bootstrap.servers": at, "group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        config |= {"partition.assignment.strategy": "roundrobin", "log_level": 0}
        consumers, counts = [Consumer(config), Consumer(config)], [0, 0]
        for consumer in consumers:
            consumer.subscribe(list(TOPICS))
        want = sum(live(f"{topic}-0")["read_committed_count"] for topic in TOPICS)
        deadline = SystemClock().now_ms() + 60_000
        while sum(counts) < want and SystemClock().now_ms() < deadline:
            for number, consumer in enumerate(consumers):
                counts[number] += sum(1 for message in consumer.consume(500, 0.1) if not message.error())
        assert sum(counts) == want
        assert [len(consumer.assignment()) for consumer in consumers] == [2, 2]
        with pytest.raises(KafkaException, match="POLICY_VIOLATION"):
            consumers[counts.index(max(counts))].commit(asynchronous=False)
        for consumer in consumers:
            consumer.close()


@pytest.mark.slow
def test_librdkafka_s_consumers_are_assigned_partitions_by_the_endpoint_and_go_on_after_a_restart(
    world: World, tmp_path: Path
) -> None:
    want = sum(live(f"{topic}-0")["read_committed_count"] for topic in TOPICS)
    names: list[list[str]] = [list(TOPICS), [f"^g-({'|'.join(topic[2:] for topic in TOPICS)})$"]]

    def read(at: str, count: int) -> int:
        config = {"bootstrap.servers": at, "group.id": "readers", "group.protocol": "consumer", "log_level": 0}
        consumers = [Consumer({**config, "auto.offset.reset": "earliest", "enable.auto.commit": False}) for _ in names]
        found, deadline = 0, SystemClock().now_ms() + 60_000
        for consumer, of in zip(consumers, names, strict=True):
            consumer.subscribe(of)
        while SystemClock().now_ms() < deadline:
            for consumer in consumers:
                messages = [one for one in consumer.consume(500, 0.05) if not one.error()]
                found += len(messages)
                if messages:
                    consumer.commit(asynchronous=False)
            if found >= count and [len(consumer.assignment()) for consumer in consumers] == [2, 2]:
                break
        shares = [len(consumer.assignment()) for consumer in consumers]
        for consumer in consumers:
            consumer.close()
        assert shares == [2, 2]
        return found

    with coordinating(world, tmp_path) as at:
        assert read(at, want) == want
    with coordinating(world, tmp_path) as at:
        assert read(at, 0) == 0, "everything was committed before"
