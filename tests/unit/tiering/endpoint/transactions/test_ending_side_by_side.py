"""Transactions of several transactional ids that end at the same time: none waits for another's markers."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from transacting_endpoint import OWN_ID, TransactingEndpoint

from local_log.formats.filenames import TopicPartition
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.transaction_coordinator import ProducerIdAndEpoch
from tiering.endpoint.transactions.transaction_log import Marker, WritesMarkers

WAIT_S = 10


@dataclass
class Slow:
    """Writes markers; the first one waits."""

    inner: WritesMarkers
    begins: threading.Event = field(default_factory=threading.Event)
    may_go_on: threading.Event = field(default_factory=threading.Event)
    written: list[int] = field(default_factory=list)

    def write(self, partition: TopicPartition, marker: Marker) -> ErrorCode:
        self.written.append(marker.producer_id)
        if len(self.written) == 1:
            self.begins.set()
            self.may_go_on.wait(WAIT_S)
        return self.inner.write(partition, marker)


@dataclass
class Ending:
    """A producer whose transaction is asked to commit, by a thread that waits for its marker."""

    at: TransactingEndpoint
    producer: tuple[int, int]
    markers: Slow
    thread: threading.Thread
    told: list[ProducerIdAndEpoch]

    def goes_on(self) -> None:
        self.markers.may_go_on.set()
        self.thread.join(WAIT_S)


@pytest.fixture
def ending() -> Iterator[Ending]:
    at, told = TransactingEndpoint(more_topics=1), list[ProducerIdAndEpoch]()
    producer, coordinator = at.init(), at.context.transactions
    at.write(producer, 0)
    markers = coordinator.markers = Slow(coordinator.markers)

    def end() -> None:
        told.append(coordinator.end(OWN_ID, ProducerIdAndEpoch(*producer), 2, is_committed=True))

    thread = threading.Thread(target=end)
    thread.start()
    assert markers.begins.wait(WAIT_S)
    found = Ending(at, producer, markers, thread, told)
    yield found
    found.goes_on()


def test_others_end_while_the_markers_of_one_are_written(ending: Ending) -> None:
    other = ending.at.init("other")
    ending.at.add(other, "more-0", own_id="other")
    assert ending.at.end(other, commit=True, own_id="other") == (other[0], other[1] + 1)
    assert ending.thread.is_alive()
    assert ending.at.seen() == []
    ending.goes_on()
    assert ending.told == [(ending.producer[0], ending.producer[1] + 1)]
    assert ending.at.seen() == ["0"]


@pytest.mark.parametrize("is_timed_out", [False, True])
def test_others_end_while_one_is_aborted_without_its_producer(is_timed_out: bool) -> None:
    at = TransactingEndpoint(more_topics=1)
    at.write(at.init(), 0)
    other, coordinator = at.init("other", timeout_ms=900_000), at.context.transactions
    at.add(other, "more-0", own_id="other")
    markers = coordinator.markers = Slow(coordinator.markers)
    at.clock.now += 120_000
    thread = threading.Thread(target=coordinator.tick if is_timed_out else at.init)
    thread.start()
    assert markers.begins.wait(WAIT_S)
    assert at.end(other, commit=True, own_id="other") == (other[0], other[1] + 1)
    assert thread.is_alive()
    assert at.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    markers.may_go_on.set()
    thread.join(WAIT_S)
    assert at.seen() == []
    assert isinstance(at.init(), tuple)


def test_nothing_is_done_with_a_transactional_id_while_its_markers_are_written(ending: Ending) -> None:
    at, producer, next_epoch = ending.at, ending.producer, (ending.producer[0], ending.producer[1] + 1)
    assert at.init() is ErrorCode.CONCURRENT_TRANSACTIONS
    assert at.add(next_epoch) == {"orders": ErrorCode.CONCURRENT_TRANSACTIONS}
    assert {at.end(one, commit=True) for one in (producer, next_epoch)} == {ErrorCode.CONCURRENT_TRANSACTIONS}
    at.clock.now += 3_600_000
    at.context.transactions.tick()
    assert ending.markers.written == [producer[0]]
    ending.goes_on()
    assert at.add(next_epoch) == {"orders": ErrorCode.NONE}


def test_a_coordinator_stops_when_the_markers_that_are_being_written_are_there(ending: Ending) -> None:
    stopping = threading.Thread(target=ending.at.context.transactions.stop)
    stopping.start()
    stopping.join(0.1)
    assert stopping.is_alive()
    ending.goes_on()
    stopping.join(WAIT_S)
    assert not stopping.is_alive()
    ending.at.restart()
    assert ending.at.seen() == ["0"]
    assert ending.at.write((ending.producer[0], ending.producer[1] + 1), 0) is ErrorCode.NONE
