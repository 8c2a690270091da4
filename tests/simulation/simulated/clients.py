"""Clients of an endpoint: how they ask, and ask again; what they append and read."""

from collections.abc import Callable, Collection
from typing import Any, Final

from asked_endpoint import bytes_of
from logs_at_work import batch_of

from local_log.engine.memory_records import memory_batches
from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition
from remote.manifest.store import load_newest
from simulated.archive_tasks import Act
from simulated.clients_judge import Sent, Session
from simulated.ledgers import is_commit
from simulated.network import Connection, NoAnswer
from simulated.own_host import PARTITION
from simulated.schedule import Actor
from simulated.serving_host import PLACES, ServingHost
from tiering.endpoint.protocol.api_keys import FETCH, INIT_PRODUCER_ID, PRODUCE, Api
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.init_producer_id import InitProducerIdRequest
from tiering.endpoint.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TRIES_MAX: Final = 6
DELIVERY_MS: Final = 600_000
"""After this time a batch is given up, as by `delivery.timeout.ms`: a producer is forgotten after a day."""
OUT_OF_RANGE: Final = 1
NOT_THERE_NOW: Final = frozenset({6, 14, 15, 16, 19, 51, 56})
"""Codes after which clients ask again: the disk fails, or a transaction is about to end."""
FETCH_BYTES: Final = (1, 300, 1 << 16)


class GivesUp(Exception):  # it is no error: the client ends, or begins anew
    """A client cannot go on."""


class Client:
    """One process of clients."""

    def __init__(self, actor: Actor, host: ServingHost) -> None:
        self.actor, self.host, self.random = actor, host, actor.random
        self._connection = Connection(actor, host.network, host.now)
        self._values = 0

    def ask(self, api: Api, version: int, message: Any, *, may_be_late: bool = True) -> Any:
        """The answer, however often it has to be asked for. Raises GivesUp."""
        for _ in range(TRIES_MAX):
            try:
                return self._connection.ask(api, version, message, may_be_late=may_be_late)
            except NoAnswer:
                continue
        raise GivesUp

    def values(self) -> tuple[str, ...]:
        """Texts that nobody has sent yet."""
        self._values += 1
        more = "x" * self.random.choice([0, 0, 100])
        return tuple(f"{self.actor.name}:{self._values}:{n}{more}" for n in range(self.random.randrange(1, 3)))

    def produce(
        self, batch: bytes, sent: Sent, version: int, own_id: str | None, *, tries: int = TRIES_MAX, acks: int = -1
    ) -> int:
        """The error code, of the last try. Raises GivesUp if it is not known whether the batch was appended."""
        body = self.host.clients.sends(batch, sent)
        of = TopicProduceData(sent.partition.topic, partition_data=(PartitionProduceData(sent.partition.partition, (body,)),))
        request, until = ProduceRequest(own_id, acks, 30_000, (of,)), self.host.schedule.now + DELIVERY_MS
        for _ in range(tries):
            if self.host.schedule.now > until:
                raise GivesUp
            try:
                is_free = version >= 12 or own_id is None
                found = self._connection.ask(PRODUCE, version, request, may_be_late=is_free, until_ms=until)
            except NoAnswer:
                continue
            code: int = found.responses[0].partition_responses[0].error_code
            if code not in NOT_THERE_NOW:
                return code
        raise GivesUp

    def fetch(self, partition: TopicPartition, offset: int, *, committed: bool) -> int | None:
        """Where to go on, once what is given is what is there; None for an offset that is no longer there."""
        asked = FetchPartition(partition.partition, fetch_offset=offset, partition_max_bytes=self.random.choice(FETCH_BYTES))
        request = FetchRequest(topics=(FetchTopic(partition.topic, partitions=(asked,)),), isolation_level=int(committed))
        found = self.ask(FETCH, 11, request, may_be_late=False).responses[0].partitions[0]
        if found.error_code:
            self.host.schedule.errors[f"code {found.error_code}"] += found.error_code != OUT_OF_RANGE
            return None if found.error_code == OUT_OF_RANGE else offset
        return self._checked(partition, found, offset, committed=committed)

    def _checked(self, partition: TopicPartition, found: Any, offset: int, *, committed: bool) -> int:
        data, ledger = b"".join(map(bytes_of, found.records or ())), self.host.committed_in(partition)
        who, violated = f"{self.actor.name}, at {offset} of {partition},", self.host.schedule.violated
        aborted = sorted((one.first_offset, one.producer_id) for one in found.aborted_transactions or ())
        aborting, next_offset = set[int](), offset
        for batch in memory_batches(data):
            body = data[batch.position : batch.position + batch.size]
            if ledger.get(batch.base_offset) != body:
                raise violated(f"{who} is given other bytes at {batch.base_offset} than were appended")
            if batch.base_offset > next_offset and next_offset > offset:
                raise violated(f"{who} is given the batch at {batch.base_offset} after the one up to {next_offset}")
            next_offset = batch.last_offset + 1
            while aborted and aborted[0][0] <= batch.last_offset:
                aborting.add(aborted.pop(0)[1])
            if batch.is_control:
                aborting -= set() if is_commit(body) else {batch.producer_id}
            elif batch.is_transactional and committed:
                check = self.host.clients.check_passed_over if batch.producer_id in aborting else self.host.clients.check_read
                check(partition, body, who)
        limit = found.last_stable_offset if committed else found.high_watermark
        if next_offset == offset and max(found.log_start_offset, 0) <= offset < limit:
            raise violated(f"{who} is given nothing, and the log goes on to {limit}")
        return next_offset

    def reset(self, partition: TopicPartition) -> int:
        """Where a consumer goes on whose position is no longer there. The archive's start is the first to move."""
        start = self.start_of(partition)
        if partition != PARTITION or self.host.store_of is None or self.host.tier.offline:
            return start
        try:
            newest = load_newest(self.host.store_of(self.actor), self.host.path)
        except LogError:
            return start
        local = self.host.now().tier.log(partition).local_log_start_offset if not self.host.tier.offline else 0
        return max(start, min(newest.manifest.log_start_offset, local)) if newest is not None else start

    def start_of(self, partition: TopicPartition) -> int:
        """Where a consumer begins that has no position: `auto.offset.reset=earliest`."""
        return self.host.now().tier.log(partition).log_start_offset if not self.host.tier.offline else 0


