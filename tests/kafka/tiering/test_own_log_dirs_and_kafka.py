"""A broker's log directory, taken over by us, lived in for a while, and given back: the broker starts cleanly on it."""

import json
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import real_kafka
from asked_by_wire import Wire
from asked_endpoint import Endpoint
from click.testing import CliRunner
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic
from consumer_members import MadeTopics
from hand_made import batch, record
from mixed_members import assigned, assignment, subscription

from local_log.engine.manager.config import ManagerConfig
from local_log.formats.filenames import TopicPartition
from remote.clock import RandomIds, SystemClock
from tiering.cli import main
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.group_coordinator import GroupCoordinator
from tiering.endpoint.coordinator.joining import Client
from tiering.endpoint.coordinator.offsets_topic import OffsetsTopic
from tiering.endpoint.protocol.api_keys import (
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    SYNC_GROUP,
)
from tiering.endpoint.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.opening import open_transactions
from tiering.endpoint.transactions.transaction_coordinator import ProducerIdAndEpoch, TransactionCoordinator
from tiering.local_tier.opening import local_tier
from tiering.local_tier.topics_file import read_topics

pytestmark = [
    pytest.mark.oracle,
    pytest.mark.skipif(real_kafka.maven() is None, reason="a real broker is brought by Maven, which is not here"),
]

SETTINGS = {"segment.bytes": "1048576", "retention.ms": "-1", "remote.storage.enable": "true"}
EVENTS = TopicPartition("events", 0)
OURS = 50


def test_a_directory_taken_over_and_given_back_has_all_records_of_both(tmp_path: Path) -> None:
    data, archive = tmp_path / "data", tmp_path / "archive"
    with real_kafka.broker(tmp_path) as address:
        admin = AdminClient({"bootstrap.servers": address})
        admin.create_topics(
            [NewTopic("events", 1, 1, config={"segment.bytes": "1048576", "retention.ms": "-1", "compression.type": "producer"})]
        )["events"].result()
        # A batch is written to one segment: small ones fill three segments, however the producer's thread is scheduled.
        producer = Producer({"bootstrap.servers": address, "log_level": 0, "batch.num.messages": 10})
        for number in range(3_000):
            producer.produce("events", b"%d " % number + bytes(1_000), None, 0)
        producer.flush()
        admin.create_topics([NewTopic("pairs", 2, 1)])["pairs"].result()
        with closing(Wire(address)) as wire:
            one = Asked(wire.ask, "one")
            one.joins()
            assert (one.heard().partitions, one.committed(41)) == (2, 0)
        _written(address, "ended").commit_transaction(30)
        left = _written(address, "open")
    properties = (data / "meta.properties").read_bytes()
    ran = CliRunner().invoke(
        main, ["offload", "--own-log-dir", str(data), "--archive", str(archive), "--topic", "events", "--output", "jsonl"]
    )
    assert (ran.exit_code, [json.loads(line)["action"] for line in ran.stdout.splitlines()]) == (0, ["copied", "copied", "keep"])
    ids = _lives_on(data)
    two, mover = _coordinates(data, str(ids["pairs"]), one)
    assert (data / "meta.properties").read_bytes() == properties
    assert (data / "tiering-topics.json").exists()
    with real_kafka.broker(tmp_path) as address:
        assert _consumed(address) == [*range(3_000), *range(10_000, 10_000 + OURS)]
        with closing(Wire(address)) as wire:
            one.ask = two.ask = wire.ask
            for member in (one, two, one, two):
                member.heard()
            assert (one.partitions, two.partitions, two.committed(43)) == (1, 1, 0), "the members go on with the broker"
            assert [one.fetched(), two.fetched()] == [42, 43]
            mover.is_moved_on(wire.ask)
        del left
        _written(address, "ours").commit_transaction(30)
        _written(address, "open").abort_transaction(30)
        assert _seen(address) == ["ended", "open", "ours"]
    said = (tmp_path / "broker.out").read_text()
    assert "tiering-topics" not in said
    assert "ERROR" not in said
    assert not list(data.glob("*-stray"))
    topics = read_topics((data / "tiering-topics.json").read_bytes()).topics
    assert topics["events"].config == {"segment.bytes": "1048576", "compression.type": "producer"}
    after = _lives_on(data)
    mover.has_moved_back(data)
    assert (after["events"], set(after)) == (ids["events"], {"events", "pairs", "__consumer_offsets", "__transaction_state"})


