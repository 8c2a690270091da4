"""A log's life on a disk that crashes after every single call: what was flushed is there, and all that is there is sound."""

from collections.abc import Callable

import pytest
from lived_logs import FOLDER, NOW, empty_disk, start
from lives import ALL_LOST, KILLED, Crash, Life, crashed
from simulated_disk import SimulatedDisk
from sound_logs import check_sound, remaining_files, summary

from local_log.errors import LogError

CRASHES = [KILLED, ALL_LOST, (0.3, 1), (0.5, 2), (0.8, 3)]


def live(life: Life) -> None:
    """A life that meets every way in which a log changes."""
    life.open()
    for i in range(6):
        life.append(records=1 + i % 3, size=700)
    life.flush()
    life.transaction(1, batches=3, commits=True)
    life.append(size=5_000)
    life.epoch = 1
    life.transaction(2, batches=2, commits=False)  # rolls in its course
    life.append(size=900, producer=3)
    life.checkpoint()
    life.append(size=1_100, producer=2)
    life.open_transaction(4)
    life.flush()
    life.log.roll()  # nothing is written that was not flushed
    life.append(size=9_000)
    life.append(size=600)
    life.end_transaction(4, commits=False)
    life.delete_records(5)
    life.epoch = 2
    life.append(size=4_000, producer=3)
    life.append(size=4_000, producer=3)
    life.flush()
    for _ in range(4):
        life.append(size=6_000, producer=2)
    life.truncate(life.log.log_end_offset - 4)  # several segments go
    life.delete_records(24)
    life.retain()
    life.epoch = 4
    life.append(size=2_000, producer=5)
    life.open_transaction(1)
    life.append(size=5_000)
    life.flush()
    life.reopen()
    life.append(size=3_000)
    life.end_transaction(1, commits=False)
    life.append(size=8_000, producer=5)
    life.truncate(life.log.log_end_offset - 1)
    life.append(size=7_000)
    life.log.roll()
    life.append(size=700, producer=5)
    life.restart(life.log.log_end_offset + 20)
    life.append(size=900)
    life.epoch = 5
    life.transaction(1, batches=2, commits=False)
    life.append(size=9_000)
    life.flush()
    life.append(size=900)
    life.stop()


def lived_through(check: Callable[[Life], None], disk: SimulatedDisk | None = None) -> int:
    """Lives a life, with a check after every call; how many there were."""
    life = Life(disk or empty_disk())

    def after_call() -> None:
        try:
            check(life)
        except (AssertionError, LogError) as e:
            raise AssertionError(f"{life.step}, call {len(life.disk.calls)} {life.disk.calls[-1]}: {e!r}") from e

    life.disk.on_call = after_call
    live(life)
    return len(life.disk.calls)


@pytest.mark.parametrize("crash", CRASHES)
def test_after_a_crash_at_any_call_the_log_is_sound_and_has_all_that_was_flushed(crash: Crash) -> None:
    def check(life: Life) -> None:
        left = crashed(life.disk, crash)
        log = life.check_survivor(left)
        once, files = summary(log), remaining_files(left, "/logs")
        again = start(left)
        assert summary(again) == once
        assert remaining_files(left, "/logs") == files
        check_sound(again, life.start_max, life.ever())
        life.check_usable(again)

    assert lived_through(check) > 500


@pytest.mark.parametrize("crash", [KILLED, ALL_LOST, (0.5, 5)])
def test_a_recovery_that_crashes_at_any_call_ends_the_same_when_it_is_done_again(crash: Crash) -> None:
    checked = 0

    def check(life: Life) -> None:
        nonlocal checked
        if len(life.disk.calls) % 20:
            return
        expected = summary(start(crashed(life.disk, (0.5, 4))))
        recovering = crashed(life.disk, (0.5, 4))

        def after_call() -> None:
            nonlocal checked
            checked += 1
            assert summary(life.check_survivor(crashed(recovering, crash))) == expected, recovering.calls[-1]

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


LEFT_OUT = [".log", ".index", ".timeindex", ".txnindex", "leader-epoch", "recovery-point"]


@pytest.mark.parametrize("word", [*LEFT_OUT, "sync_folder /logs.", f"sync_folder {FOLDER}."])
def test_a_sync_that_is_left_out_shows(word: str) -> None:
    def check(life: Life) -> None:
        for crash in (ALL_LOST, (0.5, 6)):
            life.check_usable(life.check_survivor(crashed(life.disk, crash)))

    with pytest.raises(AssertionError):
        lived_through(check, Careless(word))
