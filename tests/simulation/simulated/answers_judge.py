"""What each answer of an endpoint promises, told to those who judge it when it is given, whether its client hears it or not."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from local_log.formats.filenames import TopicPartition
from simulated.clients_judge import ClientsJudge
from simulated.groups_judge import GroupsJudge
from simulated.ledgers import batch_in, records_in
from tiering.endpoint.coordinator.consumer_protocol import read_assignment
from tiering.endpoint.protocol.api_keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    CONSUMER_GROUP_HEARTBEAT,
    END_TXN,
    HEARTBEAT,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
    Api,
)

LEAVES: Final = -1
ALL: Final = -1
FAILED: Final = frozenset({-1, 16, 56})
"""Codes that an endpoint answers whose disk fails: nobody knows what it has kept."""
NO_MEMBER: Final = frozenset({25, 69, 110})
"""Codes that say that who asks is no member any more."""
_NO_EPOCH: Final = -1


class AnswersJudge:
    """`name_of` gives the name of a topic by its id; `synced` is told up to where a partition's log is on the disk."""

    def __init__(
        self,
        clients: ClientsJudge,
        groups: GroupsJudge,
        name_of: Callable[[str], str | None],
        synced: Callable[[TopicPartition, int], None],
    ) -> None:
        self.clients, self.groups, self.name_of, self.synced = clients, groups, name_of, synced
        self._of = {
            PRODUCE.key: self._produce,
            INIT_PRODUCER_ID.key: self._init_producer_id,
            ADD_PARTITIONS_TO_TXN.key: self._add_partitions,
            ADD_OFFSETS_TO_TXN.key: self._add_offsets,
            END_TXN.key: self._end_txn,
            TXN_OFFSET_COMMIT.key: self._txn_offset_commit,
            JOIN_GROUP.key: self._join,
            SYNC_GROUP.key: self._sync,
            HEARTBEAT.key: self._heartbeat,
            LEAVE_GROUP.key: lambda asked, found: None,
            OFFSET_COMMIT.key: self._offset_commit,
            OFFSET_FETCH.key: self._offset_fetch,
            CONSUMER_GROUP_HEARTBEAT.key: self._consumer_group_heartbeat,
        }

    def answers(self, api: Api, asked: Any, found: Any) -> None:
        """The endpoint gives an answer."""
        judge = self._of.get(api.key)
        if judge is not None:
            judge(asked, found)

    def takes_up(self, api: Api, asked: Any) -> None:
        """It will answer when what it has appended is on the disk."""
        if api is PRODUCE:
            self._takes_batches(asked)
        elif api is OFFSET_COMMIT:
            self._commits(asked)
        elif api is TXN_OFFSET_COMMIT:
            self._consumes(asked)

    # Producers

    def _produce(self, asked: Any, found: Any) -> None:
        if not any(p.error_code for t in found.responses for p in t.partition_responses):
            self._takes_batches(asked)
        self._acknowledges(asked, found)

    def _takes_batches(self, asked: Any) -> None:
        """Others may have begun with the transactional id when it is answered."""
        for topic in asked.topic_data if asked.transactional_id is not None else ():
            for one in topic.partition_data:
                self.clients.takes(asked.transactional_id, _producer_in(one.records[0]), "a batch")

    def _acknowledges(self, asked: Any, found: Any) -> None:
        answers = {(t.name, p.index): p for t in found.responses for p in t.partition_responses}
        for topic in asked.topic_data:
            for one in topic.partition_data:
                answer, body = answers[topic.name, one.index], one.records[0]
                if answer.error_code:
                    continue
                partition, sent = TopicPartition(topic.name, one.index), self.clients.sent[records_in(body)]
                self.clients.acknowledged(partition, records_in(body), answer.base_offset)
                if asked.acks == ALL and sent.offset is not None:
                    self.synced(partition, sent.offset + 1)

    def _init_producer_id(self, asked: Any, found: Any) -> None:
        if asked.transactional_id is not None and not found.error_code:
            self.clients.is_producer(asked.transactional_id, (found.producer_id, found.producer_epoch), begins=True)

    def _add_partitions(self, asked: Any, found: Any) -> None:
        codes = [p.partition_error_code for t in found.results_by_topic_v3_and_below for p in t.results_by_partition]
        if not any(codes):
            producer = asked.v3_and_below_producer_id, asked.v3_and_below_producer_epoch
            self.clients.takes(asked.v3_and_below_transactional_id, producer, "a partition")

    def _add_offsets(self, asked: Any, found: Any) -> None:
        if not found.error_code:
            self.clients.takes(asked.transactional_id, (asked.producer_id, asked.producer_epoch), "a group")

    def _end_txn(self, asked: Any, found: Any) -> None:
        if not found.error_code and found.producer_id >= 0:
            self.clients.is_producer(asked.transactional_id, (found.producer_id, found.producer_epoch))

    def _txn_offset_commit(self, asked: Any, found: Any) -> None:
        if not any(p.error_code for t in found.topics for p in t.partitions):
            self._consumes(asked)
            self.groups.is_consumed(asked.producer_id)  # what is answered at once has been synced, or never is

    def _consumes(self, asked: Any) -> None:
        self.clients.takes(asked.transactional_id, (asked.producer_id, asked.producer_epoch), "an offset")
        self.groups.takes(asked.group_id, asked.generation_id, f"an offset of {asked.member_id}")
        for topic in asked.topics:
            for one in topic.partitions:
                place = asked.group_id, TopicPartition(topic.name, one.partition_index)
                self.groups.consumes(asked.producer_id, place, int(one.committed_metadata), one.committed_offset)

    # Groups

    def _join(self, asked: Any, found: Any) -> None:
        if not found.error_code:
            self.groups.joined(asked.group_id, found.generation_id, found.leader)

    def _sync(self, asked: Any, found: Any) -> None:
        if found.error_code in FAILED:
            self.groups.may_be_in(asked.group_id)
        elif not found.error_code:
            of = read_assignment(found.assignment).assigned_partitions if found.assignment else ()
            partitions = [TopicPartition(one.topic, number) for one in of for number in one.partitions]
            self.groups.assigned(asked.group_id, asked.generation_id, asked.member_id, partitions)

    def _heartbeat(self, asked: Any, found: Any) -> None:
        if not found.error_code:
            self.groups.takes(asked.group_id, asked.generation_id, f"a heartbeat of {asked.member_id}")

    def _offset_commit(self, asked: Any, found: Any) -> None:
        codes = {p.error_code for t in found.topics for p in t.partitions}
        if not any(codes):
            self._commits(asked)
        elif codes & FAILED:
            for place, offset in _offsets(asked):
                self.groups.may_be(place, offset)

    def _commits(self, asked: Any) -> None:
        group, epoch = asked.group_id, asked.generation_id_or_member_epoch
        if group in self.groups.generations and epoch != _NO_EPOCH:
            self.groups.takes(group, epoch, f"a commit of {asked.member_id}")
        for place, offset in _offsets(asked):
            self.groups.check_owner(group, asked.member_id, place[1])
            self.groups.committed(place, offset)

    def is_synced(self, api: Api, asked: Any, found: Any) -> None:
        """What was taken up is on the disk, and the answer says so."""
        if api is PRODUCE:
            self._acknowledges(asked, found)
            return
        if any(p.error_code for t in found.topics for p in t.partitions):
            return
        if api is TXN_OFFSET_COMMIT:
            self.groups.is_consumed(asked.producer_id)
        elif api is OFFSET_COMMIT:
            for place, offset in _offsets(asked):
                self.groups.is_synced(place, offset)

    def _offset_fetch(self, asked: Any, found: Any) -> None:
        for group in found.groups:
            for topic in group.topics if not group.error_code else ():
                for one in topic.partitions:
                    if not one.error_code:
                        place = group.group_id, TopicPartition(topic.name, one.partition_index)
                        self.groups.told(place, one.committed_offset)

    def _consumer_group_heartbeat(self, asked: Any, found: Any) -> None:
        if asked.member_epoch <= LEAVES or found.error_code in NO_MEMBER:
            self.groups.left(asked.group_id, asked.member_id)
            return
        owned = None if asked.topic_partitions is None else self._partitions(asked.topic_partitions)
        if found.error_code:
            self.groups.gives_up(asked.group_id, asked.member_id, owned)
            return
        told = None if found.assignment is None else self._partitions(found.assignment.topic_partitions)
        self.groups.heard(asked.group_id, asked.member_id, owned, told)

    def _partitions(self, topics: Any) -> frozenset[TopicPartition]:
        names = ((self.name_of(one.topic_id), one.partitions) for one in topics)
        return frozenset(TopicPartition(name, number) for name, numbers in names if name is not None for number in numbers)


def _offsets(asked: Any) -> Iterator[tuple[tuple[str, TopicPartition], int]]:
    for topic in asked.topics:
        for one in topic.partitions:
            yield (asked.group_id, TopicPartition(topic.name, one.partition_index)), one.committed_offset


def _producer_in(body: bytes) -> tuple[int, int]:
    batch = batch_in(body)
    return batch.producer_id, batch.producer_epoch