def _written(address: str, own_id: str) -> Producer:
    """A producer whose transaction is open: its record has its id."""
    producer = Producer({"bootstrap.servers": address, "transactional.id": own_id, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("pairs", own_id.encode(), partition=0)
    producer.flush(30)
    return producer


def _seen(address: str) -> list[str]:
    config = {"bootstrap.servers": address, "group.id": "g", "isolation.level": "read_committed", "enable.partition.eof": True}
    consumer = Consumer({**config, **real_kafka.AT_ONCE, "log_level": 0, "enable.auto.commit": False})
    consumer.assign([Place("pairs", 0, 0)])
    found: list[str] = []
    while (message := consumer.poll(20)) is not None and not message.error():
        found.append((message.value() or b"").decode())
    consumer.close()
    return found


def _transacts(transactions: TransactionCoordinator) -> None:
    """Commits the transaction that the broker has left open, and leaves one open."""
    found = {one.transactional_id: one for one in transactions.all()}
    assert {own_id: one.state.title for own_id, one in found.items()} == {"ended": "CompleteCommit", "open": "Ongoing"}
    given = ProducerIdAndEpoch(found["open"].producer_id, found["open"].producer_epoch)
    transactions.end("open", given, found["open"].client_version, is_committed=True)
    begun = transactions.init_producer_id("ours", 60_000)
    assert begun.producer_id > given.producer_id
    transactions.add_partitions("ours", begun, (TopicPartition("pairs", 1),), 2)


class Asked:
    """A member of a group of KIP-848 that reads the topic `pairs`; `ask` sends a request to its coordinator."""

    def __init__(self, ask: Any, name: str) -> None:
        self.ask, self.name, self.epoch = ask, name, 0
        self.assigned: tuple[TopicPartitions, ...] = ()

    @property
    def partitions(self) -> int:
        return sum(len(of.partitions) for of in self.assigned)

    def joins(self) -> None:
        self.ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=("readers",)))
        self.heard(rebalance_timeout_ms=60_000, subscribed_topic_names=("pairs",))

    def heard(self, **said: Any) -> "Asked":
        deadline = time.monotonic() + 60
        while (code := self._heard(**said).error_code) in (14, 15, 16) and time.monotonic() < deadline:
            time.sleep(0.05)  # the broker is about to coordinate
        assert code == 0
        return self

    def _heard(self, **more: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest("readers", self.name, self.epoch, topic_partitions=self.assigned, **more)
        found = self.ask(CONSUMER_GROUP_HEARTBEAT, 1, request)
        if not found.error_code:
            self.epoch = found.member_epoch
            self.assigned = self.assigned if found.assignment is None else found.assignment.topic_partitions
        return found

    def committed(self, offset: int) -> int:
        request = _commit(self, offset)
        return int(self.ask(OFFSET_COMMIT, 9, request).topics[0].partitions[0].error_code)

    def fetched(self) -> int:
        (of,) = self.assigned
        topic = OffsetFetchRequestTopics("pairs", partition_indexes=of.partitions)
        asked = OffsetFetchRequestGroup("readers", self.name, self.epoch, (topic,))
        (group,) = self.ask(OFFSET_FETCH, 9, OffsetFetchRequest(groups=(asked,))).groups
        return int(group.topics[0].partitions[0].committed_offset)


class Mover:
    """The only classic member of a group that one of KIP-848 joins: we upgrade the group, and the broker downgrades it."""

    def __init__(self, groups: GroupCoordinator) -> None:
        joined = groups.join_group(self.join(""), Client("c", "/192.0.2.1", 3))
        groups.tick()
        self.told = joined.result(0)
        given = (SyncGroupRequestAssignment(self.told.member_id, assignment(pairs={0, 1})),)
        groups.sync_group(SyncGroupRequest("movers", 1, self.told.member_id, assignments=given)).result(0)
        new = ConsumerGroupHeartbeatRequest("movers", "new", 0, None, None, 60_000, ("pairs",), None, None, ())
        heard = groups.consumer_group_heartbeat(new, Client("c", "/192.0.2.1", 1), lambda name: True)
        assert (heard.error_code, heard.member_epoch) == (0, 2)

    def join(self, member_id: str) -> JoinGroupRequest:
        protocols = (JoinGroupRequestProtocol("range", subscription("pairs")),)
        return JoinGroupRequest("movers", 60_000, 60_000, member_id, None, "consumer", protocols)

    def is_moved_on(self, ask: Any) -> None:
        ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=0, coordinator_keys=("movers",)))
        name, heartbeat = self.told.member_id, HeartbeatRequest("movers", 1, self.told.member_id)
        deadline = time.monotonic() + 60
        while (code := ask(HEARTBEAT, 4, heartbeat).error_code) in (14, 15, 16) and time.monotonic() < deadline:
            time.sleep(0.05)
        again = ask(JOIN_GROUP, 9, self.join(name))
        assert (code, again.error_code, again.generation_id, again.leader) == (27, 0, 3, ""), "it hashes topics in another way"
        found = ask(SYNC_GROUP, 5, SyncGroupRequest("movers", 3, name, None, "consumer", "range"))
        assert (found.error_code, [len(of) for of in assigned(found.assignment).values()]) == (0, [1])
        (group,) = ask(CONSUMER_GROUP_DESCRIBE, 1, ConsumerGroupDescribeRequest(("movers",))).groups
        assert sorted((one.member_id == name, one.member_type) for one in group.members) == [(False, 1), (True, 0)]
        assert ask(CONSUMER_GROUP_HEARTBEAT, 1, ConsumerGroupHeartbeatRequest("movers", "new", -1)).error_code == 0
        assert ask(HEARTBEAT, 4, replace(heartbeat, generation_id=3)).error_code == 27

    def has_moved_back(self, data: Path) -> None:
        tier = local_tier(ManagerConfig(log_dirs=(str(data),), initial_task_delay_ms=0), lambda topic: SETTINGS)
        tier.start()
        config = GroupCoordinatorConfig()
        groups = GroupCoordinator(config, OffsetsTopic.of(tier, config), SystemClock(), RandomIds(), print)
        groups.load()
        found = groups.describe_group("movers", 6)
        (member,) = found.members
        assert (found.group_state, member.member_id) == ("Stable", self.told.member_id)
        assert [len(of) for of in assigned(member.member_assignment).values()] == [1]
        assert tier.stop() == ()


