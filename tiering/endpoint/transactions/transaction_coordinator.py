"""Answers for producers with transactional ids (Kafka's TransactionCoordinator): many threads ask, one at a time is answered.

A transaction's outcome is written before its first marker, and its end after the last one. So whoever starts anew, here or
another broker, writes the markers that are missing; those that are there already change nothing when they are written again.

Others are answered while the markers of a transaction are written. Nobody else changes its transactional id, whose outcome is
decided, and one thread writes its markers: one that came late could end the next transaction, which may have the same epoch.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from local_log.errors import LogError
from local_log.formats.filenames import TopicPartition
from remote.clock import Time
from tiering.endpoint.coordinator.timers import Timers
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.errors import TransactionError
from tiering.endpoint.transactions.producer_id_manager import ProducerIdManager
from tiering.endpoint.transactions.transaction_log import Marker, TransactionLog, WritesMarkers
from tiering.endpoint.transactions.transaction_metadata import (
    BUMPS_EPOCHS_SINCE,
    EPOCH_MAX,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    TransactionMetadata,
    is_exhausted,
)
from tiering.endpoint.transactions.transaction_state_manager import TransactionStateManager
from tiering.endpoint.transactions.transaction_states import (
    ON_END_AGAIN_V2,
    ON_END_V1,
    ON_END_V2,
    ONGOING,
    PREPARE_COMMIT,
    PREPARED,
    Ends,
)

RETRY_MS: Final = 1_000
"""So long later markers are written that could not be."""
NAMED_MAX: Final = 20
"""Of the transactional ids that a message is about."""
_MARKED: Final = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)
"""What a partition answers that needs no marker any more. Kafka, too, writes no further one where a later epoch has been seen."""


class ProducerIdAndEpoch(NamedTuple):
    """Who a producer is, and since which of its beginnings."""

    producer_id: int
    epoch: int


@dataclass(slots=True)
class TransactionCoordinator:
    """All transactional ids, and ids for other producers. `report` is told what whoever runs the endpoint should know."""

    config: TransactionConfig
    log: TransactionLog
    markers: WritesMarkers
    producer_ids: ProducerIdManager
    clock: Time
    report: Callable[[str], object]
    _states: TransactionStateManager = field(init=False)
    _timers: Timers = field(init=False)
    _is_active: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ending: set[str] = field(default_factory=set)
    """The transactional ids whose markers are written without the lock."""
    _to_end: list[TransactionMetadata] = field(default_factory=list)
    """Those of them that what is due has found."""
    _has_ended: threading.Condition = field(init=False)

    def __post_init__(self) -> None:
        self._states = TransactionStateManager(self.config, self.log, self.clock, self.report)
        self._timers = Timers(self.clock)
        self._has_ended = threading.Condition(self._lock)

    def load(self) -> None:
        """Takes up what the log has, and ends the transactions whose outcome is decided. Raises LogError."""
        with self._lock:
            self._states.load()
            self._retry()
            self._abort_timed_out(first=True)
            self._expire(first=True)
            found, self._to_end = self._to_end, []
        self._finish_all(found)

    def is_due(self) -> bool:
        """Whether there is something to do for `tick`. Takes no time."""
        return self._timers.is_due()

    def tick(self) -> None:
        """Does what is due: open transactions are aborted, missing markers written, and unused ids forgotten."""
        if not self._lock.acquire(blocking=False):
            return  # the next time will do
        try:
            for task in self._timers.due():
                self._do(task)
            found, self._to_end = self._to_end, []
        finally:
            self._lock.release()
        self._finish_all(found)

    def _finish_all(self, found: Iterable[TransactionMetadata]) -> None:
        for one in found:
            self._do(partial(self._finish, one))

    def _do(self, task: Callable[[], object]) -> None:
        try:
            task()
        except Exception as e:  # a bug of ours with one transaction must not keep the others from ending
            self.report(f"a bug: {type(e).__name__}: {e}; please report it")

    def stop(self) -> None:
        """Refuses further requests, and waits for the markers that are being written."""
        with self._lock:
            self._is_active = False
            self._has_ended.wait_for(lambda: not self._ending)

    # Requests

    def new_producer_id(self) -> ProducerIdAndEpoch:
        """The id of a producer without a transactional id. Raises TransactionError."""
        with self._lock:
            return ProducerIdAndEpoch(self._next_id(), 0)

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: ProducerIdAndEpoch | None = None
    ) -> ProducerIdAndEpoch:
        """A producer begins: the others with its id are fenced, and what they have open is aborted. Raises TransactionError.

        `expected` is who it is, if it goes on after an error (KIP-360).
        """
        if not transactional_id:
            raise TransactionError(ErrorCode.INVALID_REQUEST)
        if not 0 < timeout_ms <= self.config.max_timeout_ms:
            raise TransactionError(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        with self._lock:
            self._check()
            now_ms = self.clock.now_ms()
            known = self._states.transactions.get(transactional_id)
            if known is None:
                known = TransactionMetadata(transactional_id, self._next_id(), timeout_ms, now_ms)
            if known.state in PREPARED:
                raise TransactionError(ErrorCode.CONCURRENT_TRANSACTIONS)
            if expected is not None and not _may_go_on(known, expected):
                raise TransactionError(ErrorCode.PRODUCER_FENCED)
            if known.state is not ONGOING:
                begun = self._begun(known, timeout_ms, expected, now_ms)
                self._states.put(begun)
                return ProducerIdAndEpoch(begun.producer_id, begun.producer_epoch)
            prepared = self._fenced(known)
        self._finish(prepared)
        raise TransactionError(ErrorCode.CONCURRENT_TRANSACTIONS)

    def add_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition], client_version: int
    ) -> None:
        """The producer's transaction has these partitions, too. Raises TransactionError."""
        with self._lock:
            known, added = self._of(transactional_id, producer), frozenset(partitions)
            if known.state is not ONGOING or not added <= known.partitions:
                self._states.put(known.added(added, client_version, self.clock.now_ms()))

    def verify(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether the producer's transaction has these partitions. Raises TransactionError."""
        with self._lock:
            has = self._of(transactional_id, producer).partitions
            return {one: ErrorCode.NONE if one in has else ErrorCode.TRANSACTION_ABORTABLE for one in partitions}

    def end(
        self, transactional_id: str, producer: ProducerIdAndEpoch, client_version: int, *, is_committed: bool
    ) -> ProducerIdAndEpoch:
        """The producer commits or aborts; as whom it goes on. Raises TransactionError."""
        with self._lock:
            self._check()
            known = self._states.of(transactional_id)
            bumps = client_version >= BUMPS_EPOCHS_SINCE
            answers = _ends_v2(known, producer) if bumps else _ends_v1(known, producer)
            answer = answers[known.state][0 if is_committed else 1]
            if answer is ErrorCode.NONE:
                return ProducerIdAndEpoch(known.producer_id, known.producer_epoch)
            if answer is not None:
                raise TransactionError(answer)
            next_id = self._id_after(known) if bumps else NO_PRODUCER_ID
            now_ms = self.clock.now_ms()
            prepared = known.prepared(
                is_committed=is_committed, client_version=client_version, next_producer_id=next_id, now_ms=now_ms
            )
            self._states.put(prepared)
            self._ending.add(transactional_id)
        self._finish(prepared)
        ended = prepared.completed(self.clock.now_ms())
        return ProducerIdAndEpoch(ended.producer_id, ended.producer_epoch)

    def all(self) -> tuple[TransactionMetadata, ...]:
        """Every transactional id. Raises TransactionError if it has stopped."""
        with self._lock:
            if not self._is_active:
                raise TransactionError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return tuple(self._states.transactions.values())

    def find(self, transactional_id: str) -> TransactionMetadata:
        """A transactional id. Raises TransactionError."""
        with self._lock:
            self._check()
            if not transactional_id:
                raise TransactionError(ErrorCode.INVALID_REQUEST)
            found = self._states.transactions.get(transactional_id)
            if found is None:
                raise TransactionError(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
            return found

    # What they have in common

    def _check(self) -> None:
        if not self._is_active:
            raise TransactionError(ErrorCode.COORDINATOR_NOT_AVAILABLE)

    def _of(self, transactional_id: str, producer: ProducerIdAndEpoch) -> TransactionMetadata:
        """The transactional id, if the producer has it and no markers are missing."""
        self._check()
        known = self._states.of(transactional_id)
        if known.state in PREPARED and producer == (known.next_producer_id, 0):
            raise TransactionError(ErrorCode.CONCURRENT_TRANSACTIONS)
        if known.producer_id != producer.producer_id:
            raise TransactionError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if known.producer_epoch != producer.epoch:
            raise TransactionError(ErrorCode.PRODUCER_FENCED)
        if known.state in PREPARED:
            raise TransactionError(ErrorCode.CONCURRENT_TRANSACTIONS)
        return known

    def _next_id(self) -> int:
        try:
            return self.producer_ids.next_id()
        except LogError as e:
            self.report(f"no producer id can be given: {e}")
            raise TransactionError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS) from e  # clients ask again

    def _begun(
        self, known: TransactionMetadata, timeout_ms: int, expected: ProducerIdAndEpoch | None, now_ms: int
    ) -> TransactionMetadata:
        epoch = None if expected is None else expected.epoch
        if is_exhausted(known.producer_epoch) and epoch in (None, known.producer_epoch):
            return known.next_id(self._next_id(), timeout_ms, now_ms, is_expected=expected is not None)
        return known.next_epoch(timeout_ms, epoch, now_ms)

    def _id_after(self, known: TransactionMetadata) -> int:
        """The id that the producer goes on with when its transaction has ended with a new epoch, if it has no more of these."""
        return self._next_id() if is_exhausted(known.producer_epoch) else NO_PRODUCER_ID

    # The end of transactions

    def _fenced(self, ongoing: TransactionMetadata) -> TransactionMetadata:
        """An open transaction that is aborted without its producer, before its markers, which are written without the lock."""
        prepared = ongoing.fenced(self._id_after(ongoing), self.clock.now_ms())
        self._states.put(prepared)
        self._ending.add(prepared.transactional_id)
        return prepared

    def _finish(self, prepared: TransactionMetadata) -> None:
        """Writes the markers, without the lock, and ends the transaction, now or as soon as all partitions have them."""
        lacking = None
        try:
            lacking = self._mark(prepared)
        finally:
            with self._lock:
                self._ending.remove(prepared.transactional_id)
                self._has_ended.notify_all()
                self._end_or_retry(prepared, lacking)

    def _end_or_retry(self, prepared: TransactionMetadata, lacking: list[TopicPartition] | None) -> None:
        if not self._end(prepared, lacking):
            self._timers.schedule("markers", RETRY_MS, self._retry)

    def _end(self, prepared: TransactionMetadata, lacking: list[TopicPartition] | None) -> bool:
        """Keeps which partitions lack their markers, or that the transaction has ended; whether it has."""
        if lacking is None:
            return False
        self._states.transactions[prepared.transactional_id] = left = prepared.lacks(lacking)
        if lacking:
            return False
        try:
            self._states.put(left.completed(self.clock.now_ms()))
        except TransactionError:
            return False  # it was said why
        return True

    def _mark(self, prepared: TransactionMetadata) -> list[TopicPartition] | None:
        """Writes the markers that are missing; the partitions that lack theirs then, None if that is not known."""
        try:
            return self._write_markers(prepared)
        except LogError as e:
            self.report(f"the markers of a transaction cannot be written: {e}")
            return None

    def _write_markers(self, prepared: TransactionMetadata) -> list[TopicPartition]:
        """The partitions that lack their marker then. One that was deleted, or has seen a later epoch, lacks none."""
        epoch = self.log.epoch(prepared.transactional_id)
        marker = Marker(
            prepared.producer_id,
            prepared.producer_epoch,
            epoch,
            prepared.state is PREPARE_COMMIT,
            prepared.client_version,
        )
        return [one for one in sorted(prepared.partitions) if self.markers.write(one, marker) not in _MARKED]

    def _retry(self) -> None:
        left = [one for one in self._states.prepared() if one.transactional_id not in self._ending]
        self._ending.update(one.transactional_id for one in left)
        self._to_end += left

    def _abort_timed_out(self, *, first: bool = False) -> None:
        self._timers.schedule("abort", self.config.abort_interval_ms, self._abort_timed_out)
        left = [] if first else [one.transactional_id for one in self._states.timed_out() if not self._aborts(one)]
        if left:  # the next time will do
            named = ", ".join(left[:NAMED_MAX]) + (", …" if len(left) > NAMED_MAX else "")
            self.report(f"{len(left)} transactions whose time is up cannot be aborted, those of {named}")

    def _aborts(self, ongoing: TransactionMetadata) -> bool:
        """Has an open transaction end soon; False if its log refuses that. Others may have other logs."""
        try:
            self._to_end.append(self._fenced(ongoing))
        except TransactionError:
            return False  # it was said why
        return True

    def _expire(self, *, first: bool = False) -> None:
        self._timers.schedule("expiry", self.config.remove_interval_ms, self._expire)
        if not first:
            self._states.expire()


def _may_go_on(known: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether a producer that says who it is may have the id; its epoch is looked at later."""
    asked_again = expected.producer_id == known.previous_producer_id and is_exhausted(expected.epoch)
    return known.producer_epoch == NO_PRODUCER_EPOCH or expected.producer_id == known.producer_id or asked_again


def _ends_v1(known: TransactionMetadata, producer: ProducerIdAndEpoch) -> Ends:
    if known.producer_id != producer.producer_id:
        raise TransactionError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if known.producer_epoch != producer.epoch:
        raise TransactionError(ErrorCode.PRODUCER_FENCED)
    return ON_END_V1


def _ends_v2(known: TransactionMetadata, producer: ProducerIdAndEpoch) -> Ends:
    if known.state in PREPARED and producer == (known.next_producer_id, 0):
        return ON_END_V2
    has_new_id = (
        known.previous_producer_id == producer.producer_id and producer.epoch == EPOCH_MAX - 1 and known.producer_epoch == 0
    )
    if known.producer_id != producer.producer_id and not has_new_id:
        raise TransactionError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if has_new_id or known.producer_epoch == producer.epoch + 1:
        return ON_END_AGAIN_V2
    if known.producer_epoch != producer.epoch:
        raise TransactionError(ErrorCode.PRODUCER_FENCED)
    return ON_END_V2
