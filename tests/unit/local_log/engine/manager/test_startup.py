"""A start: which folders are opened, in how many threads, and what of damage and of doubt."""

import shutil
import threading
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from golden_logs import broker_logs, partitions
from managed import ID, ORDERS, PAYMENTS, SMALL, World, append
from small_logs import bases

from local_log.engine.config import LogConfig
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.manager.startup import Progress, in_threads
from local_log.errors import Corrupt, Invalid
from local_log.formats.filenames import TopicPartition


@pytest.fixture
def world() -> World:
    return World()


def filled(world: World, folder: Path, *names: TopicPartition, records: int = 40) -> None:
    """Logs of some segments each, cleanly stopped."""
    manager = world.start(folder)
    for partition in names:
        append(manager.get_or_create(partition, ID), records)
    assert manager.stop(broker_epoch=7) == ()


def crashed(folder: Path) -> None:
    """Makes the stop an unclean one, with nothing flushed."""
    (folder / ".kafka_cleanshutdown").unlink()
    (folder / "recovery-point-offset-checkpoint").unlink()


@pytest.mark.parametrize("clean", [True, False])
def test_golden_logs_are_opened_with_the_offsets_of_their_broker(world: World, tmp_path: Path, clean: bool) -> None:
    broker_logs(tmp_path)
    if not clean:
        crashed(tmp_path)
    world.now += 60 * 60 * 24 * 365 * 3 * 1000
    manager = world.start(tmp_path, default=LogConfig(segment_bytes=1 << 20, segment_index_bytes=65536))
    assert sorted(map(str, manager.partitions())) == sorted(partitions())
    assert manager.log(TopicPartition("g-trimmed", 0)).log_start_offset == 1234
    assert manager.log(TopicPartition("g-txn", 0)).high_watermark == 3706
    assert manager.broker_epoch == (58 if clean else None)
    assert manager.stop() == ()


def test_a_clean_stop_is_believed_and_its_mark_removed_before_anything_is_opened(world: World, tmp_path: Path) -> None:
    filled(world, tmp_path, ORDERS)
    log = tmp_path / "orders-0" / "00000000000000000000.log"
    log.write_bytes(log.read_bytes()[:-1] + b"\xff")
    seen: list[Progress] = []
    manager = world.manager(tmp_path)
    marked: list[bool] = []

    def on_progress(progress: Progress) -> None:
        seen.append(progress)
        marked.append((tmp_path / ".kafka_cleanshutdown").exists())

    manager.start(on_progress)
    assert ([p.segments for p in seen], marked) == ([0], [False])
    assert manager.log(ORDERS).log_end_offset == 40
    manager.stop()


def test_without_the_mark_a_log_is_recovered_from_its_recovery_point_on(world: World, tmp_path: Path) -> None:
    filled(world, tmp_path, ORDERS)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    last = sorted((tmp_path / "orders-0").glob("*.log"))[-1]
    last.write_bytes(last.read_bytes() + b"torn")
    first = tmp_path / "orders-0" / "00000000000000000000.log"
    first.write_bytes(first.read_bytes()[:-1] + b"\xff")  # below the recovery point: nobody looks
    seen: list[Progress] = []
    manager = world.manager(tmp_path)
    manager.start(seen.append)
    assert {p.segments for p in seen} == {1, 0}
    assert manager.log(ORDERS).log_end_offset == 40
    assert not last.read_bytes().endswith(b"torn")


def test_progress_tells_the_segments_left_of_each_log_and_the_logs_left(world: World, tmp_path: Path) -> None:
    filled(world, tmp_path, ORDERS, PAYMENTS)
    crashed(tmp_path)
    seen: list[Progress] = []
    manager = world.manager(tmp_path)
    manager.start(seen.append)
    of_orders = [p for p in seen if p.partition == ORDERS and p.segments]
    segments = len(bases(manager.log(ORDERS)))
    assert segments > 2
    assert [(p.segments, p.segments_left) for p in of_orders] == [(segments, left) for left in range(segments, -1, -1)]
    assert (seen[-1].logs, seen[-1].logs_left) == (2, 0)
    assert sorted((p.logs_left for p in seen), reverse=True) == [p.logs_left for p in seen]