def _coordinates(data: Path, topic_id: str, one: Asked) -> tuple[Asked, Mover]:
    """Goes on with the broker's group: a member joins, and gets one of the partitions of the other one."""
    endpoint = Endpoint(None, None)
    tier = local_tier(ManagerConfig(log_dirs=(str(data),), initial_task_delay_ms=0), lambda topic: SETTINGS)
    tier.start()
    topics = MadeTopics(pairs=2)
    topics.ids["pairs"] = topic_id
    config = GroupCoordinatorConfig(consumer_group_assignment_interval_ms=0, group_initial_rebalance_delay_ms=0)
    groups = GroupCoordinator(config, OffsetsTopic.of(tier, config), SystemClock(), RandomIds(), endpoint.said.append, topics)
    groups.load()
    _transacts(open_transactions(tier, TransactionConfig(), groups, SystemClock(), endpoint.said.append))
    endpoint.context = replace(endpoint.context, groups=groups)
    one.ask, two = endpoint.ask, Asked(endpoint.ask, "two")
    assert (one.heard().partitions, one.fetched()) == (2, 41)
    two.joins()
    for member in (one, one, two):
        member.heard()
    assert (one.partitions, two.partitions) == (1, 1)
    groups.commit_offsets(_commit(one, 42), 9)
    mover = Mover(groups)
    assert (tier.stop(), endpoint.said) == ((), [])
    return two, mover


def _commit(member: Asked, offset: int) -> OffsetCommitRequest:
    partitions = (OffsetCommitRequestPartition(member.assigned[0].partitions[0], offset),)
    topic = OffsetCommitRequestTopic("pairs", member.assigned[0].topic_id, partitions)
    return OffsetCommitRequest("readers", member.epoch, member.name, topics=(topic,))


def _lives_on(data: Path) -> dict[str, str | None]:
    """Appends some records as the directory's owner, rolls and ticks; gives the ids of the topics."""
    tier = local_tier(ManagerConfig(log_dirs=(str(data),), initial_task_delay_ms=0), lambda topic: SETTINGS)
    started = tier.start()
    assert (started.unopened, started.damaged, tier.was_clean) == ((), (), True)
    log = tier.log(EVENTS)
    epoch = log.epochs.entries[-1].epoch
    for number in range(OURS):
        log.append_as_leader(batch(record(value=b"%d" % (10_000 + number))), epoch)
    log.roll()
    assert tier.tick() == ()
    ids = {name: topic.topic_id for name, topic in tier.topics().items()}
    assert tier.stop() == ()
    return ids


def _consumed(address: str) -> list[int]:
    config = {"bootstrap.servers": address, "group.id": "g", "enable.partition.eof": True, "check.crcs": True, "log_level": 0}
    consumer = Consumer({**config, **real_kafka.AT_ONCE, "enable.auto.commit": False})
    consumer.assign([Place("events", 0, 0)])
    found: list[int] = []
    while (message := consumer.poll(20)) is not None and not message.error():
        found.append(int((message.value() or b"").split()[0]))
    consumer.close()
    return found
