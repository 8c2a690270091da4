"""Logs made, found, cut and deleted, in the directory with the fewest of them."""

from dataclasses import replace
from pathlib import Path

import pytest
from managed import ID, ORDERS, OTHER_ID, PAYMENTS, SMALL, World, append, checkpoint
from small_logs import bases

from local_log.engine.manager.managed_log import InconsistentTopicId
from local_log.errors import Invalid, NotFound, Unreadable
from local_log.formats.filenames import TopicPartition


@pytest.fixture
def world() -> World:
    return World()


def test_a_log_that_is_not_there_is_made_and_can_be_appended_to(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    log = manager.get_or_create(ORDERS)
    append(log, 3)
    assert log.log_end_offset == 3
    assert (tmp_path / "orders-0" / "00000000000000000000.log").stat().st_size > 0
    assert manager.get_or_create(ORDERS) is log
    assert manager.log(ORDERS) is log
    assert manager.partitions() == (ORDERS,)


def test_a_log_that_is_asked_for_is_not_made(world: World, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="orders-0"):
        world.start(tmp_path).log(ORDERS)
    assert not (tmp_path / "orders-0").exists()


def test_logs_are_made_where_there_are_the_fewest(world: World, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in "abc"]
    manager = world.start(*folders)
    for number in range(20):
        manager.get_or_create(TopicPartition("test", number))
        counts = [len([f for f in folder.iterdir() if f.is_dir()]) for folder in folders]
        assert sum(counts) == number + 1
        assert max(counts) <= min(counts) + 1


def test_a_log_is_made_in_the_next_directory_where_the_first_one_s_disk_fails(world: World, tmp_path: Path) -> None:
    folders = [tmp_path / str(number) for number in range(5)]
    manager = world.start(*folders)
    world.disk.broken = {f"{folders[0]}/": (), f"{folders[1]}/": ("write",)}
    manager.get_or_create(ORDERS, is_new=True)
    assert [folder.name for folder in folders if (folder / "orders-0" / "00000000000000000000.log").exists()] == ["2"]
    assert [failure.directory for failure in manager.offline] == [str(folders[0]), str(folders[1])]


def test_a_topic_s_id_is_written_beside_its_log_and_kept(world: World, tmp_path: Path) -> None:
    world.start(tmp_path).get_or_create(ORDERS, ID)
    assert (tmp_path / "orders-0" / "partition.metadata").read_text() == f"version: 0\ntopic_id: {ID}"
    assert world.started is not None
    world.started.stop()
    manager = world.start(tmp_path)
    manager.get_or_create(ORDERS, ID)
    with pytest.raises(InconsistentTopicId, match=rf"{ID}, not {OTHER_ID}"):
        manager.get_or_create(ORDERS, OTHER_ID)


def test_a_log_of_a_topic_without_an_id_gets_the_first_that_is_given(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    manager.get_or_create(ORDERS)
    assert not (tmp_path / "orders-0" / "partition.metadata").exists()
    manager.get_or_create(ORDERS, ID)
    assert ID in (tmp_path / "orders-0" / "partition.metadata").read_text()


@pytest.mark.parametrize("topic", ["../up", "", "a b", ".", "x" * 250, "a/b"])
def test_a_name_that_no_topic_can_have_is_refused(world: World, tmp_path: Path, topic: str) -> None:
    with pytest.raises(Invalid):
        world.start(tmp_path / "data").get_or_create(TopicPartition(topic, 0) if topic != "." else TopicPartition(".", -1))
    assert {f.name for f in (tmp_path / "data").iterdir()} == {".lock"}


def test_a_deleted_log_is_gone_at_once_and_its_files_after_the_delay(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    append(manager.get_or_create(ORDERS))
    append(manager.get_or_create(PAYMENTS))
    manager.delete(ORDERS)
    assert manager.partitions() == (PAYMENTS,)
    folder = tmp_path / f"orders-0.{0:032x}-delete"
    assert folder.is_dir()
    assert not (tmp_path / "orders-0").exists()
    assert world.later(manager, SMALL.file_delete_delay_ms - 1) == ()
    assert folder.is_dir()
    assert world.later(manager, 1) == ()
    assert not folder.exists()
    with pytest.raises(NotFound):
        manager.delete(ORDERS)


def test_a_deleted_log_does_not_stay_longer_because_the_clock_is_set_back(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    append(manager.get_or_create(ORDERS))
    manager.delete(ORDERS)
    folder = tmp_path / f"orders-0.{0:032x}-delete"
    world.later(manager, -3_600_000)
    assert folder.is_dir()
    world.later(manager, SMALL.file_delete_delay_ms)
    assert not folder.exists()


def test_a_new_log_takes_nothing_over_from_one_of_its_name_that_the_checkpoints_know(world: World, tmp_path: Path) -> None:
    for name in ("log-start-offset-checkpoint", "recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        (tmp_path / name).write_text("0\n1\norders 0 100\n")
    log = world.start(tmp_path).get_or_create(ORDERS)
    assert (log.log_start_offset, log.high_watermark, log.recovery_point, log.log_end_offset) == (0, 0, 0, 0)
    append(log)
    assert log.local.segments.first.base_offset == 0


def test_who_still_holds_a_deleted_log_does_not_touch_the_one_made_in_its_place(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    old = manager.get_or_create(ORDERS, ID)
    append(old, 30)
    manager.delete(ORDERS)
    new = manager.get_or_create(ORDERS, OTHER_ID)
    append(old, 30)
    old.flush()
    old.truncate_to(3)
    assert new.log_end_offset == 0
    assert {f.name for f in (tmp_path / "orders-0").iterdir() if f.stat().st_size and not f.name.endswith("index")} == {
        "partition.metadata"
    }
    assert old.folder.path.endswith("-delete")
    assert old.log_end_offset == 3


def test_a_topic_of_the_greatest_length_is_made_and_deleted(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    longest = TopicPartition("x" * 249, 0)
    manager.get_or_create(longest)
    manager.delete(longest)
    assert [len(f.name) for f in tmp_path.iterdir() if f.is_dir()] == [255]


def test_a_deletion_takes_the_log_out_of_the_checkpoints(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    for partition in (ORDERS, PAYMENTS):
        log = manager.get_or_create(partition)
        append(log, 5)
        log.flush()
        log.maybe_increment_log_start_offset(2)
    manager.delete(ORDERS)
    assert checkpoint(tmp_path, "recovery-point-offset-checkpoint") == {"payments-3": 5}
    assert checkpoint(tmp_path, "log-start-offset-checkpoint") == {"payments-3": 2}


def test_truncation_is_written_down_for_the_directories_it_is_in(world: World, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    manager = world.start(a, b)
    for partition in (ORDERS, PAYMENTS):
        append(manager.get_or_create(partition), 9)
        manager.log(partition).flush()
    manager.truncate({ORDERS: 4, PAYMENTS: 9, TopicPartition("nowhere", 0): 1})
    assert checkpoint(a, "recovery-point-offset-checkpoint") == {"orders-0": 4}
    assert not (b / "recovery-point-offset-checkpoint").exists()
    manager.truncate_fully_and_start_at(PAYMENTS, 7)
    assert checkpoint(b, "recovery-point-offset-checkpoint") == {"payments-3": 7}
    assert bases(manager.log(PAYMENTS)) == [7]


def test_settings_of_a_topic_reach_its_logs_that_are_open_and_those_to_come(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path)
    log, other = manager.get_or_create(ORDERS), manager.get_or_create(PAYMENTS)
    manager.configure("orders", replace(SMALL, retention_ms=5))
    assert log.folder.config.retention_ms == 5
    assert manager.get_or_create(TopicPartition("orders", 1)).folder.config.retention_ms == 5
    assert other.folder.config == SMALL


def test_kafka_s_own_topics_are_never_tiered(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path, default=replace(SMALL, remote_storage_enable=True))
    assert manager.get_or_create(ORDERS).folder.config.remote_storage_enable
    for topic in ("__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata"):
        assert not manager.get_or_create(TopicPartition(topic, 0)).folder.config.remote_storage_enable


def test_no_directory_at_all_is_refused(world: World) -> None:
    with pytest.raises(Invalid, match=r"log\.dirs is empty"):
        world.manager()


def test_while_a_directory_is_offline_only_new_logs_are_made(world: World, tmp_path: Path) -> None:
    manager = world.start(tmp_path / "a", tmp_path / "b")
    manager.get_or_create(ORDERS)
    world.disk.broken = {f"{tmp_path}/a": ()}
    world.later(manager, 60_000)
    with pytest.raises(Unreadable, match=r"may be in a directory that is offline: .*/a: .*Input/output error.*mend it"):
        manager.get_or_create(ORDERS)
    with pytest.raises(Unreadable, match="/a: this log directory is offline"):
        manager.get_or_create(ORDERS, is_new=True)
    assert not (tmp_path / "b" / "orders-0").exists()
    manager.get_or_create(TopicPartition("orders", 1), is_new=True)
    assert (tmp_path / "b" / "orders-1").is_dir()
