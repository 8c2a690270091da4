"""Lives of transactional producers that Hypothesis makes: transactions as they should be, then requests in any order.

A request names a transactional id by OWN or OTHER, a producer by one of these ids and an epoch by its distance from the last one
that was told, from CURRENT on.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import Any

from hypothesis import strategies as st

from tiering.endpoint.protocol.api_keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    DELETE_GROUPS,
    DESCRIBE_PRODUCERS,
    DESCRIBE_TRANSACTIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    LIST_TRANSACTIONS,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    TXN_OFFSET_COMMIT,
    WRITE_TXN_MARKERS,
    Api,
)
from tiering.endpoint.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from tiering.endpoint.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tiering.endpoint.protocol.messages.delete_groups import DeleteGroupsRequest
from tiering.endpoint.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from tiering.endpoint.protocol.messages.describe_transactions import DescribeTransactionsRequest
from tiering.endpoint.protocol.messages.end_txn import EndTxnRequest
from tiering.endpoint.protocol.messages.init_producer_id import InitProducerIdRequest
from tiering.endpoint.protocol.messages.list_transactions import ListTransactionsRequest
from tiering.endpoint.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from tiering.endpoint.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tiering.endpoint.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tiering.endpoint.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

OWN, OTHER, GROUP = "@own", "@other", "@group"
"""Stand for two transactional ids and a group, whose names nobody had before."""
OF_OWN, OF_OTHER, OF_NOBODY = -1001, -1002, -1003
"""Stand for the producers' ids of these transactional ids, and for one that nobody has."""
CURRENT = 1_000_000
PLACES = (("t-orders", 0), ("t-orders", 1), ("t-counts", 0))
_MISSING = ("t-nowhere", 0)
_TIMEOUT_MS = 600_000


@dataclass(frozen=True, slots=True)
class Ask:
    """A request."""

    api: Api
    version: int
    request: Any


@dataclass(frozen=True, slots=True)
class Write:
    """A batch of one record. `late` is the distance of its sequence number from the next one of its producer and epoch."""

    version: int
    own_id: str | None
    producer_id: int
    epoch: int
    place: tuple[str, int]
    late: int = 0
    is_transactional: bool = True


Step = Ask | Write


def transaction_lives() -> st.SearchStrategy[list[Step]]:
    """A producer begins; then whole transactions and single requests."""
    parts = st.one_of(_transaction(2), _transaction(1), _steps().map(lambda one: [one]), _steps().map(lambda one: [one]))
    begun = st.sampled_from(([_init(5)], [_init(3)], [_init(5), _init(5, OTHER)]))
    return st.builds(lambda first, then: [*first, *chain.from_iterable(then)], begun, st.lists(parts, min_size=1, max_size=6))


def lives_that_repeat_sequence_numbers() -> Iterator[list[Step]]:
    """Transactions with the sequence numbers of an earlier one, as of a client that never heard that it was taken."""
    place, who = PLACES[0], (OF_OWN, CURRENT)
    for version, first_is_committed in product((1, 2), (True, False)):
        produce, end = (12, 5) if version > 1 else (11, 4)
        begin = [Ask(ADD_PARTITIONS_TO_TXN, 3, _add(OWN, *who, [place]))] if version == 1 else []

        def write(late: int, epoch: int = CURRENT, produce: int = produce) -> Step:
            return Write(produce, OWN, OF_OWN, epoch, place, late)

        def ended(is_committed: bool, end: int = end) -> Step:
            return Ask(END_TXN, end, EndTxnRequest(OWN, *who, is_committed))

        first = [*begin, write(0), write(0), write(0), ended(first_is_committed)]
        repeated = [*begin, write(-1), write(-3), write(-1), write(-7), write(2), write(-1, CURRENT - 1), ended(True)]
        last = [*begin, write(0), write(-1), write(-4), _init(5), *begin, write(-1), ended(True)]
        yield [_init(5), *first, write(-1), *repeated, *last]
        yield [_init(5), *first, _init(5), *repeated, *last]


