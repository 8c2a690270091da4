"""A log's folder: its name, its renaming, its deletion, and the id of its topic in it."""

import itertools
import re
from pathlib import Path

import pytest
from logs_at_work import batch_of, settings
from small_logs import Clock

from local_log.engine.manager.config import read_manager_config
from local_log.engine.manager.log_manager import LogManager
from local_log.engine.manager.managed_log import InconsistentTopicId, ManagedLog
from local_log.engine.offsets import Isolation
from local_log.errors import NotFound
from local_log.formats.filenames import (
    DELETE_DIR,
    FUTURE_DIR,
    STRAY_DIR,
    TopicPartition,
    marked_log_dir,
    offset_file,
    offset_of_file,
    parse_log_dir,
)
from local_log.formats.partition_metadata import read_topic_id
from local_log.os_disk import OsWritableDisk

ID = "0123456789abcdef" * 2
DELAY_MS = 60_000
ORDERS = TopicPartition("orders", 0)
TOPIC_ID, OTHER_ID = "A" * 21 + "Q", "B" * 21 + "Q"


@pytest.fixture
def clock() -> Clock:
    return Clock()


def started(folder: Path, clock: Clock) -> LogManager:
    ids = itertools.count()
    manager = LogManager(
        OsWritableDisk(),
        read_manager_config({"log.dirs": str(folder)}),
        clock,
        lambda: 0.0,
        lambda: f"{next(ids):032x}",
        default=settings(file_delete_delay_ms=DELAY_MS),
    )
    manager.start()
    return manager


@pytest.fixture
def manager(tmp_path: Path, clock: Clock) -> LogManager:
    return started(tmp_path, clock)


def managed(manager: LogManager) -> ManagedLog:
    """The log of `orders-0` with two segments."""
    log = manager.get_or_create(ORDERS)
    log.append_as_leader(batch_of("a"), 0)
    log.roll()
    return ManagedLog(ORDERS, manager.directories[0], log, None)


# Names


def test_a_partitions_folder_has_the_name_of_its_topic_and_its_number() -> None:
    found = parse_log_dir("test_topic-143")
    assert found is not None
    assert (found.partition, found.mark) == (TopicPartition("test_topic", 143), "")


def test_a_marked_folder_of_a_topic_with_dots_and_dashes_is_told_by_what_is_before_its_id() -> None:
    partition = TopicPartition("foo.bar-testtopic", 42)
    for mark in (DELETE_DIR, FUTURE_DIR, STRAY_DIR):
        found = parse_log_dir(marked_log_dir(partition, ID, mark))
        assert found is not None
        assert (found.partition, found.mark) == (partition, mark)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("", id="empty"),
        pytest.param("test_topic1999", id="no dash"),
        pytest.param("test_topic1999.-delete", id="no dash, marked"),
        pytest.param("-1999", id="no topic"),
        pytest.param(f"-1999.{ID}-delete", id="no topic, marked"),
        pytest.param("test_topic-", id="no partition"),
        pytest.param("test_topic-.-delete", id="no partition, marked"),
        pytest.param("test_topic-1999a", id="not a number"),
        pytest.param("test_topic1999a.-delete", id="not a number, marked"),
        pytest.param("non_kafka_dir", id="another folder"),
        pytest.param("non_kafka_dir-delete", id="another folder, marked"),
    ],
)
def test_a_folder_of_any_other_name_is_not_a_partitions(name: str) -> None:
    assert parse_log_dir(name) is None


def test_a_folder_that_is_to_be_deleted_keeps_as_much_of_its_topic_as_a_name_has_room_for() -> None:
    short = marked_log_dir(TopicPartition("foo", 3), ID, DELETE_DIR)
    assert re.fullmatch(r"foo-3\.[0-9a-z]{32}-delete", short)
    long = marked_log_dir(TopicPartition("n" + "o" * 248, 5), ID, DELETE_DIR)
    assert len(long) == 255
    assert re.fullmatch(r"no{212}-5\.[0-9a-z]{32}-delete", long)
    assert {found.mark for name in (short, long) if (found := parse_log_dir(name))} == {DELETE_DIR}


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex", ".snapshot"])
def test_a_files_offset_is_read_from_its_name(suffix: str) -> None:
    assert offset_of_file(offset_file(23_423_423, suffix)) == 23_423_423