def test_logs_are_opened_by_as_many_threads_a_directory_as_the_setting_says() -> None:
    barrier = threading.Barrier(4, timeout=20)  # passed only if two threads of each of two directories are there at once

    def act(number: int) -> int:
        barrier.wait()
        return number

    assert in_threads(act, [[1, 2], [3, 4]], 2) == [1, 2, 3, 4]


def test_one_thread_for_one_directory_is_the_caller_s(world: World, tmp_path: Path) -> None:
    assert in_threads(lambda _: threading.current_thread(), [[1, 2]], 1) == [threading.current_thread()] * 2


def test_an_error_of_ours_in_a_thread_is_not_lost() -> None:
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda number: 1 // number, [[1, 0], [2]], 2)


def test_many_logs_of_two_directories_come_up_again_as_they_were(world: World, tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    names = [TopicPartition("t", number) for number in range(12)]
    manager = world.start(*folders, settings={"num_recovery_threads_per_data_dir": 4})
    for at, partition in enumerate(names):
        append(manager.get_or_create(partition), 5 + at)
    manager.stop()
    for folder in folders:
        crashed(folder)
    manager = world.start(*folders, settings={"num_recovery_threads_per_data_dir": 4})
    assert [manager.log(p).log_end_offset for p in names] == [5 + at for at in range(12)]
    manager.stop()


def test_a_damaged_log_keeps_nobody_from_the_others_and_what_was_known_of_it_stays(world: World, tmp_path: Path) -> None:
    filled(world, tmp_path, ORDERS, PAYMENTS)
    manager = world.start(tmp_path)
    manager.log(ORDERS).maybe_increment_log_start_offset(3)
    manager.stop()
    metadata = tmp_path / "orders-0" / "partition.metadata"
    metadata.write_text("")

    manager = world.manager(tmp_path)
    started = manager.start()
    assert [(u.partition, u.path) for u in started.unopened] == [(ORDERS, f"{tmp_path}/orders-0")]
    assert manager.partitions() == (PAYMENTS,)
    for ask in (manager.log, manager.get_or_create):
        with pytest.raises(Corrupt, match=r"orders-0/partition\.metadata"):
            ask(ORDERS)
    assert manager.stop() == ()
    assert not (tmp_path / ".kafka_cleanshutdown").exists()

    metadata.write_text(f"version: 0\ntopic_id: {ID}")
    log = world.start(tmp_path).log(ORDERS)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (3, 40, 40)


def test_a_log_that_could_not_be_opened_can_be_deleted_and_made_again(world: World, tmp_path: Path) -> None:
    filled(world, tmp_path, ORDERS)
    (tmp_path / "orders-0" / "partition.metadata").write_text("")
    manager = world.start(tmp_path)
    manager.delete(ORDERS)
    assert manager.get_or_create(ORDERS).log_end_offset == 0
    world.later(manager, SMALL.file_delete_delay_ms)
    assert [f.name for f in tmp_path.iterdir() if f.is_dir()] == ["orders-0"]
    manager.stop()
    assert (tmp_path / ".kafka_cleanshutdown").exists()


def test_the_same_partition_in_two_directories_is_refused_with_both_paths_and_nothing_is_changed(
    world: World, tmp_path: Path
) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    filled(world, a, ORDERS)
    filled(world, b, PAYMENTS)
    shutil.copytree(a / "orders-0", b / "orders-0")
    with pytest.raises(Invalid, match=rf"{a}/orders-0 and {b}/orders-0 .*remove one"):
        world.start(a, b)
    assert (a / ".kafka_cleanshutdown").exists()
    shutil.rmtree(b / "orders-0")
    assert world.start(a, b).partitions() == (ORDERS, PAYMENTS)


def test_a_future_log_is_opened_and_is_not_the_partition_s_log(world: World, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    filled(world, a, ORDERS)
    shutil.copytree(a / "orders-0", b / "orders-0.0123456789abcdef-future")
    manager = world.start(a, b)
    append(manager.log(ORDERS, future=True), 2)
    assert (manager.log(ORDERS).log_end_offset, manager.log(ORDERS, future=True).log_end_offset) == (40, 42)
    assert manager.partitions() == (ORDERS,)
    manager.stop()
    assert (b / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 42\n"


def test_only_a_future_log_is_no_log_of_the_partition(world: World, tmp_path: Path) -> None:
    filled(world, tmp_path, ORDERS)
    (tmp_path / "orders-0").rename(tmp_path / "orders-0.0123456789abcdef-future")
    manager = world.start(tmp_path)
    assert manager.partitions() == ()
    assert manager.log(ORDERS, future=True).log_end_offset == 40


def test_a_stray_log_is_left_as_it_is(world: World, tmp_path: Path) -> None:
    filled(world, tmp_path, ORDERS, PAYMENTS)
    crashed(tmp_path)
    stray = tmp_path / "orders-0.0123456789abcdef-stray"
    (tmp_path / "orders-0").rename(stray)
    last = sorted(stray.glob("*.log"))[-1]
    last.write_bytes(b"torn")
    manager = world.manager(tmp_path)
    assert manager.start().strays == (str(stray),)
    assert manager.partitions() == (PAYMENTS,)
    manager.stop()
    assert last.read_bytes() == b"torn"


def test_a_folder_that_waits_to_be_deleted_goes_after_the_delay_whatever_is_in_it(world: World, tmp_path: Path) -> None:
    doomed = tmp_path / "orders-0.0123456789abcdef-delete"
    doomed.mkdir()
    (doomed / "no log at all.log").write_text("")
    manager = world.start(tmp_path)
    assert manager.partitions() == ()
    world.later(manager, SMALL.file_delete_delay_ms - 1)
    assert doomed.exists()
    world.later(manager, 1)
    assert not doomed.exists()


@pytest.mark.parametrize("name", ["lost+found", "orders", "orders-x", "orders-0-delete"])
def test_a_folder_that_is_no_log_s_stops_the_start_as_it_stops_kafka_s(world: World, tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    with pytest.raises(Invalid, match=r"not a partition's folder.*move it away"):
        world.start(tmp_path)
    assert not (tmp_path / ".lock").exists()


def test_what_is_no_folder_and_what_others_keep_here_is_passed_over(world: World, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("")
    (tmp_path / "remote-log-index-cache").mkdir()
    (tmp_path / "__cluster_metadata-0").mkdir()
    manager = world.start(tmp_path)
    assert manager.partitions() == ()
    manager.stop()
    assert list((tmp_path / "__cluster_metadata-0").iterdir()) == []


def test_a_start_that_is_broken_off_gives_the_directories_back_unmarked(world: World, tmp_path: Path) -> None:
    filled(world, tmp_path, ORDERS)

    def stop(progress: Progress) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        world.manager(tmp_path).start(stop)
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    manager = world.start(tmp_path)
    assert manager.log(ORDERS).log_end_offset == 40


def test_recovery_can_be_killed_anywhere_and_run_again(world: World, tmp_path: Path) -> None:
    filled(world, tmp_path / "whole", ORDERS, records=25)
    crashed(tmp_path / "whole")
    for at in count():
        folder = tmp_path / f"killed at {at}"
        shutil.copytree(tmp_path / "whole", folder)
        if not killed_after(world, world.manager(folder), at):
            break
        log = world.start(folder).log(ORDERS)
        assert (log.log_start_offset, log.log_end_offset) == (0, 25)
        assert world.started is not None
        world.started.stop()
        shutil.rmtree(folder)
    assert at > 10


class Killed(BaseException):
    """The process is no more."""


def killed_after(world: World, manager: LogManager, changes: int) -> bool:
    """Starts, and ends after so many changes of the disk, if there are more."""
    left, disk = changes, world.disk

    def counted(verb: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            nonlocal left
            left -= 1
            if left < 0:
                raise Killed
            return verb(*args)

        return run

    for verb in ("write", "truncate", "rename", "delete"):
        setattr(disk, verb, counted(getattr(disk, verb)))
    try:
        manager.start()
    except Killed:
        return True
    else:
        return False
    finally:
        for verb in ("write", "truncate", "rename", "delete"):
            delattr(disk, verb)
        for directory in manager.directories:
            disk.unlock(f"{directory.path}/.lock")
            disk.release(directory.path)
