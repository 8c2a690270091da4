"""The leader epochs of a log and their start offsets, in memory and in `leader-epoch-checkpoint` (LeaderEpochFileCache)."""

from local_log.disk import WritableDisk, replace_file
from local_log.errors import Invalid, NotFound, placed
from local_log.formats.checkpoints import EpochEntry, end_offset_for, epoch_of, read_epoch_lines, write_epochs
from local_log.formats.filenames import LEADER_EPOCH_CHECKPOINT


class LeaderEpochs:
    """A log's leader epochs, oldest first; epochs and their start offsets increase.

    A change replaces `entries`, which other threads may be reading.
    """

    def __init__(self, disk: WritableDisk, folder: str) -> None:
        """Reads the checkpoint. An entry that a later one contradicts is dropped. Raises Corrupt."""
        self._disk = disk
        self._folder = folder
        self._file = f"{folder}/{LEADER_EPOCH_CHECKPOINT}"
        self.entries: list[EpochEntry] = []
        try:
            with placed(self._file):
                for entry in read_epoch_lines(disk.read(self._file)):
                    self._assign(entry)
        except NotFound:
            disk.write(self._file, 0, b"")

    @property
    def latest_epoch(self) -> int | None:
        """The current epoch, that of the next append; None before the first."""
        entries = self.entries
        return entries[-1].epoch if entries else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Records that `epoch` starts at `start_offset`. Drops the entries whose epoch or start offset is not below."""
        entries = self.entries
        if entries and entries[-1].epoch == epoch and start_offset >= entries[-1].start_offset:
            return
        if self._assign(EpochEntry(epoch, start_offset)):
            self._write()

    def _assign(self, entry: EpochEntry) -> bool:
        if entry.epoch < 0 or entry.start_offset < 0:
            raise Invalid(f"{self._folder}: leader epoch {entry.epoch} from offset {entry.start_offset} on; neither is below 0")
        if self.entries and entry.epoch == self.entries[-1].epoch and entry.start_offset >= self.entries[-1].start_offset:
            return False
        kept = len(self.entries)
        while kept and (self.entries[kept - 1].epoch >= entry.epoch or self.entries[kept - 1].start_offset >= entry.start_offset):
            kept -= 1
        self.entries = [*self.entries[:kept], entry]
        return True

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEntry | None:
        """See `checkpoints.end_offset_for`."""
        return end_offset_for(self.entries, epoch, log_end_offset)

    def epoch_for(self, offset: int) -> int | None:
        """The epoch of the record at `offset`, also of a future one; None before the first epoch."""
        return epoch_of(self.entries, offset)

    def entry(self, epoch: int) -> EpochEntry | None:
        """An epoch's start offset; None for an epoch without records."""
        return next((e for e in self.entries if e.epoch == epoch), None)

    def before(self, epoch: int) -> EpochEntry | None:
        """The greatest epoch below `epoch`."""
        return next((e for e in reversed(self.entries) if e.epoch < epoch), None)

    def after(self, epoch: int) -> EpochEntry | None:
        """The least epoch above `epoch`."""
        return next((e for e in self.entries if e.epoch > epoch), None)

    def truncate_from_end(self, end_offset: int) -> None:
        """Drops the epochs that start at or after `end_offset`."""
        kept = [e for e in self.entries if end_offset < 0 or e.start_offset < end_offset]
        if len(kept) < len(self.entries):
            self.entries = kept
            self._write()

    def truncate_from_start(self, start_offset: int) -> None:
        """Drops the epochs that end at or before `start_offset`; the epoch that contains it starts there afterwards."""
        dropped = [e for e in self.entries if e.start_offset <= start_offset]
        if dropped:
            self.entries = [EpochEntry(dropped[-1].epoch, start_offset), *self.entries[len(dropped) :]]
            self._write()

    def clear(self) -> None:
        """Drops all epochs, for an append of magic 0 or 1, which has none."""
        self.entries = []
        self._write()

    def moved_to(self, folder: str) -> None:
        """Uses the new path of a renamed log folder."""
        self._folder = folder
        self._file = f"{folder}/{LEADER_EPOCH_CHECKPOINT}"

    def _write(self) -> None:
        replace_file(self._disk, self._file, write_epochs(self.entries))
