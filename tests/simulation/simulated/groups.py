"""Members of classic groups: they join, read what they are assigned, commit, and leave or vanish.

Those of one group commit in transactions, in which they write what they have made of it: each record is consumed once.
"""

from typing import Final

from local_log.formats.filenames import TopicPartition
from simulated.clients import NOT_THERE_NOW, TRIES_MAX, Client, GivesUp
from simulated.own_host import PARTITION
from simulated.serving_host import OTHERS, PLACES
from simulated.transactions_of_clients import Aborts, TransactionalProducer
from tiering.endpoint.coordinator.consumer_protocol import read_assignment, write_assignment
from tiering.endpoint.protocol.api_keys import HEARTBEAT, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, OFFSET_FETCH, SYNC_GROUP
from tiering.endpoint.protocol.messages.heartbeat import HeartbeatRequest
from tiering.endpoint.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from tiering.endpoint.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tiering.endpoint.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

READERS, MOVERS = "readers", "movers"
SOURCES: Final = (PARTITION, OTHERS[0])
"""What members read that write to the last partition what they make of it."""
SESSION_MS, REBALANCE_MS = 30_000, 60_000
MEMBER_ID_REQUIRED, UNKNOWN_MEMBER_ID, FENCED = 79, 25, 82
UNSTABLE: Final = 88
PROTOCOLS: Final = (JoinGroupRequestProtocol("range", bytes.fromhex("000000000000ffffffff")),)


class Rejoins(Exception):  # it is no error: the member joins again
    """The member is not one of the current generation."""


class Member:
    """A member of a classic group, or who wants to be one. `positions` has the partitions that it is assigned."""

    def __init__(self, client: Client, group: str, partitions: tuple[TopicPartition, ...]) -> None:
        self.client, self.group, self._all = client, group, partitions
        self.member_id, self.generation = "", -1
        self.positions: dict[TopicPartition, int] = {}

    def join(self) -> None:
        """It becomes a member of a generation, and knows where to go on. Raises GivesUp."""
        for _ in range(TRIES_MAX):
            self.positions = {}
            try:
                joined = self._joined()
                self.generation = joined.generation_id
                self._fetch_offsets(self._assigned(joined))
            except Rejoins:
                continue
            return
        raise GivesUp

    def _joined(self) -> JoinGroupResponse:
        for _ in range(2 * TRIES_MAX):
            request = JoinGroupRequest(self.group, SESSION_MS, REBALANCE_MS, self.member_id, None, "consumer", PROTOCOLS)
            found: JoinGroupResponse = self.client.ask(JOIN_GROUP, 7, request)
            if not found.error_code:
                self.member_id = found.member_id
                return found
            if found.error_code == MEMBER_ID_REQUIRED:
                self.member_id = found.member_id
            elif found.error_code not in NOT_THERE_NOW:
                self.member_id = "" if found.error_code == UNKNOWN_MEMBER_ID else self.member_id
        raise GivesUp

    def _assigned(self, joined: JoinGroupResponse) -> list[TopicPartition]:
        given: tuple[SyncGroupRequestAssignment, ...] = ()
        if joined.leader == joined.member_id:
            members = [one.member_id for one in joined.members]
            given = tuple(SyncGroupRequestAssignment(one, self._assignment(n, len(members))) for n, one in enumerate(members))
        request = SyncGroupRequest(self.group, self.generation, self.member_id, None, "consumer", "range", given)
        found = self.client.ask(SYNC_GROUP, 5, request)
        self._checked(found.error_code)
        of = read_assignment(found.assignment).assigned_partitions if found.assignment else ()
        return [TopicPartition(one.topic, number) for one in of for number in one.partitions]

    def _assignment(self, number: int, count: int) -> bytes:
        topics: dict[str, list[int]] = {}
        for one in self._all[number::count]:
            topics.setdefault(one.topic, []).append(one.partition)
        return write_assignment(topics, 0)

    def _fetch_offsets(self, partitions: list[TopicPartition]) -> None:
        topics = tuple(OffsetFetchRequestTopics(one.topic, partition_indexes=(one.partition,)) for one in partitions)
        asked = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(self.group, topics=topics),), require_stable=True)
        for _ in range(2 * TRIES_MAX):
            found = self.client.ask(OFFSET_FETCH, 8, asked).groups[0] if partitions else None
            if found is None:
                return
            if found.error_code:
                raise Rejoins
            answers = [(topic.name, one) for topic in found.topics for one in topic.partitions]
            if not any(one.error_code for _, one in answers):
                self.positions = {TopicPartition(name, one.partition_index): one.committed_offset for name, one in answers}
                return
            if any(one.error_code not in {0, UNSTABLE} for _, one in answers):
                raise Rejoins
            self.heartbeat()
        raise GivesUp

    def _checked(self, code: int) -> None:
        """Raises Rejoins for an error."""
        if code in (UNKNOWN_MEMBER_ID, FENCED):
            self.member_id = ""
        if code:
            self.positions = {}
            raise Rejoins

    def heartbeat(self) -> None:
        """Raises Rejoins if it is to join again."""
        self._checked(self.client.ask(HEARTBEAT, 3, HeartbeatRequest(self.group, self.generation, self.member_id)).error_code)

    def read(self, partition: TopicPartition, *, committed: bool) -> int:
        """Where to go on after a fetch."""
        at = self.positions[partition]
        begin = self.client.start_of(partition) if at < 0 else at
        found = self.client.fetch(partition, begin, committed=committed)
        return max(begin, self.client.reset(partition)) if found is None else found

    def commit(self, partition: TopicPartition, offset: int) -> None:
        """Raises Rejoins."""
        of = OffsetCommitRequestPartition(partition.partition, offset, committed_metadata="")
        asked = OffsetCommitRequest(
            self.group, self.generation, self.member_id, topics=(OffsetCommitRequestTopic(partition.topic, partitions=(of,)),)
        )
        found = self.client.ask(OFFSET_COMMIT, 8, asked)
        self._checked(found.topics[0].partitions[0].error_code)
        self.positions[partition] = offset

    def leave(self) -> None:
        self.client.ask(LEAVE_GROUP, 4, LeaveGroupRequest(self.group, members=(MemberIdentity(self.member_id),)))


