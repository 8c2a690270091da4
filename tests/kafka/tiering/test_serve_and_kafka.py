"""Kafka's own Java clients on our endpoint, over both tiers: they are given what they would be by the broker."""

import hashlib
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import real_kafka
from asked_endpoint import Endpoint
from golden_logs import live, partitions
from kafka_judge import oracle
from served_endpoint import served
from tiered_worlds import World

from tiering.read.tiered_log import Isolation

_CLIENT = Path(__file__).parents[1] / "ConsumeAll.java"

Ask = Callable[..., list[str]]


@pytest.fixture(scope="module")
def ask(world: World) -> Iterator[Ask]:
    """The words that the client answers; the endpoint has said nothing at the end."""
    endpoint = Endpoint(world.folders["some archived dropped"], world.store)
    with served(endpoint) as (host, port):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with real_kafka.program(_CLIENT, arguments=(f"{host}:{port}",), **pipes) as client:
            assert client.stdin
            assert client.stdout

            def asked(*words: object) -> list[str]:
                client.stdin.write(" ".join(map(str, words)) + "\n")
                client.stdin.flush()
                answer: list[str] = client.stdout.readline().split()
                assert answer, "the client has ended"
                return answer

            yield asked
            client.stdin.close()
    assert endpoint.said == []


@oracle
@pytest.mark.parametrize("isolation", list(Isolation))
def test_a_consumer_is_given_every_record_of_every_topic(ask: Ask, world: World, isolation: Isolation) -> None:
    for partition in partitions():
        want, digest, offsets = world.log("local alone", partition), hashlib.sha256(), []
        for batch in want.read(want.log_start_offset, isolation=isolation):
            for record in batch.to_pylist():
                digest.update(f"{record['timestamp']} ".encode() + (record["key"] or b"") + (record["value"] or b""))
                offsets.append(str(record["offset"]))
        assert len(offsets) == live(partition)[f"{isolation}_count"]
        assert ask("consume", partition[:-2], isolation) == [digest.hexdigest(), *offsets], partition


@oracle
def test_a_consumer_is_told_the_offsets_of_times(ask: Ask) -> None:
    for partition in ("g-txn-0", "g-trimmed-0"):
        for timestamp, offset, found, _ in live(partition)["offset_for_timestamp"][:8]:
            if timestamp >= 0:
                assert ask("time", partition[:-2], timestamp) == (["none"] if offset < 0 else [str(offset), str(found)])


@oracle
def test_an_admin_client_describes_topics_and_the_cluster(ask: Ask, world: World) -> None:
    for partition in ("g-txn-0", "g-epochs-0"):
        latest = live(partition)["max_timestamp"][0]
        topic_id = world.log("local alone", partition).local.topic_id
        assert ask("describe", partition[:-2]) == [topic_id, "1", "1", "0", str(latest)]
