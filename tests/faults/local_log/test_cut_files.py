"""The files beside segments and folders, cut at every byte: told by name, or taken as Kafka takes them, and right."""

from functools import cache

import pytest
from logs_at_work import batch_of
from managed import ID, ORDERS, PAYMENTS, SMALL, T0, append, one
from simulated_disk import SimulatedDisk
from small_logs import marker

from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.log_manager import LogManager, Started
from local_log.engine.producers.state import Origin
from local_log.errors import Corrupt
from local_log.formats.checkpoints import EpochEntry
from local_log.formats.filenames import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    SNAPSHOT,
)

LOGS = "/logs"
FOLDER = f"{LOGS}/{ORDERS}"
CONFIG = ManagerConfig(log_dirs=(LOGS,), num_recovery_threads_per_data_dir=1)
BROKER_EPOCH = 12_345
EPOCHS = [EpochEntry(0, 11), EpochEntry(7, 20), EpochEntry(12, 140)]


def manager(disk: SimulatedDisk) -> LogManager:
    return LogManager(disk, CONFIG, lambda: T0, lambda: 0.0, lambda: "0" * 32, default=SMALL)


@cache
def stopped() -> SimulatedDisk:
    """A log of three leader epochs and some producers, which starts behind its first batch and has an open transaction."""
    disk = SimulatedDisk()
    running = manager(disk)
    running.start()
    append(running.get_or_create(PAYMENTS, ID), 3)
    log = running.get_or_create(ORDERS, ID)
    append(log, 20)
    for i in range(60):
        log.append_as_leader(batch_of("a", "b", producer=i % 3, sequence=2 * (i // 3)), 7)
    log.append_as_leader(batch_of("a", "b", producer=7, sequence=0, transactional=True), 12)
    log.append_as_leader(marker(0, 7, commit=False), 12, Origin.COORDINATOR)
    log.append_as_leader(batch_of("a", "b", producer=8, sequence=0, transactional=True), 12)
    for _ in range(30):
        log.append_as_leader(one(), 12)
    log.update_high_watermark(160)
    log.maybe_increment_log_start_offset(11)
    assert running.stop(BROKER_EPOCH) == ()
    return disk


def with_file(file: str, data: bytes | None, *, marked: bool = True) -> SimulatedDisk:
    """The same disk with other bytes in a file, or without it."""
    disk = stopped().after_kill()
    disk.delete(file)
    if data is not None:
        disk.write(file, 0, data)
    if not marked:
        disk.delete(f"{LOGS}/{CLEAN_SHUTDOWN}")
    return disk


def started(disk: SimulatedDisk) -> tuple[LogManager, Started]:
    made = manager(disk)
    return made, made.start()


def known(of: LogManager) -> object:
    """All that the files that are cut here say of the log, and what comes of it."""
    log = of.log(ORDERS)
    offsets = log.log_start_offset, log.recovery_point, log.last_stable_offset, log.high_watermark, log.log_end_offset
    producers = {p.producer_id: p.entry() for p in log.producers.producers.values()}
    return offsets, producers, log.producers.ongoing, log.epochs.entries


def test_the_files_say_what_is_to_be_missed() -> None:
    found, _ = started(stopped().after_kill())
    offsets, producers, ongoing, epochs = known(found)  # type: ignore[misc]
    assert offsets == (11, 175, 143, 160, 175)
    assert sorted(producers) == [0, 1, 2, 7, 8]
    assert ongoing == {143: 8}
    assert epochs == EPOCHS


@pytest.mark.parametrize("name", [RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT])
def test_an_offset_checkpoint_that_was_cut_is_told_by_name_and_says_nothing(name: str) -> None:
    file = f"{LOGS}/{name}"
    whole = stopped().read(file)
    missing = known(started(with_file(file, None, marked=False))[0])
    assert missing != known(started(with_file(file, whole, marked=False))[0])
    for cut in range(len(whole)):
        found, start = started(with_file(file, whole[:cut], marked=False))
        assert [corrupt.file for corrupt in start.damaged] == [file] * (cut > 0), whole[:cut]
        assert known(found) == missing, whole[:cut]
        assert start.unopened == ()


def test_leader_epochs_that_were_cut_are_told_by_name_but_for_those_that_kafka_takes_for_whole_ones() -> None:
    file = f"{FOLDER}/{LEADER_EPOCH_CHECKPOINT}"
    whole = stopped().read(file)
    assert whole == b"0\n3\n0 11\n7 20\n12 140\n"
    taken: dict[bytes, list[EpochEntry]] = {}
    for cut in range(len(whole) + 1):
        found, start = started(with_file(file, whole[:cut]))
        assert found.log(PAYMENTS).log_end_offset == 3
        if start.unopened:
            (unopened,) = start.unopened
            assert isinstance(unopened.error, Corrupt)
            assert (unopened.partition, unopened.error.file) == (ORDERS, file)
        else:
            taken[whole[:cut]] = found.log(ORDERS).epochs.entries
    assert (
        taken
        == {
            **{beginning: [] for beginning in (b"", b"0", b"0\n")},
            whole[:-3]: [EpochEntry(12, 11)],  # from offset 1 on, so none was before it; and the log starts at 11
            whole[:-2]: [EpochEntry(0, 11), EpochEntry(12, 14)],
            whole[:-1]: EPOCHS,
            whole: EPOCHS,
        }
    )


def test_a_topic_id_that_was_cut_is_told_by_name_and_keeps_no_other_log_from_being_opened() -> None:
    file = f"{FOLDER}/{PARTITION_METADATA}"
    whole = stopped().read(file)
    for cut in range(len(whole)):
        found, start = started(with_file(file, whole[:cut]))
        (unopened,) = start.unopened
        assert isinstance(unopened.error, Corrupt)
        assert (unopened.partition, unopened.error.file) == (ORDERS, file)
        assert found.partitions() == (PAYMENTS,)


def test_a_mark_of_a_clean_stop_that_was_cut_is_one_of_a_broker_whose_epoch_is_not_known() -> None:
    file = f"{LOGS}/{CLEAN_SHUTDOWN}"
    whole = stopped().read(file)
    expected = known(started(stopped().after_kill())[0])
    for cut in range(len(whole) + 1):
        found, start = started(with_file(file, whole[:cut]))
        assert [directory.was_clean for directory in found.directories] == [True]
        assert found.broker_epoch == (BROKER_EPOCH if cut == len(whole) else None)
        assert (start.unopened, start.damaged, known(found)) == ((), (), expected)


def snapshots() -> list[str]:
    return [f"{FOLDER}/{name}" for name in stopped().names(FOLDER) if name.endswith(SNAPSHOT)]


def with_snapshots(files: list[str], damage: dict[str, bytes]) -> object:
    """What is known when those snapshots are these."""
    disk = stopped().after_kill()
    for file in files:
        disk.delete(file)
        disk.write(file, 0, damage[file])
    found, start = started(disk)
    assert (start.unopened, start.damaged) == ((), ())
    return known(found)


@pytest.mark.parametrize("which", [slice(-1, None), slice(None)], ids=["the newest", "all"])
def test_producers_are_read_from_the_log_where_a_snapshot_was_cut_or_a_byte_of_it_is_another(which: slice) -> None:
    files = snapshots()[which]
    whole = {file: stopped().read(file) for file in files}
    longest = max(map(len, whole.values()))
    expected = known(started(stopped().after_kill())[0])
    for at in range(longest):
        cut = {file: data[: min(at, len(data) - 1)] for file, data in whole.items()}
        assert with_snapshots(files, cut) == expected, at
        for bits in (1, 0xFF):
            flipped = {file: with_byte_flipped(data, min(at, len(data) - 1), bits) for file, data in whole.items()}
            assert with_snapshots(files, flipped) == expected, at


def with_byte_flipped(data: bytes, at: int, bits: int) -> bytes:
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]