def reads_in_group(client: Client) -> None:
    """A consumer that commits what it has read."""
    member, committed = Member(client, READERS, PLACES), client.random.random() < 0.5
    member.join()
    for _ in range(client.random.randrange(2, 12)):
        try:
            member.heartbeat()
            if member.positions:
                partition = client.random.choice(sorted(member.positions))
                member.commit(partition, member.read(partition, committed=committed))
        except Rejoins:
            member.join()
    if client.random.random() < 0.5:
        member.leave()


def moves_in_group(client: Client) -> None:
    """A consumer that writes what it makes of records, and commits both in one transaction."""
    producer = TransactionalProducer(client, f"mover {client.random.randrange(3)}", is_v2=True)
    member = Member(client, MOVERS, SOURCES)
    member.join()
    for _ in range(client.random.randrange(2, 8)):
        try:
            member.heartbeat()
            if member.positions:
                moves(member, producer, client.random.choice(sorted(member.positions)))
        except Rejoins:
            member.join()
    if client.random.random() < 0.5:
        member.leave()


def moves(member: Member, producer: TransactionalProducer, partition: TopicPartition) -> None:
    """One transaction, if there is something to read. Raises Rejoins, GivesUp."""
    begin = member.positions[partition]
    end = member.read(partition, committed=True)
    if end == begin:
        return
    producer.begin()
    try:
        producer.write(OTHERS[1])
        producer.commit_offset(member.group, (member.member_id, member.generation), partition, begin, end)
    except Aborts:
        producer.end(commit=False)
        raise Rejoins from None
    if member.client.random.random() < 0.2:
        producer.end(commit=False)
        return
    producer.end(commit=True)
    member.positions[partition] = end


def last_reader(client: Client) -> None:
    """When nothing fails any more, a member is given all partitions, and comes to their ends."""
    _reads_all(client, Member(client, READERS, PLACES), PLACES)


def last_mover(client: Client) -> None:
    """So does one that could be kept from it by a transaction that does not end."""
    _reads_all(client, Member(client, MOVERS, SOURCES), SOURCES)


def _reads_all(client: Client, member: Member, partitions: tuple[TopicPartition, ...]) -> None:
    member.join()
    if {*member.positions} != {*partitions}:
        raise client.host.schedule.violated(f"the last member of {member.group} is given {sorted(member.positions)}")
    for partition in partitions:
        while (end := member.read(partition, committed=True)) != member.positions[partition]:
            member.commit(partition, end)
        if end < client.host.end_of(partition):  # beyond it, if a member had read before a crash what is lost since
            raise client.host.schedule.violated(f"the last member of {member.group} comes to {end} of {partition}")
    member.leave()