def _transaction(version: int) -> st.SearchStrategy[list[Step]]:
    """One of a client of transaction version 1 or 2, which may lack one of its steps, or repeat sequence numbers."""
    who = (OF_OWN, CURRENT)
    produce, commit, end = (12, 5, 5) if version > 1 else (11, 4, 4)
    written = st.tuples(st.sampled_from(PLACES), st.sampled_from((0, 0, 0, 0, -1, -2, -6)))

    def made(writes: list[tuple[tuple[str, int], int]], offset: int | None, is_committed: bool, lacks: int) -> list[Step]:
        places = [place for place, _ in writes]
        steps: list[Step] = []
        if version == 1:
            steps.append(Ask(ADD_PARTITIONS_TO_TXN, 3, _add(OWN, *who, places)))
        steps += (Write(produce, OWN, *who, *one) for one in writes)
        if offset is not None:
            if version == 1:
                steps.append(Ask(ADD_OFFSETS_TO_TXN, 3, AddOffsetsToTxnRequest(OWN, *who, GROUP)))
            steps.append(Ask(TXN_OFFSET_COMMIT, commit, _commit(OWN, *who, PLACES[0], offset)))
        steps.append(Ask(END_TXN, end, EndTxnRequest(OWN, *who, is_committed)))
        return [*steps[:lacks], *steps[lacks + 1 :]] if 0 <= lacks < len(steps) else steps

    offsets = st.one_of(st.none(), st.integers(0, 9))
    return st.builds(made, st.lists(written, max_size=3), offsets, st.booleans(), st.integers(-12, 8))


def _steps() -> st.SearchStrategy[Step]:
    own_ids = st.sampled_from((OWN, OWN, OWN, OTHER, "@nobody", ""))
    producers = st.sampled_from((OF_OWN,) * 6 + (OF_OTHER, OF_NOBODY, -1))
    epochs = st.sampled_from((CURRENT,) * 6 + (CURRENT - 1, CURRENT + 1, 0, -1))
    who = (own_ids, producers, epochs)
    place = st.sampled_from((*PLACES, *PLACES, _MISSING))
    places = st.lists(place, max_size=3)
    versions = {
        api: st.integers(api.first, api.last) for api in (INIT_PRODUCER_ID, ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT, END_TXN)
    }
    ids = st.one_of(st.just((-1, -1)), st.tuples(producers, epochs))
    timeouts = st.sampled_from((_TIMEOUT_MS,) * 5 + (60_000, 0, -1, 900_001))

    def begun(version: int, own_id: str | None, timeout_ms: int, of: tuple[int, int]) -> Step:
        return Ask(INIT_PRODUCER_ID, version, InitProducerIdRequest(own_id, timeout_ms, *(of if version >= 3 else (-1, -1))))

    return st.one_of(
        st.builds(begun, versions[INIT_PRODUCER_ID], st.one_of(own_ids, st.none()), timeouts, ids),
        st.builds(lambda v, o, p, e, of: Ask(ADD_PARTITIONS_TO_TXN, v, _add(o, p, e, of)), st.integers(0, 3), *who, places),
        st.builds(_of_broker, st.integers(4, 5), *who, places, st.booleans()),
        st.builds(
            lambda v, o, p, e, g: Ask(ADD_OFFSETS_TO_TXN, v, AddOffsetsToTxnRequest(o, p, e, g)),
            versions[ADD_OFFSETS_TO_TXN], *who, st.sampled_from((GROUP, GROUP, "")),
        ),
        st.builds(
            lambda v, o, p, e, of, n: Ask(TXN_OFFSET_COMMIT, v, _commit(o, p, e, of, n)),
            versions[TXN_OFFSET_COMMIT], *who, place, st.integers(0, 9),
        ),
        st.builds(
            lambda v, o, p, e, is_committed: Ask(END_TXN, v, EndTxnRequest(o, p, e, is_committed)),
            versions[END_TXN], *who, st.booleans(),
        ),
        st.builds(
            Write, st.integers(3, 12), st.one_of(own_ids, st.none()), producers, epochs, place,
            st.sampled_from((0, 0, 0, 0, -1, 2)), st.sampled_from((True, True, True, False)),
        ),
        st.builds(_marked, producers, st.sampled_from((CURRENT, CURRENT, CURRENT - 1)), places, st.booleans(), st.integers(1, 2)),
        st.builds(_looked, st.integers(0, 9)),
        st.builds(_of_consumers, st.integers(0, 2), st.integers(0, 9)),
    )  # fmt: skip


