"""Kafka's own Java clients on our endpoint, over both tiers: they are given what they would be by the broker."""

import hashlib
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import real_kafka
from archive_fakes import SleptClock
from asked_endpoint import Endpoint
from golden_logs import live, partitions
from kafka_judge import oracle
from logs_to_archive import copy_of
from own_endpoint import OwnEndpoint
from served_endpoint import served
from tiered_worlds import World

from local_log.engine.manager.config import ManagerConfig
from local_log.log_reader import LogReader
from remote.clock import RandomIds
from tiering.endpoint.apis.producers import EXPIRATION_MS
from tiering.endpoint.fetch_sessions.cache import FetchSessionCache
from tiering.endpoint.fetch_sessions.contexts import FetchContext, FullFetch, IncrementalFetch, SessionError
from tiering.endpoint.fetch_sessions.manager import FetchManager, NameOf
from tiering.endpoint.protocol.messages.fetch import FetchRequest
from tiering.endpoint.settings import FETCH_MAX_BYTES, SETTINGS
from tiering.local_tier.opening import local_tier
from tiering.read.tiered_log import Isolation

_CLIENT = Path(__file__).parents[1] / "ConsumeAll.java"

Ask = Callable[..., list[str]]


class RecordingFetches(FetchManager):
    """Remembers how each fetch was begun."""

    def __init__(self, cache: FetchSessionCache) -> None:
        super().__init__(cache)
        self.begun: Counter[type] = Counter()

    def begin(self, request: FetchRequest, version: int, name_of: NameOf, now_ms: int) -> FetchContext:
        found = super().begin(request, version, name_of, now_ms)
        self.begun[type(found)] += 1
        return found


@pytest.fixture(scope="module")
def fetches() -> RecordingFetches:
    return RecordingFetches(FetchSessionCache(RandomIds()))


@contextmanager
def client(endpoint: Endpoint) -> Iterator[Ask]:
    """The words that the client answers; the endpoint has said nothing at the end."""
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


@pytest.fixture(scope="module")
def ask(world: World, fetches: RecordingFetches) -> Iterator[Ask]:
    endpoint = Endpoint(world.folders["some archived dropped"], world.store)
    endpoint.context = replace(endpoint.context, fetches=fetches)
    with client(endpoint) as asked:
        yield asked


def expected(world: World, partition: str, isolation: Isolation, start: int = 0) -> list[str]:
    """The digest of all records, or of those from an offset on, and their offsets."""
    want, digest, offsets = world.log("local alone", partition), hashlib.sha256(), []
    for batch in want.read(want.log_start_offset, isolation=isolation):
        for record in batch.to_pylist():
            if record["offset"] < start:
                continue
            digest.update(f"{record['timestamp']} ".encode() + (record["key"] or b"") + (record["value"] or b""))
            offsets.append(str(record["offset"]))
    assert start or len(offsets) == live(partition)[f"{isolation}_count"]
    return [digest.hexdigest(), *offsets]


@oracle
@pytest.mark.parametrize("isolation", list(Isolation))
def test_a_consumer_is_given_every_record_of_every_topic(ask: Ask, world: World, isolation: Isolation) -> None:
    for partition in partitions():
        assert ask("consume", partition[:-2], isolation) == expected(world, partition, isolation), partition


@oracle
@pytest.mark.parametrize("isolation", list(Isolation))
def test_a_consumer_is_given_every_record_from_an_offset_or_a_time_on(ask: Ask, world: World, isolation: Isolation) -> None:
    times = [(f"@{time}", start) for time, start, *_ in live("g-txn-0")["offset_for_timestamp"] if start > 0]  # by the broker
    border = world.log("some archived dropped", "g-txn-0").local.log_start_offset
    for start, offset in [(border - 1000, border - 1000), (border - 1, border - 1), (border, border), *times[:2]]:
        assert ask("consume", "g-txn", isolation, start) == expected(world, "g-txn-0", isolation, offset), start


@oracle
def test_a_consumer_is_given_every_record_of_a_directory_that_was_a_broker_s_and_is_ours(world: World, tmp_path: Path) -> None:
    config = ManagerConfig(log_dirs=(str(copy_of(world.folders["local alone"], tmp_path / "ours")),), cleaner_enable=False)
    tier = local_tier(config, lambda topic: {"retention.ms": "-1"})
    tier.start()
    try:
        with client(OwnEndpoint(tier)) as asked:
            for partition in partitions():
                for isolation in Isolation:
                    found = asked("consume", partition[:-2], isolation)
                    assert found == expected(world, partition, isolation), partition
    finally:
        assert tier.stop() == ()


@oracle
def test_a_consumer_of_many_topics_fetches_in_one_session(ask: Ask, fetches: RecordingFetches) -> None:
    fetches.begun.clear()
    names = partitions()
    assert ask("together", *(name[:-2] for name in names)) == [str(live(name)["read_uncommitted_count"]) for name in names]
    assert fetches.begun[FullFetch] == 1
    assert fetches.begun[IncrementalFetch] > 10
    assert fetches.begun[SessionError] == 0
    assert len(fetches.cache) == 0  # the consumer has ended its session


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


@oracle
def test_an_admin_client_describes_the_broker_its_log_directory_and_producers(ask: Ask, world: World) -> None:
    log = world.log("some archived dropped", "g-txn-0").local
    assert isinstance(log, LogReader)
    size = sum(segment.size() for segment in log.segments)
    since_ms = SleptClock().now - EXPIRATION_MS
    producers = [one for one in log.producers_at(log.log_end_offset) if one.last_timestamp > since_ms]
    assert len(producers) > 1
    # advertised.listeners is not among the settings that are given.
    assert ask("broker", "g-txn") == [
        *(str(len(SETTINGS) + 1), str(FETCH_MAX_BYTES.default), "INT", "DEFAULT_CONFIG", "1", str(size)),
        *(str(one.producer_id) for one in producers),
    ]
