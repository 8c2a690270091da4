"""Kafka's command line tools on our endpoint."""

import re
from collections.abc import Iterator

import pytest
import real_kafka
from asked_endpoint import Endpoint
from golden_logs import live
from kafka_judge import oracle
from local_tiers import Host
from served_endpoint import served
from tiered_worlds import World
from transacting_endpoint import TransactingEndpoint

from remote.clock import SystemClock

pytestmark = [pytest.mark.slow]


@pytest.fixture(scope="module")
def address(world: World) -> Iterator[str]:
    endpoint = Endpoint(world.folders["some archived dropped"], world.store, clock=SystemClock())
    with served(endpoint) as (host, port):
        yield f"{host}:{port}"
    assert [text for text in endpoint.said if not text.startswith("group perf: commits of offsets are refused")] == []


@oracle
@pytest.mark.parametrize(("time", "key"), [("-1", "latest"), ("-2", "earliest")])
def test_kafka_get_offsets_tells_the_ends_of_both_tiers(address: str, time: str, key: str) -> None:
    found = real_kafka.tool("GetOffsetShell", "--bootstrap-server", address, "--topic", "g-(txn|trimmed)", "--time", time)
    assert found.split() == [f"{topic}:0:{live(f'{topic}-0')[key][0]}" for topic in ("g-trimmed", "g-txn")]


@oracle
def test_kafka_console_consumer_prints_records_of_both_tiers(address: str) -> None:
    bounds = ["--partition", "0", "--offset", "3", "--max-messages", "2000", "--timeout-ms", "20000"]
    shown = ["--formatter-property", "print.offset=true", "--formatter-property", "print.value=false"]
    found = real_kafka.tool("consumer.ConsoleConsumer", "--bootstrap-server", address, "--topic", "g-epochs", *bounds, *shown)
    offsets = [int(number) for number in re.findall(r"Offset:(\d+)", found)]
    assert len(offsets) == 2000
    assert offsets[0] == 3


@oracle
def test_kafka_consumer_perf_test_reads_in_a_group(address: str) -> None:
    asked = ["--bootstrap-server", address, "--topic", "g-epochs", "--num-records", "2000", "--hide-header", "--group", "perf"]
    *_, found = real_kafka.tool("ConsumerPerformance", *asked).strip().splitlines()
    assert int(found.split(",")[4]) >= 2000
    groups = real_kafka.tool("consumer.group.ConsumerGroupCommand", "--bootstrap-server", address, "--list")
    assert groups.split() == ["perf"]


@oracle
def test_kafka_s_own_tools_create_a_topic_and_produce_to_it() -> None:
    """With the defaults of Java's producer, which is idempotent."""
    endpoint = TransactingEndpoint(Host(dirs=("/a",), settings={}, now=SystemClock().now_ms()))
    with served(endpoint) as (host, port):
        asked = ["--bootstrap-server", f"{host}:{port}", "--topic", "perf"]
        made = ["--create", "--partitions", "2", "--replication-factor", "1", "--config", "min.insync.replicas=1"]
        assert real_kafka.tool("TopicCommand", *asked, *made).split() == ["Created", "topic", "perf."]
        sent = ["--num-records", "3000", "--record-size", "100", "--throughput", "-1"]
        found = real_kafka.tool("ProducerPerformance", *asked, *sent, "--command-property", "compression.type=zstd")
        assert "3000 records sent" in found
    logs = [endpoint.log("perf", number) for number in (0, 1)]
    assert sum(log.log_end_offset for log in logs) == 3000
    assert any(log.producers.producers for log in logs)
    assert endpoint.tier.topics()["perf"].config == {"min.insync.replicas": "1"}
