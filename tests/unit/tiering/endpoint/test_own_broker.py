"""A whole endpoint on a log directory of its own, with a real consumer: what it reads while records come, and after restarts."""

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka import OFFSET_INVALID, Consumer
from confluent_kafka import TopicPartition as Position
from hand_made import batch, record

from local_log.errors import Invalid, Unreadable
from local_log.formats.filenames import TopicPartition
from local_log.os_disk import OsDisk
from tiering.agent.own_dirs import own_dirs
from tiering.cli import main
from tiering.config.load import load_config
from tiering.endpoint.broker_server import BrokerServerConfig, broker_server
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.offsets_log import TransactionalProducer
from tiering.endpoint.coordinator.offsets_topic import OffsetsTopic
from tiering.endpoint.coordinator.record_messages import OffsetCommitKey
from tiering.endpoint.coordinator.records import OffsetAndMetadata, offset_commit_record
from tiering.endpoint.request_context import SecurityProtocol
from tiering.endpoint.settings import read_settings
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.records import transaction_record
from tiering.endpoint.transactions.transaction_metadata import TransactionMetadata
from tiering.endpoint.transactions.transaction_states import TransactionState
from tiering.endpoint.transactions.transactions_topic import TransactionsTopic
from tiering.local_tier.local_tier import LocalTier
from tiering.local_tier.opening import owned
from tiering.machine import CLOCK

ORDERS = TopicPartition("orders", 0)
EXPECTED = re.compile("created a new archive|beyond the ends of their logs|of topics that were deleted are forgotten")
QUICK = ("group.initial.rebalance.delay.ms=0",)


@contextmanager
def broker(folder: Path, *overrides: str, partitions: int = 1) -> Iterator[tuple[str, LocalTier]]:
    """Its address and its logs; what it says of problems fails the test."""
    said = list[str]()
    own = (f"log.dirs={folder}", "own.log.dirs=true", "log.initial.task.delay.ms=0", *overrides)
    whole = load_config(None, {}, OsDisk(), own)
    url = whole.settings.archive_url
    settings = read_settings((*QUICK, f"offsets.topic.num.partitions={partitions}"))
    config = BrokerServerConfig(settings, SecurityProtocol.PLAINTEXT, "127.0.0.1", 0, archive_url=url)
    with own_dirs(whole, {}, said.append) as dirs, broker_server(config, said.append, dirs.tier) as server:
        serving = threading.Thread(target=server.serve)
        serving.start()
        dirs.run_in_background(server.stop)
        try:
            yield "{}:{}".format(*server.address), dirs.tier
        finally:
            server.stop()
            serving.join()
    assert ([one for one in said if not EXPECTED.search(one)], dirs.failure) == ([], None)


def appended(tier: LocalTier, *values: str) -> None:
    for value in values:
        tier.log(ORDERS).append_as_leader(batch(record(value=value.encode())), 0)


@contextmanager
def consumer(address: str) -> Iterator[Consumer]:
    reads = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "readers",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 60_000,
        }
    )
    reads.subscribe(["orders"])
    yield reads
    reads.close()


@contextmanager
def without_members(address: str, group: str = "readers") -> Iterator[Consumer]:
    """Commits and asks for positions of the group, and is no member of it."""
    positions = Consumer({"bootstrap.servers": address, "group.id": group})
    yield positions
    positions.close()


def taken(reads: Consumer, count: int) -> list[str]:
    found = [reads.poll(30) for _ in range(count)]
    return [one.value().decode() if one is not None and one.error() is None else str(one) for one in found]


def test_a_consumer_reads_records_as_they_come_and_its_group_goes_on_after_a_restart(tmp_path: Path) -> None:
    with broker(tmp_path) as (address, tier):
        tier.create_topic("orders")
        appended(tier, "a", "b")
        with consumer(address) as reads:
            assert taken(reads, 2) == ["a", "b"]
            later = threading.Timer(0.1, appended, (tier, "c"))  # it waits for a minute, unless it is woken
            later.start()
            assert taken(reads, 1) == ["c"]
            reads.commit(asynchronous=False)
        appended(tier, "d")
    with broker(tmp_path) as (address, tier):
        assert tier.was_clean
        with consumer(address) as reads:
            assert taken(reads, 1) == ["d"]


def test_a_directory_has_one_owner(tmp_path: Path) -> None:
    with broker(tmp_path), pytest.raises(Invalid, match="a broker or another process of ours is using"), broker(tmp_path):
        pass


def test_what_has_left_the_disk_is_read_from_the_archive_that_the_same_process_fills(tmp_path: Path) -> None:
    overrides = (
        f"archive.url={tmp_path}/archive",
        f"agent.state.dir={tmp_path}/state",
        "remote.log.manager.task.interval.ms=20",
        "log.retention.check.interval.ms=20",
    )
    values = [f"{number} {'x' * 300}" for number in range(20)]
    with broker(tmp_path / "data", *overrides) as (address, tier):
        tier.create_topic("orders", config={"local.retention.bytes": "0", "internal.segment.bytes": "1024"})
        appended(tier, *values)
        for _ in range(2_000):  # until the archive has what is not in the newest segment, and the disk has not
            if tier.log(ORDERS).offsets.local_log_start > 10:
                break
            time.sleep(0.01)
        assert tier.log(ORDERS).offsets.local_log_start > 10
        with consumer(address) as reads:
            assert taken(reads, 20) == values


