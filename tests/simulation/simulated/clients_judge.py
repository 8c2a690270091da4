"""What must hold of what clients append over an endpoint: each record once, in order, and a transaction's all or none."""

from dataclasses import dataclass, field

from local_log.formats.filenames import TopicPartition
from simulated.ledgers import batch_in, is_commit, records_in
from simulated.schedule import Schedule

Producer = tuple[int, int]
"""A producer's id and epoch."""


@dataclass(eq=False)
class Transaction:
    """One of a transactional producer. `is_unsure`: a loss of power may have taken some of it, and not the rest."""

    own_id: str
    number: int
    is_asked_to_commit: bool = False
    is_told_committed: bool = False
    is_unsure: bool = False
    marks: dict[TopicPartition, bool] = field(default_factory=dict)
    """Whether it is committed, by the partitions that have its marker."""

    def __str__(self) -> str:
        return f"transaction {self.number} of {self.own_id}"


@dataclass(eq=False)
class Session:
    """Batches of one producer that have to be in the order in which they were sent, where they are numbered."""

    name: str
    is_ordered: bool = True
    last: dict[TopicPartition, int] = field(default_factory=dict)


@dataclass(eq=False)
class Sent:
    """A batch that was sent, and where it is, once it is appended."""

    session: Session
    partition: TopicPartition
    number: int
    transaction: Transaction | None = None
    offset: int | None = None


