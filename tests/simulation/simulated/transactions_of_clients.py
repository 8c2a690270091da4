"""Transactional producers: they begin, write, commit or abort, are fenced by others with their id, and vanish."""

from typing import Final

from logs_at_work import batch_of

from local_log.formats.filenames import TopicPartition
from simulated.clients import NOT_THERE_NOW, TRIES_MAX, Client, GivesUp
from simulated.clients_judge import Sent, Session, Transaction
from simulated.serving_host import PLACES, TIMEOUT_MS
from tiering.endpoint.protocol.api_keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    TXN_OFFSET_COMMIT,
)
from tiering.endpoint.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tiering.endpoint.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from tiering.endpoint.protocol.messages.end_txn import EndTxnRequest
from tiering.endpoint.protocol.messages.init_producer_id import InitProducerIdRequest
from tiering.endpoint.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

OWN_IDS: Final = {"old": False, "new": True}
"""The transactional ids, and whether their clients know of transaction version 2: who does not can be harmed by late requests."""


class Aborts(Exception):  # it is no error: the producer aborts
    """Something of the transaction has failed."""


class TransactionalProducer:
    """One of a transactional id, whose transaction is `transaction`."""

    def __init__(self, client: Client, own_id: str, *, is_v2: bool) -> None:
        self.client, self.own_id, self.is_v2 = client, own_id, is_v2
        self.timeout_ms = client.random.choice(TIMEOUT_MS)
        self._sent = 0
        self.init()

    def init(self) -> None:
        """It begins; others with its id are fenced. Raises GivesUp."""
        request = InitProducerIdRequest(self.own_id, self.timeout_ms)
        for _ in range(2 * TRIES_MAX):
            found = self.client.ask(INIT_PRODUCER_ID, 5 if self.is_v2 else 3, request, may_be_late=self.is_v2)
            if not found.error_code:
                self._goes_on(found.producer_id, found.producer_epoch)
                return
            if found.error_code not in NOT_THERE_NOW:
                break
        raise GivesUp

    def _goes_on(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self._sequences: dict[TopicPartition, int] = {}
        self._session = Session(f"{self.client.actor.name} as {producer_id}, {epoch}")

    def begin(self) -> None:
        """Another transaction."""
        self.transaction: Transaction = self.client.host.clients.begins(self.own_id)
        self._added: set[TopicPartition] = set()
        self._is_unknown = False

    def write(self, partition: TopicPartition) -> None:
        """A batch. Raises Aborts, GivesUp."""
        if not self.is_v2 and partition not in self._added:
            of = AddPartitionsToTxnTopic(partition.topic, (partition.partition,))
            found = self.client.ask(
                ADD_PARTITIONS_TO_TXN, 3, AddPartitionsToTxnRequest((), self.own_id, self.producer_id, self.epoch, (of,)),
                may_be_late=False,
            )  # fmt: skip
            if found.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code:
                raise Aborts
            self._added.add(partition)
        values, sequence = self.client.values(), self._sequences.get(partition, 0)
        batch = batch_of(
            *values, time=self.client.host.schedule.now, producer=self.producer_id, epoch=self.epoch, sequence=sequence,
            transactional=True,
        )  # fmt: skip
        self._sent += 1
        try:
            sent = Sent(self._session, partition, self._sent, self.transaction)
            code = self.client.produce(batch, sent, 12 if self.is_v2 else 11, self.own_id)
        except GivesUp:
            self._is_unknown = True
            raise Aborts from None
        if code:
            self._is_unknown = True
            raise Aborts
        self._sequences[partition] = sequence + len(values)

    def commit_offset(self, group: str, member: tuple[str, int], partition: TopicPartition, begin: int, end: int) -> None:
        """What the transaction has consumed as a member of a group in a generation. Raises Aborts, GivesUp."""
        if not self.is_v2:
            request = AddOffsetsToTxnRequest(self.own_id, self.producer_id, self.epoch, group)
            if self.client.ask(ADD_OFFSETS_TO_TXN, 3, request, may_be_late=False).error_code:
                raise Aborts
        of = TxnOffsetCommitRequestTopic(
            partition.topic, (TxnOffsetCommitRequestPartition(partition.partition, end, committed_metadata=str(begin)),)
        )
        who = {"member_id": member[0], "generation_id": member[1]}
        asked = TxnOffsetCommitRequest(self.own_id, group, self.producer_id, self.epoch, topics=(of,), **who)
        for _ in range(TRIES_MAX):
            found = self.client.ask(TXN_OFFSET_COMMIT, 5 if self.is_v2 else 3, asked, may_be_late=self.is_v2)
            code = found.topics[0].partitions[0].error_code
            if not code:
                return
            if code not in NOT_THERE_NOW:
                break
        raise Aborts

    def end(self, *, commit: bool) -> None:
        """Raises GivesUp, also if it is fenced."""
        self.transaction.is_asked_to_commit |= commit
        asked = EndTxnRequest(self.own_id, self.producer_id, self.epoch, commit)
        for _ in range(2 * TRIES_MAX):
            found = self.client.ask(END_TXN, 5 if self.is_v2 else 4, asked, may_be_late=self.is_v2)
            if not found.error_code:
                self.transaction.is_told_committed |= commit
                if self.is_v2:
                    self._goes_on(found.producer_id, found.producer_epoch)
                elif self._is_unknown:
                    self.init()  # else a batch that comes late could be one of the next transaction
                return
            if found.error_code not in NOT_THERE_NOW:
                break
        raise GivesUp


def transacts(client: Client) -> None:
    """Some transactions, one after the other."""
    own_id = client.random.choice(sorted(OWN_IDS))
    producer = TransactionalProducer(client, own_id, is_v2=OWN_IDS[own_id])
    for _ in range(client.random.randrange(1, 5)):
        producer.begin()
        try:
            for _ in range(client.random.randrange(1, 4)):
                producer.write(client.random.choice(PLACES))
        except Aborts:
            producer.end(commit=False)
            continue
        if client.random.random() < 0.08:
            return  # the client is gone, and its transaction is open
        producer.end(commit=client.random.random() < 0.65)
