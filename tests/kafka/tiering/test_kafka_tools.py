"""Kafka's command line tools on our endpoint."""

import re
from collections.abc import Iterator

import pytest
import real_kafka
from asked_endpoint import Endpoint
from golden_logs import live
from kafka_judge import oracle
from served_endpoint import served
from tiered_worlds import World

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
