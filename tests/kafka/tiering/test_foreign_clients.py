"""Clients of Kafka that others wrote, on our endpoint: each reads every record of both tiers, as the log has them.

The Java client and librdkafka are in `test_serve_and_kafka` and all over the tests.
"""

import hashlib
import shutil
import sys
from collections.abc import Callable, Iterator

import pytest
from asked_endpoint import Endpoint
from foreign_clients import PYTHON, go_clients, js_clients, running
from golden_logs import live, partitions
from served_endpoint import served
from tiered_worlds import World

from remote.clock import SystemClock
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.read.tiered_log import Isolation

Reads = Callable[[str, Isolation], bool]


def everything(partition: str, isolation: Isolation) -> bool:
    return True


def older(partition: str, isolation: Isolation) -> bool:
    """Before there were transactions and zstd, with which most topics are made."""
    return isolation is Isolation.read_uncommitted and "codec" in partition and "zstd" not in partition


def gzip(partition: str, isolation: Isolation) -> bool:
    """Of the codecs kafkajs has this one alone."""
    return partition in ("g-codec-gzip-0", "g-codec-none-0")


TRANSACTIONS, GZIP = ("g-txn-0", Isolation.read_committed), ("g-codec-gzip-0", Isolation.read_uncommitted)
"""What is read from an offset and from times on: the first where a client can."""
GO = [pytest.mark.skipif(shutil.which("go") is None, reason="Go is not here"), pytest.mark.made_before.with_args(go_clients)]
NPM = [pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not here"), pytest.mark.made_before.with_args(js_clients)]
CLIENTS = [
    pytest.param(lambda: [sys.executable, PYTHON, "kafka-python"], everything, id="kafka-python"),
    pytest.param(lambda: [sys.executable, PYTHON, "aiokafka"], everything, id="aiokafka"),
    pytest.param(lambda: [go_clients(), "franz"], everything, id="franz-go", marks=GO),
    pytest.param(lambda: [go_clients(), "sarama:0.10.2.0"], older, id="sarama 0.10", marks=GO),
    pytest.param(lambda: [go_clients(), "sarama:1.0.0"], everything, id="sarama 1.0", marks=GO),
    pytest.param(lambda: [go_clients(), "sarama:2.8.0"], everything, id="sarama 2.8", marks=GO),
    pytest.param(lambda: [go_clients(), "sarama:4.0.0"], everything, id="sarama 4.0", marks=GO),
    pytest.param(lambda: ["node", js_clients()], gzip, id="kafkajs", marks=NPM),
]
"""Sarama speaks the requests of the version that it is told, and asks no broker."""


@pytest.fixture(scope="module")
def address(world: World) -> Iterator[str]:
    at_once = GroupCoordinatorConfig(group_initial_rebalance_delay_ms=0)
    endpoint = Endpoint(world.folders["some archived dropped"], world.store, clock=SystemClock(), group_config=at_once)
    with served(endpoint) as (host, port):
        yield f"{host}:{port}"
    assert endpoint.said == []


@pytest.fixture(scope="module")
def logs(world: World) -> dict[tuple[str, Isolation], list[dict[str, object]]]:
    """The records of each partition with any."""
    return {
        (partition, isolation): [r for batch in log.read(log.log_start_offset, isolation=isolation) for r in batch.to_pylist()]
        for partition in partitions()
        for log in [world.log("local alone", partition)]
        for isolation in Isolation
        if log.log_end_offset > log.log_start_offset
    }


def digest(records: list[dict[str, object]]) -> str:
    """As all programs compute it."""
    found = hashlib.sha256()
    for record in records:
        found.update(b"%d %d " % (record["offset"], record["timestamp"]) + (record["key"] or b"") + (record["value"] or b""))  # type: ignore[operator]
    return f"{found.hexdigest()} {len(records)}"


@pytest.mark.slow
@pytest.mark.parametrize(("program", "reads"), CLIENTS)
def test_a_client_reads_every_record_of_both_tiers_by_offset_and_by_time(
    program: Callable[[], list[object]], reads: Reads, address: str, logs: dict[tuple[str, Isolation], list], world: World
) -> None:
    archived_alone = {of: world.log("some archived dropped", of).local.log_start_offset for of, _ in (TRANSACTIONS, GZIP)}
    with running([*map(str, program()), address]) as client:
        for (partition, isolation), records in logs.items():
            if not reads(partition, isolation):
                continue
            topic, last = partition.removesuffix("-0"), records[-1]["offset"]
            assert client.ask(topic, isolation, records[0]["offset"], last) == digest(records), (partition, isolation)
        partition, isolation = TRANSACTIONS if reads(*TRANSACTIONS) else GZIP
        records = logs[partition, isolation]
        assert records[0]["offset"] < archived_alone[partition] < records[-1]["offset"]
        third = records[len(records) // 3]["offset"]
        assert third < archived_alone[partition]
        answered = [
            (f"@{time}", start) for time, start, *_ in live(partition)["offset_for_timestamp"] if start > 0
        ]  # by the broker
        for start, offset in [(third, third), *answered[:2]]:
            answer = client.ask(partition.removesuffix("-0"), isolation, start, records[-1]["offset"])
            assert answer == digest([record for record in records if record["offset"] >= offset]), start
