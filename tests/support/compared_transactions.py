"""Requests of transactional producers in the same order to a broker and to our coordinators: answers and logs are the same.

In answers the ids of producers are replaced by their order, and times by whether there is one. A broker answers before it has
written markers: it is asked again when it has.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from itertools import count
from typing import Any

from compared_answers import Difference, differences
from compared_brokers import Side
from compared_writes import ComparedWrites
from hand_made import TRANSACTIONAL, batch, record
from local_tiers import Host
from transacting_endpoint import TransactingEndpoint
from transaction_lives import CURRENT, LAST, OF_NOBODY, OF_OTHER, OF_OWN, OTHER, OWN, PLACES, Ask, Step, Write

from local_log.engine.memory_records import memory_batches
from remote.clock import SystemClock
from tiering.endpoint.protocol.api_keys import DESCRIBE_TRANSACTIONS, END_TXN, FETCH, FIND_COORDINATOR, INIT_PRODUCER_ID, PRODUCE
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.create_topics import CreatableTopic
from tiering.endpoint.protocol.messages.describe_producers import PartitionResponse
from tiering.endpoint.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tiering.endpoint.protocol.messages.end_txn import EndTxnResponse
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.find_coordinator import FindCoordinatorRequest
from tiering.endpoint.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tiering.endpoint.protocol.messages.list_transactions import ListTransactionsResponse
from tiering.endpoint.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

TOPICS = {name: max(number for other, number in PLACES if other == name) + 1 for name, _ in PLACES}
_OF_TRANSACTIONS = 1
_START_S = 60
_HEADER = 61
_UNEQUAL = {"position": 0, "crc": 0, "max_timestamp": 0, "base_timestamp": 0}
_PATIENCE_S = 5.0
_NOBODY = 1 << 60
_WORDS = ("error_message", "[order]")


@dataclass
class Life:
    """Producers on one side: the last id and epoch of each transactional id, and all ids in the order in which they were told."""

    prefix: str
    last: dict[str, tuple[int, int]] = field(default_factory=dict)
    ids: list[int] = field(default_factory=list)

    def name(self, symbol: Any) -> Any:
        """A transactional id or a group."""
        return self.prefix + symbol if isinstance(symbol, str) and symbol.startswith("@") else symbol

    def producer(self, producer_id: int, epoch: int) -> tuple[int, int]:
        """The id and the epoch that a request stands for."""
        own_id = {OF_OWN: OWN, OF_OTHER: OTHER}.get(producer_id)
        known = self.last.get(own_id or "", (_NOBODY, 0))
        said = known[1] + epoch - CURRENT if abs(epoch - CURRENT) < 10 else epoch
        return (producer_id if producer_id == -1 else known[0]), max(-1, said)

    def asked(self, value: Any) -> Any:
        """A request with this side's names, ids and epochs."""
        if isinstance(value, tuple):
            return tuple(map(self.asked, value))
        if not is_dataclass(value) or isinstance(value, type):
            return _NOBODY if value == OF_NOBODY else self.last[OWN][0] if value == OF_OWN else self.name(value)
        said = {one.name: getattr(value, one.name) for one in fields(value)}
        of = {one.removesuffix("producer_id"): said[one] for one in said if one.endswith("producer_id")}
        known = {prefix: self.producer(of[prefix], said[f"{prefix}producer_epoch"]) for prefix in of}
        told = {f"{prefix}producer_id": one[0] for prefix, one in known.items()}
        told |= {f"{prefix}producer_epoch": one[1] for prefix, one in known.items()}
        return replace(value, **{name: told.get(name, self.asked(one)) for name, one in said.items()})

    def learn(self, step: Step, answer: Any) -> None:
        """Keeps the id and the epoch that an answer tells."""
        if isinstance(answer, InitProducerIdResponse | EndTxnResponse) and not answer.error_code and answer.producer_id >= 0:
            if answer.producer_id not in self.ids:
                self.ids.append(answer.producer_id)
            if isinstance(step, Ask) and step.request.transactional_id is not None:
                self.last[step.request.transactional_id] = answer.producer_id, answer.producer_epoch

    def named(self, value: Any) -> Any:
        """An answer without what differs from side to side."""
        if isinstance(value, tuple):
            return tuple(map(self.named, value))
        if isinstance(value, ListTransactionsResponse):
            own = (one for one in value.transaction_states if one.transactional_id.startswith(f"{self.prefix}@"))
            value = replace(value, transaction_states=tuple(sorted(own, key=lambda one: one.transactional_id)))
        if isinstance(value, PartitionResponse):
            own = [one for one in value.active_producers if one.producer_id in self.ids]
            value = replace(value, active_producers=tuple(sorted(own, key=lambda one: self.ids.index(one.producer_id))))
        if not is_dataclass(value) or isinstance(value, type):
            return value
        told = {one.name: self.named(getattr(value, one.name)) for one in fields(value)}
        if "producer_id" in told and not told.get("error_code"):
            told["producer_id"] = self.who(told["producer_id"])
        for name in {"transaction_start_time_ms", "last_timestamp"} & told.keys():
            told[name] = told[name] > 0
        return replace(value, **told)

    def who(self, producer_id: int) -> Any:
        """The number of a producer, in the order in which they were told."""
        return self.ids.index(producer_id) if producer_id in self.ids else f"not told: {producer_id}" if producer_id >= 0 else -1


