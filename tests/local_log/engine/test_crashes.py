"""A log's life on a disk that crashes after every single call: what was flushed is there, and all that is there is sound."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from lived_logs import FOLDER, NOW, Written, batch, checkpoint, checkpoint_recovery_point, empty_disk, marker, start, stop
from simulated_disk import SimulatedDisk
from sound_logs import batches_of, check_sound, settled_files, summary

from local_log.engine.unified_log import UnifiedLog
from local_log.errors import LogError
from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT

KILLED, ALL_LOST = (0.0, 0), (1.0, 0)
CRASHES = [KILLED, ALL_LOST, (0.3, 1), (0.5, 2), (0.8, 3)]
"""How much of what is not synced is lost, and the seed that says what."""


@dataclass
class Life:
    """A log that lives on `disk`, with what a crash at this moment may leave of it.

    `batches` is what it has been given. While it is cut, `before` is what it was before; `restarts`: all of that may be gone.
    """

    disk: SimulatedDisk
    batches: list[Written] = field(default_factory=list)
    before: list[Written] | None = None
    restarts: bool = False
    flushed: int = 0
    base: int = 0
    start_max: int = 0
    epoch: int = 0
    sequences: dict[int, int] = field(default_factory=dict)
    step: str = ""

    def live(self) -> None:
        """A life that meets every way in which a log changes."""
        self.open()
        for i in range(6):
            self.append(records=1 + i % 3, size=700)
        self.flush()
        self.transaction(1, batches=3, commits=True)
        self.append(size=5_000)
        self.epoch = 1
        self.transaction(2, batches=2, commits=False)  # rolls in its course
        self.append(size=900, producer=3)
        self.checkpoint()
        self.append(size=1_100, producer=2)
        self.open_transaction(4)
        self.flush()
        self.log.roll()  # nothing is written that was not flushed
        self.append(size=9_000)
        self.append(size=600)
        self.end_transaction(4, commits=False)
        self.delete_records(5)
        self.epoch = 2
        self.append(size=4_000, producer=3)
        self.append(size=4_000, producer=3)
        self.flush()
        for _ in range(4):
            self.append(size=6_000, producer=2)
        self.truncate(self.log.log_end_offset - 4)  # several segments go
        self.epoch = 4
        self.append(size=2_000, producer=5)
        self.open_transaction(1)
        self.append(size=5_000)
        self.flush()
        self.reopen()
        self.append(size=3_000)
        self.end_transaction(1, commits=False)
        self.append(size=8_000, producer=5)
        self.truncate(self.log.log_end_offset - 1)
        self.append(size=7_000)
        self.log.roll()
        self.append(size=700, producer=5)
        self.restart(self.log.log_end_offset + 20)
        self.append(size=900)
        self.epoch = 5
        self.transaction(1, batches=2, commits=False)
        self.append(size=9_000)
        self.flush()
        self.append(size=900)
        self.stop()

    # What a broker does

    def open(self) -> None:
        self.step = "open"
        self.log = start(self.disk)
        self.log.update_high_watermark(self.log.log_end_offset)

    def stop(self) -> None:
        self.step = "stop"
        stop(self.log)
        self.flushed = self.log.log_end_offset

    def reopen(self) -> None:
        before = summary(self.log)
        self.stop()
        self.open()
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
        self.start_max = offset
        self.log.maybe_increment_log_start_offset(offset)
        checkpoint(self.disk, LOG_START_OFFSET_CHECKPOINT, offset)

    def truncate(self, offset: int) -> None:
        self.step = f"truncate to {offset}"
        self.before = self.batches
        self.batches = [b for b in self.batches if b.end <= offset]
        self.flushed = min(self.flushed, offset)
        self.log.truncate_to(offset)
        self.before = None
        checkpoint_recovery_point(self.log)

    def restart(self, offset: int) -> None:
        self.step = f"restart at {offset}"
        self.before, self.restarts = self.batches, True
        self.batches = []
        self.base = self.flushed = self.start_max = offset
        self.log.truncate_fully_and_start_at(offset)
        self.before, self.restarts = None, False
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
        self._append(batch(self.log.log_end_offset, records, epoch=self.epoch, size=size, time=time, **fields))

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
        self.log.update_high_watermark(self.log.log_end_offset)

    # What has to hold

    def check_survivor(self, disk: SimulatedDisk) -> UnifiedLog:
        """The log as it is found after a crash now."""
        log = start(disk)
        lineage = self.batches if self.before is None else self.before
        found = [b.data for b in batches_of(log)]
        at = [b.data for b in lineage].index(found[0]) if found and self.restarts else 0
        check_sound(log, lineage[:at])
        whole = [b.data for b in self.batches]
        if self.before is None:
            assert found == whole[: len(found)], "other batches than were appended"
            assert log.log_end_offset >= self.flushed
        else:
            old = [b.data for b in self.before]
            assert found == old[at : at + len(found)]
            assert self.restarts or log.log_end_offset >= self.flushed
        assert log.log_start_offset <= max(self.start_max, log.local.segments.first.base_offset)
        return log

    def check_usable(self, log: UnifiedLog) -> None:
        """The log takes what a producer sends next, and gives it back at its next start."""
        log.update_high_watermark(log.log_end_offset)
        last = batch(log.log_end_offset, 2, epoch=9, size=500, producer_id=77, producer_epoch=0, base_sequence=0)
        log.append_as_follower(last.data, 9)
        log.flush()
        assert check_sound(log)[-1].data == last.data
        before = summary(log)
        stop(log)
        left = log.folder.disk.after_power_failure()  # type: ignore[attr-defined]
        assert summary(start(left)) == before


def crashes_of(disk: SimulatedDisk, crash: tuple[float, int]) -> SimulatedDisk:
    lost, seed = crash
    return disk.after_power_failure(lost, seed * 10_000 + len(disk.calls))


def lived_through(check: Callable[[Life], None], disk: SimulatedDisk | None = None) -> int:
    """Lives a life, with a check after every call; how many there were."""
    life = Life(disk or empty_disk())

    def after_call() -> None:
        try:
            check(life)
        except (AssertionError, LogError) as e:
            raise AssertionError(f"{life.step}, call {len(life.disk.calls)} {life.disk.calls[-1]}: {e!r}") from e

    life.disk.on_call = after_call
    life.live()
    return len(life.disk.calls)


@pytest.mark.parametrize("crash", CRASHES)
def test_after_a_crash_at_any_call_the_log_is_sound_and_has_all_that_was_flushed(crash: tuple[float, int]) -> None:
    def check(life: Life) -> None:
        left = crashes_of(life.disk, crash)
        log = life.check_survivor(left)
        once, files = summary(log), settled_files(left, "/logs")
        again = start(left)
        assert summary(again) == once
        assert settled_files(left, "/logs") == files
        check_sound(again)
        life.check_usable(again)

    assert lived_through(check) > 500


@pytest.mark.parametrize("crash", [KILLED, ALL_LOST, (0.5, 5)])
def test_a_recovery_that_crashes_at_any_call_ends_the_same_when_it_is_done_again(crash: tuple[float, int]) -> None:
    checked = 0

    def check(life: Life) -> None:
        nonlocal checked
        if len(life.disk.calls) % 20:
            return
        expected = summary(start(crashes_of(life.disk, (0.5, 4))))
        recovering = crashes_of(life.disk, (0.5, 4))

        def after_call() -> None:
            nonlocal checked
            checked += 1
            assert summary(life.check_survivor(crashes_of(recovering, crash))) == expected, recovering.calls[-1]

        recovering.on_call = after_call
        assert summary(start(recovering)) == expected

    lived_through(check)
    assert checked > 300


class Careless(SimulatedDisk):
    """A disk that says that it has done what it is told in a word, and does not."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.now_ms = NOW
        self._word = word

    def sync(self, file: str) -> None:
        if self._word not in f"sync {file}":
            super().sync(file)

    def sync_folder(self, folder: str) -> None:
        if self._word not in f"sync_folder {folder}.":
            super().sync_folder(folder)


@pytest.mark.parametrize(
    "word", [".log", ".index", ".timeindex", "leader-epoch", "recovery-point", "sync_folder /logs.", f"sync_folder {FOLDER}."]
)
def test_a_sync_that_is_left_out_shows(word: str) -> None:
    def check(life: Life) -> None:
        for crash in (ALL_LOST, (0.5, 6)):
            life.check_usable(life.check_survivor(crashes_of(life.disk, crash)))

    with pytest.raises(AssertionError):
        lived_through(check, Careless(word))