def lives(host: ServingHost, life: Callable[[Client], None]) -> Act:
    """A client that ends when it cannot go on."""

    def act(actor: Actor) -> None:
        try:
            life(Client(actor, host))
        except GivesUp:
            host.schedule.tell(actor.name, "gives up")

    return act


def produces(client: Client) -> None:
    """A producer, idempotent or not: one that is not cannot repeat what it has sent without an answer."""
    is_idempotent, random = client.random.random() < 0.7, client.random
    for number in range(random.randrange(1, 3)):
        producer = _producer_id(client) if is_idempotent else -1
        session, sequences = Session(f"{client.actor.name} {number}", is_ordered=is_idempotent), dict[TopicPartition, int]()
        for sent_before in range(random.randrange(2, 8)):
            partition, values = random.choice(PLACES), client.values()
            sequence, now = sequences.get(partition, 0), client.host.schedule.now
            batch = batch_of(*values, time=now, producer=producer, sequence=sequence if is_idempotent else -1)
            sent = Sent(session, partition, sent_before)
            tries, acks = (TRIES_MAX, -1) if is_idempotent else (1, random.choice([1, -1]))
            if client.produce(batch, sent, 9, None, tries=tries, acks=acks):
                break
            sequences[partition] = sequence + len(values)


def _producer_id(client: Client) -> int:
    for _ in range(TRIES_MAX):
        found = client.ask(INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 60_000))
        if not found.error_code:
            producer_id: int = found.producer_id
            return producer_id
    raise GivesUp


def one_of(client: Client, partitions: Collection[TopicPartition]) -> TopicPartition:
    """Any of them."""
    return client.random.choice(sorted(partitions))
