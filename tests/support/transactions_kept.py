"""A transaction coordinator whose log and markers are in memory, or fail; and its requests in one line each."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from archive_fakes import SleptClock

from local_log.errors import Unreadable
from local_log.formats.filenames import PRODUCER_IDS, TopicPartition
from tiering.endpoint.coordinator.records import Record
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.transactions.config import TransactionConfig
from tiering.endpoint.transactions.errors import TransactionError
from tiering.endpoint.transactions.producer_id_manager import ProducerIdManager
from tiering.endpoint.transactions.records import read_metadata, read_transactional_id, transaction_tombstone
from tiering.endpoint.transactions.transaction_coordinator import ProducerIdAndEpoch, TransactionCoordinator
from tiering.endpoint.transactions.transaction_log import LoadedTransaction, Marker
from tiering.endpoint.transactions.transaction_metadata import TransactionMetadata

ORDERS, PAYMENTS = TopicPartition("orders", 0), TopicPartition("payments", 1)
OWN_ID = "shop"
V1, V2 = 0, 2
"""The transaction versions of clients: without and with a new epoch at each end."""


class MemoryLog:
    """What was appended, in order; `is_broken` refuses more, as does `left` once it is 0."""

    def __init__(self) -> None:
        self.kept: list[Record] = []
        self.is_broken = False
        self.left = -1

    def append(self, transactional_id: str, record: Record, now_ms: int) -> None:
        if self.is_broken or self.left == 0:
            raise Unreadable("the disk is gone")
        self.left -= 1
        self.kept.append(record)

    def forget(self, transactional_ids: Iterable[str], now_ms: int) -> Iterator[Sequence[str]]:
        for one in transactional_ids:
            self.append(one, transaction_tombstone(one), now_ms)
            yield [one]

    def load(self) -> Iterator[LoadedTransaction]:
        for record in self.kept:
            own_id = read_transactional_id(record.key)
            assert own_id is not None
            yield own_id, None if record.value is None else read_metadata(own_id, record.value)

    def epoch(self, transactional_id: str) -> int:
        return 3


class MemoryMarkers:
    """The markers by partition, in order; `refuses` has what some partitions answer."""

    def __init__(self) -> None:
        self.written: dict[TopicPartition, list[Marker]] = {}
        self.refuses: dict[TopicPartition, ErrorCode] = {}

    def write(self, partition: TopicPartition, marker: Marker) -> ErrorCode:
        code = self.refuses.get(partition, ErrorCode.NONE)
        if not code:
            self.written.setdefault(partition, []).append(marker)
        return code


class MemoryFiles:
    """Small files of one directory."""

    def __init__(self) -> None:
        self.offline: tuple[Any, ...] = ()
        self.files: dict[str, bytes] = {}
        self.is_broken = False

    def read_files(self, name: str) -> dict[str, bytes]:
        return {f"/a/{name}": self.files[name]} if name in self.files else {}

    def write_files(self, name: str, data: bytes) -> None:
        if self.is_broken:
            raise Unreadable("the disk is gone")
        self.files[name] = data

    @property
    def next_id(self) -> bytes:
        return self.files[PRODUCER_IDS]


class Transactions:
    """A coordinator, its clock, log and markers; `said` is what it reported. Requests give an error code where they fail."""

    def __init__(self, **config: int) -> None:
        self.clock = SleptClock()
        self.said: list[str] = []
        self.log, self.markers, self.files = MemoryLog(), MemoryMarkers(), MemoryFiles()
        self.config = TransactionConfig(**config)
        self.coordinator = self.started()

    def started(self) -> TransactionCoordinator:
        """Another one, with what the log has."""
        ids = ProducerIdManager.of(self.files, ())
        found = TransactionCoordinator(self.config, self.log, self.markers, ids, self.clock, self.said.append)
        found.load()
        self.coordinator = found
        return found

    def later(self, ms: int) -> None:
        """So many ms later, what is due is done."""
        self.clock.now += ms
        while self.coordinator.is_due():
            self.coordinator.tick()

    def of(self, own_id: str = OWN_ID) -> TransactionMetadata:
        return self.coordinator.find(own_id)

    def init(self, own_id: str = OWN_ID, expected: tuple[int, int] | None = None, timeout_ms: int = 60_000) -> Any:
        """(producer id, epoch)."""
        before = None if expected is None else ProducerIdAndEpoch(*expected)
        return answer(lambda: tuple(self.coordinator.init_producer_id(own_id, timeout_ms, before)))

    def add(self, producer: tuple[int, int], *partitions: TopicPartition, own_id: str = OWN_ID, version: int = V1) -> Any:
        partitions = partitions or (ORDERS,)
        return answer(lambda: self.coordinator.add_partitions(own_id, ProducerIdAndEpoch(*producer), partitions, version))

    def verify(self, producer: tuple[int, int], *partitions: TopicPartition, own_id: str = OWN_ID) -> Any:
        return answer(lambda: self.coordinator.verify(own_id, ProducerIdAndEpoch(*producer), partitions or (ORDERS,)))

    def end(self, producer: tuple[int, int], *, commit: bool, own_id: str = OWN_ID, version: int = V1) -> Any:
        """(producer id, epoch), as whom the producer goes on."""
        asked = ProducerIdAndEpoch(*producer)
        return answer(lambda: tuple(self.coordinator.end(own_id, asked, version, is_committed=commit)))

    def set(self, metadata: TransactionMetadata) -> None:
        """As if the records had brought it to this state."""
        self.coordinator._states.put(metadata)

    def outcomes(self, partition: TopicPartition = ORDERS) -> list[tuple[int, int, bool]]:
        """Producer id, epoch and whether it commits, of each marker of a partition."""
        return [(m.producer_id, m.producer_epoch, m.is_committed) for m in self.markers.written.get(partition, ())]


def answer(ask: Callable[[], Any]) -> Any:
    """What a request gives, or its error code."""
    try:
        return ask()
    except TransactionError as e:
        return e.code


def states(found: Iterable[TransactionMetadata]) -> dict[str, str]:
    """By transactional id."""
    return {one.transactional_id: one.state.title for one in found}
