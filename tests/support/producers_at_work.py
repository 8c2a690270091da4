"""What producers do to a log, in one line each; the clock is moved by hand."""

from dataclasses import dataclass, field
from pathlib import Path

from small_logs import NOW, Clock

from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.producers.state import CompletedTxn, DataBatch, Marker, Origin, Producer, ProducerUpdate
from local_log.os_disk import OsWritableDisk

DAY_MS = 86_400_000
EXPIRATION_MS = DAY_MS
TIMEOUT_MAX_MS = 600_000


def data(
    sequence: int,
    offset: int,
    *,
    count: int = 1,
    epoch: int = 0,
    transactional: bool = False,
    timestamp: int = NOW,
    last_sequence: int | None = None,
) -> DataBatch:
    """A batch of `count` records."""
    last = sequence + count - 1 if last_sequence is None else last_sequence
    return DataBatch(epoch, sequence, last, offset, offset + count - 1, timestamp, transactional)


def mark(offset: int, *, epoch: int = 0, coordinator: int = 0, abort: bool = False, timestamp: int = NOW) -> Marker:
    """A transaction's end."""
    return Marker(epoch, coordinator, abort, offset, timestamp)


@dataclass
class Producers:
    """A folder's producers, and appends of one batch or marker each."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    state: ProducerStateManager = field(init=False)

    def __post_init__(self) -> None:
        self.reopen()

    def reopen(self) -> ProducerStateManager:
        """As after a start: nothing is known but the names of the snapshots."""
        self.state = ProducerStateManager(
            OsWritableDisk(),
            str(self.folder),
            self.clock,
            expiration_ms=EXPIRATION_MS,
            transaction_timeout_max_ms=TIMEOUT_MAX_MS,
        )
        return self.state

    def __getitem__(self, producer_id: int) -> Producer:
        return self.state.producers[producer_id]

    def prepare(self, producer: int = 1, origin: Origin = Origin.CLIENT) -> ProducerUpdate:
        """An update that is not told to the state yet."""
        return self.state.prepare(producer, origin)

    def write(
        self,
        sequence: int,
        offset: int,
        *,
        producer: int = 1,
        origin: Origin = Origin.CLIENT,
        count: int = 1,
        epoch: int = 0,
        transactional: bool = False,
        timestamp: int | None = None,
    ) -> None:
        """One batch of records."""
        timestamp = self.clock() if timestamp is None else timestamp
        update = self.prepare(producer, origin)
        update.append(data(sequence, offset, count=count, epoch=epoch, transactional=transactional, timestamp=timestamp))
        self.state.update(update)
        self.state.map_end_offset = offset + count

    def end(
        self,
        offset: int,
        *,
        producer: int = 1,
        epoch: int = 0,
        coordinator: int = 0,
        abort: bool = False,
        version: int = 0,
        origin: Origin = Origin.COORDINATOR,
    ) -> CompletedTxn | None:
        """One marker."""
        update = self.prepare(producer, origin)
        found = mark(offset, epoch=epoch, coordinator=coordinator, abort=abort, timestamp=self.clock())
        completed = update.end(found, version)
        self.state.update(update)
        if completed is not None:
            self.state.complete(completed)
        self.state.map_end_offset = offset + 1
        return completed

    @property
    def snapshots(self) -> list[int]:
        """The offsets of the snapshots that lie in the folder."""
        return sorted(int(file.stem) for file in self.folder.glob("*.snapshot"))
