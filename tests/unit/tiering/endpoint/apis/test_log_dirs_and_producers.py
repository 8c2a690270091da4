"""DescribeLogDirs and DescribeProducers: what the log directory or the archive has of each partition."""

from pathlib import Path
from shutil import disk_usage

import pytest
from archive_fakes import MemoryStore
from asked_endpoint import Endpoint
from golden_logs import partitions
from logs_to_archive import copy_of, local_logs, set_checkpoint
from tiered_worlds import ARCHIVED, World

from local_log.errors import Unavailable
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT
from tiering.endpoint.apis.producers import EXPIRATION_MS
from tiering.endpoint.protocol.api_keys import DESCRIBE_LOG_DIRS, DESCRIBE_PRODUCERS
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from tiering.endpoint.protocol.messages.describe_producers import DescribeProducersRequest, PartitionResponse, TopicRequest
from tiering.wiring import Tiers

ALL = DescribeLogDirsRequest(topics=None)


def sizes(result: DescribeLogDirsResult) -> dict[str, int]:
    return {f"{topic.name}-{one.partition_index}": one.partition_size for topic in result.topics for one in topic.partitions}


def producers(endpoint: Endpoint, name: str, number: int = 0) -> PartitionResponse:
    request = DescribeProducersRequest((TopicRequest(name, (number,)),))
    found: PartitionResponse = endpoint.ask(DESCRIBE_PRODUCERS, 0, request).topics[0].partitions[0]
    assert found.partition_index == number
    return found


@pytest.mark.parametrize("version", range(1, 6))
def test_the_log_directory_is_described_with_the_bytes_of_its_logs(world: World, version: int) -> None:
    folder = world.folders["some archived dropped"]
    endpoint = Endpoint(folder, world.store)
    [result] = endpoint.ask(DESCRIBE_LOG_DIRS, version, ALL).results
    assert (result.error_code, result.log_dir) == (0, str(folder))
    assert sizes(result) == {name: sum(f.stat().st_size for f in (folder / name).glob("*.log")) for name in partitions()}
    assert (result.total_bytes, result.usable_bytes > 0) == ((disk_usage(folder).total, True) if version >= 4 else (-1, False))
    asked = DescribeLogDirsRequest((DescribableLogDirTopic("g-txn", (0, 7)), DescribableLogDirTopic("nowhere", (0,))))
    [result] = endpoint.ask(DESCRIBE_LOG_DIRS, version, asked).results
    assert sizes(result).keys() == {"g-txn-0"}


def test_a_log_is_ahead_of_its_high_watermark(world: World, tmp_path: Path) -> None:
    folder = copy_of(world.folders["local alone"], tmp_path / "lagging")
    end = world.log("local alone", "g-trimmed-0").end_offset()
    set_checkpoint(folder / HIGH_WATERMARK_CHECKPOINT, "g-trimmed-0", end - 500)
    asked = DescribeLogDirsRequest((DescribableLogDirTopic("g-trimmed", (0,)),))
    [found] = Endpoint(folder, None).ask(DESCRIBE_LOG_DIRS, 4, asked).results[0].topics[0].partitions
    assert found == DescribeLogDirsPartition(0, found.partition_size, 500)


def test_an_archive_alone_is_described_in_the_place_of_a_log_directory(world: World) -> None:
    [result] = Endpoint(None, world.store).ask(DESCRIBE_LOG_DIRS, 4, ALL).results
    assert (result.log_dir, result.total_bytes, result.usable_bytes) == (world.store.url, -1, -1)
    found = {name: world.archived(name).archived for name in ARCHIVED}
    assert sizes(result) == {name: log.manifest.log_bytes for name, log in found.items() if log is not None}


def test_a_place_that_cannot_be_looked_at_has_an_error() -> None:
    class Silent(Tiers):
        def topics(self) -> tuple[str, ...]:
            raise Unavailable("the store does not answer")

    endpoint = Endpoint(None, MemoryStore())
    endpoint.context.logs.tiers = Silent(None, MemoryStore())
    [result] = endpoint.ask(DESCRIBE_LOG_DIRS, 5, ALL).results
    assert (result.error_code, result.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, ())
    assert "the store does not answer" in endpoint.said[0]


def test_producers_are_those_of_the_log_until_a_day_after_their_last_batch(world: World) -> None:
    endpoint = Endpoint(world.folders["local alone"], None)
    log = local_logs(world.folders["local alone"])["g-txn-0"]
    known = log.producers_at(log.log_end_offset)
    newest = max(one.last_timestamp for one in known)
    endpoint.clock.now = newest
    found = producers(endpoint, "g-txn").active_producers
    since = newest - EXPIRATION_MS
    wanted = [one for one in known if one.last_timestamp > since or one.current_txn_first_offset is not None]
    assert len(wanted) > 1
    assert [(p.producer_id, p.producer_epoch, p.last_sequence, p.last_timestamp, p.coordinator_epoch) for p in found] == [
        (p.producer_id, p.producer_epoch, p.last_sequence, p.last_timestamp, p.coordinator_epoch) for p in wanted
    ]
    open_transactions = {t.producer_id: t.first_offset for t in log.open_transactions}
    endpoint.clock.now = newest + EXPIRATION_MS
    left = producers(endpoint, "g-txn").active_producers
    assert {p.producer_id: p.current_txn_start_offset for p in left} == open_transactions


def test_nobody_writes_to_what_is_in_the_archive_alone_and_unknown_partitions_are_told(world: World) -> None:
    endpoint = Endpoint(None, world.store)
    assert producers(endpoint, "g-txn") == PartitionResponse(0)
    for name, number in (("g-txn", 7), ("nowhere", 0)):
        assert producers(endpoint, name, number).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert producers(endpoint, "no topic!").error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
