"""Any life of transactional ids: producers begin, write and end, others take over, disks fail, time passes, all starts anew."""

from typing import Any

import hypothesis.strategies as st
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from transactions_kept import ORDERS, PAYMENTS, V2, Transactions

from local_log.formats.filenames import TopicPartition
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.transaction_coordinator import RETRY_MS
from tiering.endpoint.transactions.transaction_states import PREPARED

IDS = st.sampled_from(("a", "b"))
PLACES = st.sampled_from((ORDERS, PAYMENTS))
ANY = st.integers(0, 3)


class TransactionLife(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.at = Transactions()
        self.given: dict[str, list[tuple[int, int]]] = {"a": [], "b": []}
        """Every producer id and epoch that was given, the current one last."""
        self.open: dict[str, set[TopicPartition]] = {"a": set(), "b": set()}
        self.ended: list[tuple[TopicPartition, int, int, bool]] = []
        """Partition, id, epoch and outcome of what was answered."""
        self.newest: dict[str, tuple[int, int]] = {}

    def learn(self, own_id: str, found: Any) -> None:
        if isinstance(found, tuple) and (not self.given[own_id] or self.given[own_id][-1] != found):
            self.given[own_id].append(found)

    @rule(own_id=IDS, is_known=st.booleans())
    def init(self, own_id: str, is_known: bool) -> None:
        expected = self.given[own_id][-1] if is_known and self.given[own_id] else None
        found = self.at.init(own_id, expected)
        if isinstance(found, tuple):
            self.learn(own_id, found)
            self.open[own_id] = set()

    @rule(own_id=IDS, place=PLACES, number=ANY)
    def add(self, own_id: str, place: TopicPartition, number: int) -> None:
        if not self.given[own_id]:
            return
        producer = self.given[own_id][-1 - number % len(self.given[own_id])]
        code = self.at.add(producer, place, own_id=own_id, version=V2)
        if code is None:
            assert producer == self.given[own_id][-1], "nobody but the last one that was given writes"
            self.open[own_id].add(place)

    @rule(own_id=IDS, commit=st.booleans())
    def end(self, own_id: str, commit: bool) -> None:
        if not self.given[own_id]:
            return
        producer = self.given[own_id][-1]
        found = self.at.end(producer, commit=commit, own_id=own_id, version=V2)
        if isinstance(found, tuple) and found != producer:
            self.ended += [(place, producer[0], producer[1] + 1, commit) for place in self.open[own_id]]
            self.open[own_id] = set()
            self.learn(own_id, found)

    @rule(place=PLACES)
    def fail(self, place: TopicPartition) -> None:
        self.at.markers.refuses[place] = ErrorCode.KAFKA_STORAGE_ERROR

    @rule(is_broken=st.booleans())
    def log(self, is_broken: bool) -> None:
        self.at.log.is_broken = is_broken

    @rule(ms=st.sampled_from((RETRY_MS, 10_000, 100_000)))
    def later(self, ms: int) -> None:
        self.at.later(ms)

    @rule()
    def restart(self) -> None:
        self.at.started()

    @rule()
    def heal(self) -> None:
        self.at.markers.refuses.clear()
        self.at.log.is_broken = False
        self.at.later(RETRY_MS)
        assert not any(one.state in PREPARED for one in self.at.coordinator.all())
        for place, producer_id, epoch, commit in self.ended:
            assert (producer_id, epoch, commit) in self.at.outcomes(place), "what was answered is in every partition"

    @invariant()
    def a_transaction_has_one_outcome(self) -> None:
        for place in (ORDERS, PAYMENTS):
            found = self.at.outcomes(place)
            assert len({(producer_id, epoch) for producer_id, epoch, _ in found}) == len(set(found))

    @invariant()
    def epochs_and_ids_only_grow(self) -> None:
        for one in self.at.coordinator.all():
            now = (one.producer_id, one.producer_epoch)
            assert now >= self.newest.get(one.transactional_id, now)
            self.newest[one.transactional_id] = now
        owners = [one.producer_id for one in self.at.coordinator.all()]
        assert len(owners) == len(set(owners)), "no two have one producer id"

    def teardown(self) -> None:
        self.heal()


TestTransactionLife = TransactionLife.TestCase
TestTransactionLife.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
