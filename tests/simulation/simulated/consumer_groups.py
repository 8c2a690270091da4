"""Members of a consumer group of KIP-848: what they are to have comes with the answers to their heartbeats."""

from typing import Final

from local_log.formats.filenames import TopicPartition
from simulated.clients import NOT_THERE_NOW, Client
from simulated.endpoint_process import REBALANCE_MS
from simulated.own_host import PARTITION
from simulated.serving_host import CALLS, PLACES
from tiering.endpoint.protocol.api_keys import CONSUMER_GROUP_HEARTBEAT, OFFSET_COMMIT, OFFSET_FETCH
from tiering.endpoint.protocol.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
    TopicPartitions,
)
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics

VIEWERS = "viewers"
JOINS, LEAVES = 0, -1
FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND = 110, 25, 69
HEARTBEATS_MAX: Final = 60
HEARTBEAT_MS: Final = 5_000


class Member:
    """A member: `epoch` is what it was told last, `positions` has the partitions that it has."""

    def __init__(self, client: Client) -> None:
        self.client, self.epoch = client, JOINS
        self.member_id = f"{client.actor.name}-{client.random.getrandbits(32):08x}"
        self.positions: dict[TopicPartition, int | None] = {}

    def heartbeat(self) -> None:
        """It says what it has, and is told what to have: what it is to give up it gives up at once, and says so next time."""
        names, owned = ((PARTITION.topic, CALLS), REBALANCE_MS) if self.epoch == JOINS else (None, -1), self._owned()
        request = ConsumerGroupHeartbeatRequest(
            VIEWERS, self.member_id, self.epoch, rebalance_timeout_ms=names[1], subscribed_topic_names=names[0],
            topic_partitions=owned,
        )  # fmt: skip
        found = self.client.ask(CONSUMER_GROUP_HEARTBEAT, 1, request)
        if found.error_code in (FENCED_MEMBER_EPOCH, UNKNOWN_MEMBER_ID, GROUP_ID_NOT_FOUND):
            self.epoch, self.positions = JOINS, {}
        elif found.error_code and found.error_code not in NOT_THERE_NOW:
            raise self.client.host.schedule.violated(f"a heartbeat of {self.member_id}: {found}")
        elif not found.error_code:
            self._told(found)

    def _owned(self) -> tuple[TopicPartitions, ...]:
        topics, found = self.client.host.tier.topics(), dict[str, list[int]]()
        for one in sorted(self.positions):
            found.setdefault(topics[one.topic].topic_id or "", []).append(one.partition)
        return tuple(TopicPartitions(topic_id, tuple(numbers)) for topic_id, numbers in found.items())

    def _told(self, found: ConsumerGroupHeartbeatResponse) -> None:
        self.epoch = found.member_epoch
        if found.assignment is not None:
            name_of = self.client.host.tier.name_of
            to_have = [
                TopicPartition(name, n)
                for one in found.assignment.topic_partitions
                for n in one.partitions
                if (name := name_of(one.topic_id)) is not None
            ]
            self.positions = {one: self.positions.get(one) for one in to_have}

    def read(self, partition: TopicPartition, *, committed: bool) -> bool:
        """Reads on, and commits; whether there was something. The member may be out of date: then it does not."""
        begin = self.positions[partition]
        if begin is None:
            begin = self._position(partition)
            if begin is None:
                return False
        start = self.client.start_of(partition)
        found = self.client.fetch(partition, start if begin < 0 else begin, committed=committed)
        end = max(begin, self.client.reset(partition)) if found is None else found
        self.positions[partition] = begin
        if end == begin:
            return False
        of = OffsetCommitRequestTopic(
            partition.topic, partitions=(OffsetCommitRequestPartition(partition.partition, end, committed_metadata=""),)
        )
        asked = OffsetCommitRequest(VIEWERS, self.epoch, self.member_id, topics=(of,))
        if not self.client.ask(OFFSET_COMMIT, 9, asked).topics[0].partitions[0].error_code:
            self.positions[partition] = end
        return True

    def _position(self, partition: TopicPartition) -> int | None:
        topics = (OffsetFetchRequestTopics(partition.topic, partition_indexes=(partition.partition,)),)
        of = OffsetFetchRequestGroup(VIEWERS, self.member_id, self.epoch, topics)
        found = self.client.ask(OFFSET_FETCH, 9, OffsetFetchRequest(groups=(of,), require_stable=True)).groups[0]
        if found.error_code or found.topics[0].partitions[0].error_code:
            return None
        offset: int = found.topics[0].partitions[0].committed_offset
        return offset

    def leave(self) -> None:
        self.epoch = LEAVES
        request = ConsumerGroupHeartbeatRequest(VIEWERS, self.member_id, LEAVES)
        self.client.ask(CONSUMER_GROUP_HEARTBEAT, 1, request)


def views_in_group(client: Client) -> None:
    """A consumer that commits what it has read."""
    member, committed = Member(client), client.random.random() < 0.5
    for _ in range(client.random.randrange(3, 15)):
        member.heartbeat()
        if member.positions and client.random.random() < 0.7:
            member.read(client.random.choice(sorted(member.positions)), committed=committed)
    if client.random.random() < 0.5:
        member.leave()


def last_viewer(client: Client) -> None:
    """When nothing fails any more, a member is given all partitions, and comes to their ends."""
    member = Member(client)
    for _ in range(HEARTBEATS_MAX):
        member.heartbeat()
        if {*member.positions} == {*PLACES}:
            break
        client.host.schedule.now += HEARTBEAT_MS
        client.host.now().tick()
    else:
        raise client.host.schedule.violated(f"the last member of {VIEWERS} is given {sorted(member.positions)}")
    for partition in PLACES:
        while member.read(partition, committed=True):
            member.heartbeat()  # its session would end meanwhile
        position = member.positions[partition]  # beyond the end, if a member had read before a crash what is lost since
        if (position or 0) < client.host.end_of(partition):
            raise client.host.schedule.violated(f"the last member of {VIEWERS} comes to {position} of {partition}")
    member.leave()