def test_after_a_lost_disk_a_restored_directory_has_all_partitions_and_the_positions_of_groups(tmp_path: Path) -> None:
    archive = f"archive.url={tmp_path}/archive"
    overrides = (archive, f"agent.state.dir={tmp_path}/state", "remote.log.manager.task.interval.ms=20")
    groups = tmp_path / "archive" / "__consumer_offsets"
    with broker(tmp_path / "data", *overrides, partitions=3) as (address, tier):
        tier.create_topic("orders", config={"internal.segment.bytes": "100"})
        tier.alter_configs("__consumer_offsets", {"internal.segment.bytes": "1000"})
        appended(tier, "a", "b", "c")
        with without_members(address) as group:
            for _ in range(30):  # the last ones roll the segments that have the first
                group.commit(offsets=[Position("orders", 0, 3)], asynchronous=False)
        for _ in range(2_000):  # until the archive has seen all partitions, and has the position and both records
            segments = (list(groups.parent.glob(f"{name}/segments/*.log")) for name in ("orders/*/0", "__consumer_offsets/*/*"))
            if [*map(len, segments)] >= [2, 1] and len(list(groups.glob("*/*/manifest"))) == 3:
                break
            time.sleep(0.01)
    restored = CliRunner().invoke(main, ["restore", "--archive", f"{tmp_path}/archive", "--to", f"{tmp_path}/new"])
    assert restored.exit_code == 0, restored.output
    with owned(f"{tmp_path}/new", lambda topic: {}, pytest.fail):
        pass  # as by another command, or by a start that fails afterwards: the directory is closed cleanly
    with broker(tmp_path / "new", archive, f"agent.state.dir={tmp_path}/other") as (address, tier):
        assert {name: topic.partitions for name, topic in tier.topics().items()} == {
            "orders": (0,),
            "__consumer_offsets": (0, 1, 2),
            "__transaction_state": tuple(range(50)),
        }
        assert tier.config("__consumer_offsets").compact
        with without_members(address) as group:
            assert [one.offset for one in group.committed([Position("orders", 0)], 30)] == [2], "the third record is lost"


def test_a_position_of_a_transaction_that_the_start_commits_is_not_beyond_the_end_of_its_log(tmp_path: Path) -> None:
    positions, now = TopicPartition("__consumer_offsets", 0), CLOCK.now_ms()
    with broker(tmp_path) as (_, tier):
        tier.create_topic("orders")
        appended(tier, "a")
        verified = tier.log(positions).ask_verification(1, -1, 0, supports_epoch_bump=True)
        kept = offset_commit_record(OffsetCommitKey("readers", "orders", 0), OffsetAndMetadata(9, -1, "", now))
        OffsetsTopic.of(tier, GroupCoordinatorConfig()).append("readers", [kept], now, TransactionalProducer(1, 0, verified))
        of = TransactionMetadata("own", 1, 60_000, now, producer_epoch=1, start_ms=now, client_version=2)
        decided = replace(of, state=TransactionState.PREPARE_COMMIT, partitions=frozenset({positions}))
        TransactionsTopic.of(tier, TransactionConfig()).append("own", transaction_record(decided), now)
    with broker(tmp_path) as (address, _), without_members(address) as group:
        assert [one.offset for one in group.committed([Position("orders", 0)], 30)] == [1]


def test_a_topic_has_no_positions_of_one_that_was_deleted_while_the_endpoint_did_not_run(tmp_path: Path) -> None:
    now = CLOCK.now_ms()
    with broker(tmp_path) as (address, tier):
        tier.create_topic("orders")
        appended(tier, "a")
        with without_members(address) as group:
            group.commit(offsets=[Position("orders", 0, 1)], asynchronous=False)
        expiring = offset_commit_record(OffsetCommitKey("old", "orders", 0), OffsetAndMetadata(1, -1, "", now, 2 * now))
        OffsetsTopic.of(tier, GroupCoordinatorConfig()).append("old", [expiring], now)
    deleted = CliRunner().invoke(main, ["topics", "delete", "orders", "--own-log-dir", str(tmp_path), "--yes"])
    assert deleted.exit_code == 0, deleted.output
    with broker(tmp_path) as (address, tier):
        tier.create_topic("orders")
        for name in ("readers", "old"):
            with without_members(address, name) as group:
                assert [one.offset for one in group.committed([Position("orders", 0)], 30)] == [OFFSET_INVALID]


def test_an_endpoint_whose_disks_fail_ends_and_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: LocalTier) -> None:
        raise Unreadable("every log directory is offline")

    monkeypatch.setattr("tiering.local_tier.service.TICK_S", 0.01)
    monkeypatch.setattr(LocalTier, "tick", fails)
    said, config = list[str](), BrokerServerConfig(read_settings(QUICK), SecurityProtocol.PLAINTEXT, "127.0.0.1", 0)
    whole = load_config(None, {}, OsDisk(), (f"log.dirs={tmp_path}", "own.log.dirs=true"))
    with own_dirs(whole, {}, said.append) as dirs, broker_server(config, said.append, dirs.tier) as server:
        dirs.run_in_background(server.stop)
        server.serve()
    assert (str(dirs.failure), said) == ("every log directory is offline", [])
    assert dirs.service.status().problems == ("every log directory is offline",)