def _init(version: int, own_id: str = OWN) -> Step:
    return Ask(INIT_PRODUCER_ID, version, InitProducerIdRequest(own_id, _TIMEOUT_MS))


def _topics(of: list[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(dict.fromkeys(number for other, number in of if other == name)) for name, _ in of}


def _add(own_id: str, producer_id: int, epoch: int, of: list[tuple[str, int]]) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        (), own_id, producer_id, epoch, tuple(AddPartitionsToTxnTopic(*one) for one in _topics(of).items())
    )


def _of_broker(version: int, own_id: str, producer_id: int, epoch: int, of: list[tuple[str, int]], only_verifies: bool) -> Step:
    topics = tuple(AddPartitionsToTxnTopic(*one) for one in _topics(of).items())
    one = AddPartitionsToTxnTransaction(own_id, producer_id, epoch, only_verifies, topics)
    return Ask(ADD_PARTITIONS_TO_TXN, version, AddPartitionsToTxnRequest((one,)))


def _commit(own_id: str, producer_id: int, epoch: int, of: tuple[str, int], offset: int) -> TxnOffsetCommitRequest:
    topic = TxnOffsetCommitRequestTopic(of[0], (TxnOffsetCommitRequestPartition(of[1], offset),))
    return TxnOffsetCommitRequest(own_id, GROUP, producer_id, epoch, topics=(topic,))


def _marked(producer_id: int, epoch: int, of: list[tuple[str, int]], is_committed: bool, version: int) -> Step:
    """As an administrator sends them. A later epoch would leave a broker's transaction without an end."""
    topics = tuple(WritableTxnMarkerTopic(*one) for one in _topics(of).items())
    marker = WritableTxnMarker(producer_id, epoch, is_committed, topics, 0, 0)
    return Ask(WRITE_TXN_MARKERS, version, WriteTxnMarkersRequest((marker,)))


def _of_consumers(which: int, offset: int) -> Step:
    """What a consumer or an administrator asks of the group meanwhile."""
    name, number = PLACES[0]
    committed = OffsetCommitRequestTopic(name, partitions=(OffsetCommitRequestPartition(number, offset),))
    deleted = OffsetDeleteRequestTopic(name, (OffsetDeleteRequestPartition(number),))
    asked: tuple[Step, ...] = (
        Ask(OFFSET_COMMIT, 9, OffsetCommitRequest(GROUP, topics=(committed,))),
        Ask(OFFSET_DELETE, 0, OffsetDeleteRequest(GROUP, (deleted,))),
        Ask(DELETE_GROUPS, 2, DeleteGroupsRequest((GROUP,))),
    )
    return asked[which]


def _looked(which: int) -> Step:
    offsets = OffsetFetchRequestGroup(GROUP, topics=(OffsetFetchRequestTopics(PLACES[0][0], partition_indexes=(0, 1)),))
    producers = tuple(TopicRequest(*one) for one in _topics([*PLACES, _MISSING]).items())
    asked: tuple[Step, ...] = (
        Ask(DESCRIBE_TRANSACTIONS, 0, DescribeTransactionsRequest((OWN, OTHER, "@nobody", ""))),
        Ask(LIST_TRANSACTIONS, 0, ListTransactionsRequest()),
        Ask(LIST_TRANSACTIONS, 0, ListTransactionsRequest(("Ongoing", "CompleteCommit", "None", "Dead"))),
        Ask(LIST_TRANSACTIONS, 1, ListTransactionsRequest(producer_id_filters=(OF_OWN, OF_NOBODY))),
        Ask(LIST_TRANSACTIONS, 1, ListTransactionsRequest(duration_filter=60_000)),
        Ask(LIST_TRANSACTIONS, 2, ListTransactionsRequest(transactional_id_pattern=".*other")),
        Ask(LIST_TRANSACTIONS, 2, ListTransactionsRequest(transactional_id_pattern="(")),
        Ask(DESCRIBE_PRODUCERS, 0, DescribeProducersRequest(producers)),
        Ask(OFFSET_FETCH, 9, OffsetFetchRequest(groups=(offsets,), require_stable=True)),
        Ask(OFFSET_FETCH, 8, OffsetFetchRequest(groups=(offsets,))),
    )
    return asked[which]


LAST = (*(_looked(which) for which in (0, 7, 8)), _init(5), _init(5, OTHER))
"""What is asked at the end of a life; no transaction is open then."""