class OnePartition(TransactingEndpoint):
    """Its own topics have as many partitions as the broker's."""

    group_config = replace(TransactingEndpoint.group_config, offsets_topic_partitions=1)
    config = replace(TransactingEndpoint.config, state_partitions=1)


@dataclass
class ComparedTransactions:
    """A broker and an endpoint with the topics of `PLACES`."""

    broker: Side
    endpoint: TransactingEndpoint
    steps: int = 0
    codes: set[int] = field(default_factory=set)
    """All error codes that the broker has answered with."""
    duplicates: int = 0
    """The writes that the broker has answered as duplicates: with the offset and the time of the batch that it has."""
    _numbers: "count[int]" = field(default_factory=count)

    @classmethod
    def begun(cls, broker: Side) -> "ComparedTransactions":
        """With an endpoint of its own, and the topics. The broker coordinates groups already."""
        endpoint = OnePartition(Host(dirs=("/a",), settings={}, now=SystemClock().now_ms()))
        writes = ComparedWrites(broker, endpoint)
        writes.create(*(CreatableTopic(name, partitions, 1) for name, partitions in TOPICS.items()))
        assert writes.found == []
        broker.ask(FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=_OF_TRANSACTIONS, coordinator_keys=("first",)))
        deadline = time.monotonic() + _START_S
        while broker.ask(INIT_PRODUCER_ID, 5, InitProducerIdRequest("first", 60_000)).error_code:
            assert time.monotonic() < deadline, "the broker does not coordinate transactions"
            time.sleep(0.1)
        endpoint.init("first")
        return cls(broker, endpoint)

    def ended(self) -> None:
        """Deletes the topics."""
        for name in TOPICS:
            ComparedWrites(self.broker, self.endpoint).delete(name, 5)

    def compare(self, steps: Sequence[Step]) -> list[tuple[Any, Any]]:
        """What differs first, in an answer or at last in a log."""
        prefix = f"life-{next(self._numbers)}"
        theirs, ours = Life(prefix), Life(prefix)
        starts = {place: self.endpoint.log(*place).log_end_offset for place in PLACES}
        sequences: dict[Any, int] = {}
        for step in (*steps, *LAST):
            answers = [self._asked(side, life, step, sequences) for side, life in ((self.broker, theirs), (self.endpoint, ours))]
            theirs.learn(step, answers[0])
            ours.learn(step, answers[1])
            self._note(step, theirs, answers[0], sequences)
            found = differences(theirs.named(answers[0]), ours.named(answers[1]))
            differ = [one for one in found if not _is_known(one)]
            if differ:
                return [(step, one) for one in differ]
            self._settle(step, theirs)
        return self._logs(starts, theirs, ours)

    def _asked(self, side: Any, life: Life, step: Step, sequences: dict[Any, int]) -> Any:
        if isinstance(step, Ask):
            return side.ask(step.api, step.version, life.asked(step.request))
        producer_id, epoch = life.producer(step.producer_id, step.epoch)
        sequence = max(0, sequences.get(_key(step, epoch), 0) + step.late) if producer_id >= 0 else -1
        attributes = TRANSACTIONAL if step.is_transactional else 0
        now_ms = self.endpoint.host.now
        records = batch(
            record(value=b"%d in step %d" % (sequence, self.steps)),
            attributes=attributes,
            base_timestamp=now_ms,
            max_timestamp=now_ms,
            producer_id=producer_id,
            producer_epoch=epoch if producer_id >= 0 else -1,
            base_sequence=sequence,
        )
        topic = TopicProduceData(step.place[0], partition_data=(PartitionProduceData(step.place[1], (records,)),))
        return side.ask(PRODUCE, step.version, ProduceRequest(life.name(step.own_id), -1, 30_000, (topic,)))

    def _note(self, step: Step, life: Life, answer: Any, sequences: dict[Any, int]) -> None:
        self.steps += 1
        if isinstance(step, Write):
            told = answer.responses[0].partition_responses[0]
            code = told.error_code
            self.duplicates += not code and told.log_append_time_ms >= 0
            if not code and step.late == 0:
                key = _key(step, life.producer(step.producer_id, step.epoch)[1])
                sequences[key] = sequences.get(key, 0) + 1
            self.codes.add(code)
        else:
            self.codes.add(getattr(answer, "error_code", 0))

    def _settle(self, step: Step, life: Life) -> None:
        """Until the broker has written the markers of what has ended."""
        if not isinstance(step, Ask) or step.api not in (END_TXN, INIT_PRODUCER_ID):
            return
        asked, deadline = DescribeTransactionsRequest((life.name(OWN), life.name(OTHER))), time.monotonic() + _PATIENCE_S
        while any(one.transaction_state.startswith("Prepare") for one in self._described(asked)):
            assert time.monotonic() < deadline, "the broker's transaction does not end"
            time.sleep(0.001)

    def _described(self, asked: DescribeTransactionsRequest) -> Any:
        return self.broker.ask(DESCRIBE_TRANSACTIONS, 0, asked).transaction_states

    def _logs(self, starts: dict[tuple[str, int], int], theirs: Life, ours: Life) -> list[tuple[Any, Any]]:
        found = []
        for (name, number), start in starts.items():
            asked = FetchPartition(number, fetch_offset=start, partition_max_bytes=1 << 30)
            request = FetchRequest(topics=(FetchTopic(name, partitions=(asked,)),), max_bytes=1 << 30)
            told = b"".join(self.broker.ask(FETCH, 12, request).responses[0].partitions[0].records)
            log = self.endpoint.log(name, number)
            own = log.read(start, 1 << 30).records if log.log_end_offset > start else b""
            pair = _batches(told, theirs), _batches(own, ours)
            found += [((name, number), pair)] if pair[0] != pair[1] else []
        return found


def _key(step: Write, epoch: int) -> Any:
    return step.producer_id, epoch, step.place


def _batches(data: Any, life: Life) -> list[Any]:
    """All of each batch but for its times and the id of its producer."""
    found = {one: bytes(data[one.position + _HEADER : one.position + one.size]) for one in memory_batches(data)}
    return [(one._replace(**_UNEQUAL, producer_id=life.who(one.producer_id)), records) for one, records in found.items()]


def _is_known(found: Difference) -> bool:
    return found.path.endswith(_WORDS) or (found.path.endswith("error_code") and found.theirs == ErrorCode.UNKNOWN_SERVER_ERROR)
