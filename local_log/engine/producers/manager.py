"""All producers of a log, their open transactions, and the snapshots of both (ProducerStateManager)."""

from collections.abc import Callable, Iterable

from local_log.disk import WritableDisk
from local_log.engine.producers.state import CompletedTxn, Origin, Producer, ProducerUpdate, Verification, producer_of
from local_log.errors import Corrupt, Invalid, NotFound
from local_log.formats.filenames import DELETED, SNAPSHOT, offset_file, offset_of_file
from local_log.formats.producer_snapshot import read_producer_snapshot, write_producer_snapshot

LATE_TRANSACTION_BUFFER_MS = 5 * 60 * 1000


class ProducerStateManager:
    """The producers' state at `map_end_offset`.

    `ongoing` are the open transactions with their producers, by first offset; `unreplicated` are the ended ones whose marker is
    not yet below the high watermark: the marker's offset by first offset.
    """

    def __init__(
        self,
        disk: WritableDisk,
        folder: str,
        now_ms: Callable[[], int],
        *,
        expiration_ms: int = 86_400_000,
        transaction_timeout_max_ms: int = 300_000,
        verifies_transactions: bool = False,
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._now_ms = now_ms
        self.expiration_ms = expiration_ms
        self.transaction_timeout_max_ms = transaction_timeout_max_ms
        self.verifies_transactions = verifies_transactions
        self.producers: dict[int, Producer] = {}
        self.verifications: dict[int, Verification] = {}
        self.ongoing: dict[int, int] = {}
        self.unreplicated: dict[int, int] = {}
        self.map_end_offset = 0
        self._snapshot_offset = 0
        self._snapshots = self._listed()

    # Queries

    @property
    def is_empty(self) -> bool:
        """Whether no producer is known."""
        return not self.producers and not self.unreplicated

    @property
    def first_undecided_offset(self) -> int | None:
        """The first offset of the earliest open transaction."""
        return next(iter(self.ongoing), None)

    @property
    def first_unstable_offset(self) -> int | None:
        """The first offset of the earliest transaction that is open or whose marker is not replicated."""
        first = self.first_undecided_offset
        if not self.unreplicated:
            return first
        unreplicated = min(self.unreplicated)
        return unreplicated if first is None else min(first, unreplicated)

    @property
    def snapshot_offsets(self) -> tuple[int, ...]:
        """The offsets of the existing snapshots, sorted."""
        return tuple(sorted(self._snapshots))

    def has_late_transaction(self) -> bool:
        """Whether the earliest open transaction is idle for longer than the greatest transaction timeout plus some minutes."""
        first = self.first_undecided_offset
        producer = None if first is None else self.producers.get(self.ongoing[first])
        if producer is None or producer.last_timestamp <= 0:
            return False
        return self._now_ms() - producer.last_timestamp > self.transaction_timeout_max_ms + LATE_TRANSACTION_BUFFER_MS

    def snapshot_file(self, offset: int) -> str | None:
        """The path of the snapshot at an offset."""
        return self._snapshots.get(offset)

    def last_stable_offset(self, completed: CompletedTxn) -> int:
        """The last stable offset after that transaction ends: the first offset of the next open transaction."""
        others = (first for first, producer_id in self.ongoing.items() if producer_id != completed.producer_id)
        return next(others, completed.last_offset + 1)

    # Commands

    def prepare(self, producer_id: int, origin: Origin) -> ProducerUpdate:
        """An update of one producer, to pass to `update` once its batches are written."""
        known = self.producers.get(producer_id)
        return ProducerUpdate(known or Producer(producer_id), origin, self.verifications.get(producer_id))

    def update(self, update: ProducerUpdate) -> None:
        """Applies the changes that an append makes to a producer."""
        producer_id = update.updated.producer_id
        known = self.producers.get(producer_id)
        if known is None:
            self.producers[producer_id] = update.updated
        else:
            known.take_over(update.updated)
        for first_offset in update.started:
            self._open(first_offset, producer_id)

    def complete(self, txn: CompletedTxn) -> None:
        """Ends a transaction. It counts as unreplicated until the high watermark is above its marker."""
        if self.ongoing.pop(txn.first_offset, None) is None:
            raise Invalid(f"{self._folder}: {txn} ends a transaction that is not open")
        self.unreplicated[txn.first_offset] = txn.last_offset

    def on_high_watermark(self, offset: int) -> None:
        """Removes the ended transactions whose marker is below the high watermark: they are replicated."""
        if self.unreplicated:
            self.unreplicated = {first: last for first, last in self.unreplicated.items() if last >= offset}

    def on_log_start_offset(self, offset: int) -> None:
        """Drops the state below a new log start offset."""
        self.on_high_watermark(offset)
        self.map_end_offset = max(self.map_end_offset, offset)
        self._snapshot_offset = max(self._snapshots, default=offset)

    def verification(self, producer_id: int, sequence: int, epoch: int, supports_epoch_bump: bool) -> Verification:
        """The verification of a transaction whose first batch waits for the coordinator's confirmation; creates it if needed."""
        made = Verification(self._now_ms(), sequence, epoch, supports_epoch_bump)
        entry = self.verifications.setdefault(producer_id, made)
        entry.lower(sequence, epoch)
        return entry

    def verified(self, producer_id: int, epoch: int, *, is_marker: bool) -> None:
        """Removes a producer's verification after its batch, unless the marker's epoch shows that the next transaction waits."""
        waits = self.verifications.get(producer_id)
        if waits is not None and not (waits.supports_epoch_bump and is_marker and epoch == waits.epoch):
            del self.verifications[producer_id]

    def expire(self) -> None:
        """Removes producers and verifications that have expired."""
        now = self._now_ms()
        self.producers = {p: entry for p, entry in self.producers.items() if not self._is_expired(entry, now)}
        self.verifications = {p: v for p, v in self.verifications.items() if now - v.timestamp < self.expiration_ms}

    # Snapshots

    def take_snapshot(self, *, sync: bool = True) -> str | None:
        """Writes a snapshot, unless one was written at the current offset; returns its path."""
        if self.map_end_offset <= self._snapshot_offset:
            return None
        file = f"{self._folder}/{offset_file(self.map_end_offset, SNAPSHOT)}"
        self._disk.write(file, 0, write_producer_snapshot(p.entry() for p in self.producers.values()))
        if sync:
            self._disk.sync(file)
        self._snapshots[self.map_end_offset] = file
        self._snapshot_offset = self.map_end_offset
        return file

    def truncate_and_reload(self, log_start_offset: int, log_end_offset: int) -> None:
        """Deletes snapshots outside of the log and, unless the state is that of the log's end, loads the newest valid one."""
        for offset in self.snapshot_offsets:
            if offset > log_end_offset or offset <= log_start_offset:
                self._delete_snapshot(offset)
        if log_end_offset == self.map_end_offset:
            self.on_log_start_offset(log_start_offset)
            return
        self._clear()
        self._load(log_start_offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Removes all state, snapshots included; the state is that at `offset`."""
        self._clear()
        for snapshot in self.snapshot_offsets:
            self._delete_snapshot(snapshot)
        self._snapshot_offset = 0
        self.map_end_offset = offset

    def truncate_fully_and_list_snapshots(self) -> None:
        """Removes all state and lists the snapshots in the folder, after others were put there."""
        self.truncate_fully_and_start_at(0)
        self._snapshots = self._listed()

    def remove_stray_snapshots(self, base_offsets: Iterable[int]) -> None:
        """Deletes snapshots that are not at a segment's base offset; the newest is kept if it is after the last segment's."""
        starts = frozenset(base_offsets)
        self._snapshots = self._listed()
        strays = [offset for offset in self.snapshot_offsets if offset not in starts]
        for offset in strays[:-1]:
            self._delete_snapshot(offset)
        if strays and starts and strays[-1] < max(starts):
            self._delete_snapshot(strays[-1])

    def delete_snapshots_before(self, offset: int) -> None:
        """Deletes the snapshots at offsets below `offset`."""
        for snapshot in self.snapshot_offsets:
            if snapshot < offset:
                self._delete_snapshot(snapshot)

    def mark_snapshot_deleted(self, offset: int) -> str | None:
        """Renames a snapshot with the suffix .deleted; returns its new path, None if there is no snapshot."""
        file = self._snapshots.pop(offset, None)
        if file is None:
            return None
        try:
            self._disk.rename(file, file + DELETED)
        except NotFound:
            return None
        return file + DELETED

    def moved_to(self, folder: str) -> None:
        """Uses the new path of a renamed log folder."""
        self._folder = folder
        self._snapshots = {offset: f"{folder}/{file.rpartition('/')[2]}" for offset, file in self._snapshots.items()}

    def _load(self, log_start_offset: int) -> None:
        now = self._now_ms()
        for offset in reversed(self.snapshot_offsets):
            try:
                entries = read_producer_snapshot(self._disk.read(self._snapshots[offset]))
            except Corrupt:
                self._delete_snapshot(offset)
                continue
            for producer in sorted(map(producer_of, entries), key=_in_transaction_since):
                if not self._is_expired(producer, now):
                    self.producers[producer.producer_id] = producer
                    if producer.txn_first_offset is not None:
                        self._open(producer.txn_first_offset, producer.producer_id)
            self._snapshot_offset = self.map_end_offset = offset
            return
        self._snapshot_offset = self.map_end_offset = log_start_offset

    def _open(self, first_offset: int, producer_id: int) -> None:
        # Batches come in offset order, so transactions are almost always added in the order of their first offsets.
        in_order = not self.ongoing or first_offset > next(reversed(self.ongoing))
        self.ongoing[first_offset] = producer_id
        if not in_order:
            self.ongoing = dict(sorted(self.ongoing.items()))

    def _is_expired(self, producer: Producer, now_ms: int) -> bool:
        return producer.txn_first_offset is None and now_ms - producer.last_timestamp >= self.expiration_ms

    def _clear(self) -> None:
        self.producers = {}
        self.ongoing = {}
        self.unreplicated = {}

    def _listed(self) -> dict[int, str]:
        names = [n for n in self._disk.names(self._folder) if n.endswith(SNAPSHOT)]
        paths = ((name, f"{self._folder}/{name}") for name in names)
        return {offset_of_file(name): path for name, path in paths if self._disk.is_file(path)}

    def _delete_snapshot(self, offset: int) -> None:
        file = self._snapshots.pop(offset, None)
        if file is not None:
            self._disk.delete(file)


def _in_transaction_since(producer: Producer) -> int:
    return -1 if producer.txn_first_offset is None else producer.txn_first_offset