@dataclass(eq=False)
class ClientsJudge:
    """What clients have sent, by its records."""

    schedule: Schedule
    sent: dict[bytes, Sent] = field(default_factory=dict)
    transactions: list[Transaction] = field(default_factory=list)
    is_unsure: bool = False
    """Whether a loss of power may have taken of a transactional id that somebody has begun: its epoch is given again then."""
    current: dict[str, Producer] = field(default_factory=dict)
    """The producer of each transactional id that was told last that it is."""
    deleted_below: dict[TopicPartition, int] = field(default_factory=dict)
    """Up to where records were deleted: a log that has none any more forgets its producers when it starts again, as Kafka's does
    (ProducerStateManager.truncateAndReload), and takes a batch again that was there."""
    _before_loss: set[tuple[str, Producer]] = field(default_factory=set)
    """Who was a producer before a loss of power: another one may be given its epoch, and end its transactions."""
    _shared: set[str] = field(default_factory=set)
    """The transactional ids of which this has happened since one has begun anew."""
    _former: set[tuple[str, Producer]] = field(default_factory=set)
    _open: dict[tuple[TopicPartition, int], list[Sent]] = field(default_factory=dict)

    # What clients do

    def sends(self, batch: bytes, sent: Sent) -> bytes:
        """A client is about to send this."""
        self.sent[records_in(batch)] = sent
        return batch

    def begins(self, own_id: str) -> Transaction:
        self.transactions.append(Transaction(own_id, len(self.transactions), is_unsure=own_id in self._shared))
        return self.transactions[-1]

    # What the endpoint does

    def is_producer(self, own_id: str, now: Producer, *, begins: bool = False) -> None:
        """The endpoint has told somebody that it is the producer of a transactional id: nobody else is any more."""
        if (own_id, now) in self._before_loss:
            self._shared.add(own_id)
            for one in self.transactions:
                one.is_unsure |= one.own_id == own_id
        elif begins:
            self._shared.discard(own_id)
        known = self.current.get(own_id)
        if known != now:
            if (own_id, now) in self._former:
                raise self.schedule.violated(f"{own_id} is given producer {now} again, after {known}")
            if known is not None:
                self._former.add((own_id, known))
            self.current[own_id] = now

    def takes(self, own_id: str, producer: Producer, what: str) -> None:
        """The endpoint has taken something of a producer that is transactional.

        A loss of power may have taken the partitions of its transaction: then no marker of the next producer fences it there.
        """
        if (own_id, producer) in self._former - self._before_loss:
            raise self.schedule.violated(f"{what} of {own_id} as {producer} is taken, and {self.current[own_id]} has begun since")

    def appended(self, partition: TopicPartition, base: int, body: bytes) -> None:
        """A batch is in a log, after all that were there before."""
        batch = batch_in(body)
        if batch.is_control:
            self._marked(partition, batch.producer_id, base, committed=is_commit(body))
            return
        sent = self.sent.get(records_in(body))
        if sent is None or sent.partition != partition:
            raise self.schedule.violated(f"{partition} has a batch at {base} that nobody has sent there")
        if sent.offset is not None and sent.offset >= self.deleted_below.get(partition, 0):
            raise self.schedule.violated(f"batch {sent.number} of {sent.session.name} is at {sent.offset}, and again at {base}")
        session = sent.session
        if session.is_ordered and session.last.get(partition, -1) > sent.number:
            raise self.schedule.violated(
                f"batch {sent.number} of {session.name} is at {base}, after batch {session.last[partition]}"
            )
        sent.offset, session.last[partition] = base, sent.number
        if sent.transaction is not None:
            self._open.setdefault((partition, batch.producer_id), []).append(sent)

    def _marked(self, partition: TopicPartition, producer_id: int, base: int, *, committed: bool) -> None:
        batches = self._open.pop((partition, producer_id), [])
        found = {one.transaction for one in batches if one.transaction is not None and not one.transaction.is_unsure}
        if len(found) > 1:
            raise self.schedule.violated(f"the marker at {base} of {partition} ends {' and '.join(map(str, found))}")
        for one in found:
            self.marks(one, partition, committed=committed)

    def marks(self, one: Transaction, partition: TopicPartition, *, committed: bool) -> None:
        """A partition has the marker of a transaction."""
        if one.is_unsure:
            return
        if committed and not one.is_asked_to_commit:
            raise self.schedule.violated(f"{one} is committed in {partition}, which nobody has asked for")
        if not committed and one.is_told_committed:
            raise self.schedule.violated(f"{one} is aborted in {partition}, and its producer was told that it is committed")
        others = {other for other, is_committed in one.marks.items() if is_committed != committed}
        if others:
            how = "committed" if committed else "aborted"
            raise self.schedule.violated(f"{one} is {how} in {partition}, and not so in {min(others)}")
        one.marks[partition] = committed

    def acknowledged(self, partition: TopicPartition, records: bytes, offset: int) -> None:
        """The endpoint has said where a batch is."""
        sent = self.sent[records]
        if sent.offset != offset and not (self.is_unsure and sent.transaction is not None):
            raise self.schedule.violated(
                f"batch {sent.number} of {sent.session.name} is acknowledged at {offset} of {partition}, and is at {sent.offset}"
            )

    def power_lost(self) -> None:
        """What was not synced may be lost of anything: of what is in two logs one may have it, and the other one not."""
        for one in self.transactions:
            one.is_unsure = True
        self.is_unsure = True
        self._before_loss |= {*self._former, *self.current.items()}
        self.current.clear()
        self._former.clear()

    def recovered(self, partition: TopicPartition, committed: dict[int, bytes]) -> None:
        """This is what a log has after a crash."""
        for sent in self.sent.values():
            if sent.partition == partition and sent.offset is not None:
                sent.offset = None
                sent.session.last.pop(partition, None)
        for key in [key for key in self._open if key[0] == partition]:
            del self._open[key]
        for one in self.transactions:
            one.marks.pop(partition, None)
        for base, body in committed.items():
            self.appended(partition, base, body)

    # What readers get

    def check_read(self, partition: TopicPartition, body: bytes, who: str) -> None:
        """A reader of committed records was given a batch that it does not pass over."""
        one = self.sent[records_in(body)].transaction
        if one is not None and not one.is_unsure and not one.marks.get(partition):
            how = "was aborted" if partition in one.marks else "is open"
            raise self.schedule.violated(f"{who} is given a batch of {one}, which {how}")

    def check_passed_over(self, partition: TopicPartition, body: bytes, who: str) -> None:
        """It passes over a batch, since it was told that its transaction was aborted."""
        one = self.sent[records_in(body)].transaction
        if one is None or (not one.is_unsure and one.marks.get(partition, True)):
            raise self.schedule.violated(f"{who} passes over a batch of {one}, which was not aborted")

    # The end

    def check_ended(self) -> None:
        """Every transaction has ended in every partition that has something of it, and as its producer was told."""
        for (partition, producer_id), batches in self._open.items():
            if all(one.transaction is None or one.transaction.is_unsure for one in batches):
                continue
            raise self.schedule.violated(f"{batches[0].transaction} of producer {producer_id} is open in {partition} at the end")
