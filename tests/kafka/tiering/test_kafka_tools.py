"""Kafka's command line tools on our endpoint."""

import json
import re
from collections.abc import Iterator

import pytest
import quick
import real_kafka
from asked_endpoint import Endpoint
from golden_logs import live
from java_tools import Tools, tools
from kafka_judge import oracle
from local_tiers import Host
from served_endpoint import served
from tiered_worlds import World
from transacting_endpoint import TransactingEndpoint

from local_log.log_reader import LogReader
from remote.clock import SystemClock
from tiering.endpoint.apis.produce import REASON

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


@pytest.fixture(scope="module")
def asked(address: str) -> Iterator[Tools]:
    quick.starts_a_server()
    with tools(address) as found:
        yield found


@oracle
def test_kafka_get_offsets_tells_where_the_tiers_begin_and_end_and_what_is_from_a_time_on(asked: Tools, world: World) -> None:
    log = world.log("some archived dropped", "g-txn-0")
    assert log.archived is not None
    local_start, archived_end = log.local.log_start_offset, log.archived.manifest.end_offset
    assert 0 < local_start < archived_end
    time, start = next((time, start) for time, start, *_ in live("g-txn-0")["offset_for_timestamp"] if start > 0)
    places = {"earliest-local": local_start, "latest-tiered": archived_end - 1, "earliest-pending-upload": archived_end}
    for word, offset in {**places, "max-timestamp": live("g-txn-0")["max_timestamp"][0], str(time): start}.items():
        assert asked("GetOffsetShell", "--topic", "g-txn", "--time", word) == f"g-txn:0:{offset}\n", word


@oracle
def test_kafka_s_tools_tell_of_a_log_what_kafka_dump_log_reads_in_its_files(asked: Tools, world: World) -> None:
    log = world.log("some archived dropped", "g-txn-0").local
    assert isinstance(log, LogReader)
    told = json.loads(asked("LogDirsCommand", "--describe", "--topic-list", "g-txn").splitlines()[-1])
    (directory,) = told["brokers"][0]["logDirs"]
    size = sum(segment.size() for segment in log.segments)
    assert [(one["partition"], one["size"]) for one in directory["partitions"]] == [("g-txn-0", size)]
    _, *lines = asked("TransactionsCommand", "describe-producers", "--topic", "g-txn", "--partition", "0").splitlines()
    (open_one,) = lines  # the others have appended nothing for a day
    producer_id, *_, begun_at = open_one.split()
    assert int(begun_at) == live("g-txn-0")["last_stable_offset"]
    assert int(producer_id) in [one.producer_id for one in log.producers_at(log.log_end_offset)]


@oracle
@pytest.mark.parametrize("idempotent", ["true", "false"])
def test_java_s_producer_is_told_why_its_records_are_refused(asked: Tools, idempotent: str) -> None:
    sent = ["--num-records", "2", "--record-size", "10", "--throughput", "-1"]
    of = ["--command-property", f"enable.idempotence={idempotent}"]
    found = asked("ProducerPerformance", "--topic", "g-txn", *sent, *of)
    assert found.count(f"PolicyViolationException: {REASON}") == 2
    assert "0 records sent" in found


@oracle
def test_java_s_transactional_producer_is_told_why_there_are_no_transactions(asked: Tools) -> None:
    sent = ["--num-records", "2", "--record-size", "10", "--throughput", "-1", "--transactional-id", "payments"]
    found = asked("ProducerPerformance", "--topic", "g-txn", *sent, code=1)
    assert "this endpoint reads an archive and has no transactions" in found


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