# Renamed and deleted


def test_a_log_whose_folder_is_renamed_goes_on_in_it(manager: LogManager, tmp_path: Path) -> None:
    log = managed(manager)
    log.rename("orders-7")
    assert not (tmp_path / "orders-0").exists()
    assert log.log.folder.path == str(tmp_path / "orders-7")
    assert {segment.folder for segment in log.log.local.segments} == {str(tmp_path / "orders-7")}
    log.log.append_as_leader(batch_of("b"), 1)
    log.log.roll()
    log.log.close()
    assert sorted(file.name for file in tmp_path.glob("orders-7/*.log")) == [offset_file(at, ".log") for at in (0, 1, 2)]
    assert sorted(file.name for file in tmp_path.glob("orders-7/*.snapshot")) == [offset_file(at, ".snapshot") for at in (1, 2)]
    assert "1 1" in (tmp_path / "orders-7" / "leader-epoch-checkpoint").read_text()


def test_a_log_that_is_given_its_own_name_stays_as_it_is(manager: LogManager, tmp_path: Path) -> None:
    log = managed(manager)
    log.rename("orders-0")
    assert log.log.folder.path == str(tmp_path / "orders-0")
    assert log.log.append_as_leader(batch_of("b"), 0).first_offset == 1


def test_a_log_that_is_deleted_is_gone_at_once_and_its_folder_after_a_while(
    manager: LogManager, tmp_path: Path, clock: Clock
) -> None:
    managed(manager)
    manager.delete(ORDERS)
    with pytest.raises(NotFound):
        manager.log(ORDERS)
    assert manager.get_or_create(ORDERS).log_end_offset == 0
    (folder,) = tmp_path.glob("*-delete")
    assert len(list(folder.glob("*.log"))) == 2
    clock.sleep(DELAY_MS - 1)
    manager.tick(clock())
    assert folder.exists()
    clock.sleep(1)
    manager.tick(clock())
    assert not folder.exists()


def test_a_log_that_was_closed_can_be_deleted(manager: LogManager, tmp_path: Path, clock: Clock) -> None:
    managed(manager).log.close()
    manager.delete(ORDERS)
    clock.sleep(DELAY_MS)
    manager.tick(clock())
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []


# The topic's id


def test_a_topics_id_is_in_the_folder_before_anything_is_appended(manager: LogManager, tmp_path: Path) -> None:
    log = manager.get_or_create(ORDERS, TOPIC_ID)
    assert read_topic_id((tmp_path / "orders-0" / "partition.metadata").read_bytes()) == TOPIC_ID
    log.append_as_leader(batch_of("a"), 0)
    assert log.read(0, 1 << 20, Isolation.LOG_END).records


def test_a_topics_id_is_known_after_a_restart(manager: LogManager, tmp_path: Path, clock: Clock) -> None:
    manager.get_or_create(ORDERS, TOPIC_ID)
    manager.stop()
    again = started(tmp_path, clock)
    assert again.get_or_create(ORDERS, TOPIC_ID).log_end_offset == 0
    assert read_topic_id((tmp_path / "orders-0" / "partition.metadata").read_bytes()) == TOPIC_ID


def test_a_folder_of_another_topic_of_the_same_name_is_refused(manager: LogManager, tmp_path: Path, clock: Clock) -> None:
    manager.get_or_create(ORDERS, TOPIC_ID)
    manager.stop()
    with pytest.raises(InconsistentTopicId):
        started(tmp_path, clock).get_or_create(ORDERS, OTHER_ID)
