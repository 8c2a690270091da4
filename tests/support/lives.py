"""A log that lives: what it is given, what it makes sure, and what a crash at any moment may leave of it."""

from dataclasses import dataclass, field

from lived_logs import NOW, Written, batch, checkpoint, checkpoint_recovery_point, marker, start, stop
from simulated_disk import SimulatedDisk
from sound_logs import batches_of, check_sound, summary

from local_log.engine.manager.retention import delete_old_segments
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT

Crash = tuple[float, int]
"""How much of what is not synced is lost, and the seed that says what."""

KILLED: Crash = (0.0, 0)
ALL_LOST: Crash = (1.0, 0)


def crashed(disk: SimulatedDisk, crash: Crash) -> SimulatedDisk:
    """What is found after a crash now; each call of the disk's has another one."""
    lost, seed = crash
    return disk.after_power_failure(lost, seed * 10_000 + len(disk.calls))


@dataclass
class Life:
    """A log that lives on `disk`, with what a crash at this moment may leave of it.

    `batches` is what it has been given, `taken` what retention took of it. While it is cut, `before` is what it was before;
    `restarts`: all of that may be gone; `retains`: some of its beginning may be gone.
    `replicates`: the high watermark is at the log's end after every append.
    """

    disk: SimulatedDisk
    batches: list[Written] = field(default_factory=list)
    before: list[Written] | None = None
    taken: list[Written] = field(default_factory=list)
    restarts: bool = False
    retains: bool = False
    flushed: int = 0
    start_max: int = 0
    epoch: int = 0
    sequences: dict[int, int] = field(default_factory=dict)
    replicates: bool = True
    is_keyed: bool = False
    step: str = ""

    # What a broker does

    def open(self) -> None:
        self.step = "open"
        self.log = start(self.disk)
        if self.replicates:
            self.log.update_high_watermark(self.log.log_end_offset)

    def stop(self) -> None:
        self.step = "stop"
        stop(self.log)
        self.flushed = self.log.log_end_offset

    def reopen(self) -> None:
        before = summary(self.log)
        self.stop()
        self.open()
        if self.log.log_start_offset < self.log.log_end_offset:  # else Kafka forgets its producers with its records
            assert summary(self.log) == before

    def flush(self) -> None:
        self.step = "flush"
        self.log.flush()
        self.flushed = self.log.log_end_offset
        self.checkpoint()

    def checkpoint(self) -> None:
        self.step = "checkpoint"
        checkpoint_recovery_point(self.log)

    def delete_records(self, offset: int) -> None:
        self.step = "delete records"
        self.start_max = max(self.start_max, offset)
        self.log.maybe_increment_log_start_offset(offset)
        checkpoint(self.disk, LOG_START_OFFSET_CHECKPOINT, offset)

    def retain(self) -> None:
        """Lets the segments go that lie below the log's start."""
        self.step = "retain"
        bases = [base for base in self.log.local.segments.base_offsets if base <= self.log.log_start_offset]
        first = max(bases, default=0)
        self.before, self.retains = self.batches, True
        self.taken += [b for b in self.batches if b.end <= first]
        self.batches = [b for b in self.batches if b.end > first]
        assert delete_old_segments(self.log, NOW) == max(0, len(bases) - 1)
        self.before, self.retains = None, False

    def truncate(self, offset: int) -> None:
        self.step = f"truncate to {offset}"
        self.before = self.batches
        self.batches = [b for b in self.batches if b.end <= offset]
        self.flushed = min(self.flushed, offset)
        self.log.truncate_to(offset)
        self.before = None
        checkpoint_recovery_point(self.log)
        checkpoint(self.disk, LOG_START_OFFSET_CHECKPOINT, self.log.log_start_offset)

    def restart(self, offset: int) -> None:
        self.step = f"restart at {offset}"
        self.before, self.restarts = self.batches, True
        self.batches = []
        self.flushed = offset
        self.start_max = max(self.start_max, offset)
        self.log.truncate_fully_and_start_at(offset)
        self.before, self.restarts, self.taken = None, False, []
        checkpoint_recovery_point(self.log)
        checkpoint(self.disk, LOG_START_OFFSET_CHECKPOINT, offset)

    # What clients do

    def append(self, *, records: int = 1, size: int, producer: int = -1, in_transaction: bool = False) -> None:
        fields = {}
        if producer >= 0:
            first = self.sequences.get(producer, 0)
            self.sequences[producer] = first + records
            fields = {"producer_id": producer, "producer_epoch": 0, "base_sequence": first, "attributes": 0x10 * in_transaction}
        time = NOW - len(self.disk.calls) % 7 * 1_000
        made = batch(self.log.log_end_offset, records, epoch=self.epoch, size=size, time=time, is_keyed=self.is_keyed, **fields)
        self._append(made)

    def open_transaction(self, producer: int, batches: int = 1) -> None:
        for _ in range(batches):
            self.append(size=800, producer=producer, in_transaction=True)

    def end_transaction(self, producer: int, *, commits: bool) -> None:
        end = marker(self.log.log_end_offset, commits=commits, epoch=self.epoch, producer_id=producer, producer_epoch=0)
        self._append(end)

    def transaction(self, producer: int, *, batches: int, commits: bool) -> None:
        self.open_transaction(producer, batches)
        self.end_transaction(producer, commits=commits)

    def _append(self, written: Written) -> None:
        self.step = f"append {written.header.base_offset}"
        self.batches = [*self.batches, written]
        self.log.append_as_follower(written.data, self.epoch)
        if self.replicates:
            self.log.update_high_watermark(self.log.log_end_offset)

    # What has to hold

    def check_survivor(self, disk: SimulatedDisk) -> UnifiedLog:
        """The log as it is found after a crash now."""
        log = start(disk)
        found = [b.data for b in check_sound(log, self.start_max, self.ever())]
        lineages = [self.batches]
        if self.before is not None:
            gone = len(self.before) - len(self.batches) if self.retains else 0
            lineages += [self.before[at:] for at in range(gone + 1)]
        assert found in [[b.data for b in lineage[: len(found)]] for lineage in lineages], "other batches than were appended"
        # An empty log whose only segment was about to be replaced begins at 0 again.
        assert self.restarts or log.log_end_offset >= self.flushed or not self.batches
        assert log.log_start_offset <= max(self.start_max, log.local.segments.first.base_offset)
        return log

    def ever(self) -> list[Written]:
        """Every batch that the log has had, and maybe has still."""
        return [*self.taken, *(self.batches if self.before is None or self.retains else self.before)]

    def survive(self, crash: Crash) -> "Life":
        """The life after a crash now."""
        disk = crashed(self.disk, crash)
        log = self.check_survivor(disk)
        after = Life(disk, batches_of(log), flushed=log.log_end_offset, start_max=self.start_max, epoch=self.epoch)
        after.taken = [b for b in self.ever() if b.end <= log.local.segments.first.base_offset]
        after.sequences, after.replicates, after.log = self.sequences, self.replicates, log
        return after

    def check_usable(self, log: UnifiedLog) -> None:
        """The log takes what a producer sends next, and gives it back at its next start."""
        log.update_high_watermark(log.log_end_offset)
        last = batch(log.log_end_offset, 2, epoch=9, size=500, producer_id=77, producer_epoch=0, base_sequence=0)
        log.append_as_follower(last.data, 9)
        log.flush()
        assert check_sound(log, self.start_max, self.ever())[-1].data == last.data
        before = summary(log)
        stop(log)
        left = log.folder.disk.after_power_failure()  # type: ignore[attr-defined]
        assert summary(start(left)) == before
