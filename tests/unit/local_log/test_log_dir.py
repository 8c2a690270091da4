"""A log directory: its partitions, its checkpoint files, and that reading it leaves no trace."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from golden_logs import broker_logs, live, partitions

from local_log.disk import Space
from local_log.errors import Corrupt, NotFound, Unreadable
from local_log.file_range import OpenedFile
from local_log.formats.filenames import TopicPartition
from local_log.formats.primitives import Buffer
from local_log.formats.visible_records import record_batches
from local_log.log_dir import LogDir, Unopened
from local_log.log_reader import LogReader
from local_log.os_disk import OsDisk


class RecordingDisk:
    """A Disk that notes what it is asked; it has the verbs of reading and no others."""

    def __init__(self) -> None:
        self.disk = OsDisk()
        self.asked: set[tuple[str, str]] = set()

    def names(self, folder: str) -> list[str]:
        self.asked.add(("names", folder))
        return self.disk.names(folder)

    def is_folder(self, path: str) -> bool:
        self.asked.add(("is_folder", path))
        return self.disk.is_folder(path)

    def size(self, file: str) -> int:
        self.asked.add(("size", file))
        return self.disk.size(file)

    def space(self, folder: str) -> Space:
        self.asked.add(("space", folder))
        return self.disk.space(folder)

    def modified_ms(self, file: str) -> int:
        self.asked.add(("modified_ms", file))
        return self.disk.modified_ms(file)

    def open(self, file: str) -> OpenedFile:
        self.asked.add(("open", file))
        return self.disk.open(file)

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        self.asked.add(("read", file))
        return self.disk.read(file, start, end)

    def read_large(self, file: str, start: int, end: int) -> Buffer:
        self.asked.add(("read", file))
        return self.disk.read_large(file, start, end)


def ask_everything(directory: LogDir) -> None:
    assert directory.id()
    for log in directory.logs():
        assert log.topic_id
        assert log.leader_epochs is not None
        start, end = log.log_start_offset, log.last_stable_offset
        for _ in record_batches(log.chunks(start, end), start, end, log.aborted(start, end)):
            pass
        latest = log.latest_timestamp()
        if latest is not None:
            assert log.offset_for_time(latest.timestamp, start, log.high_watermark)


def picture(logs: Path) -> dict[str, tuple[bytes, int]]:
    return {str(f): (f.read_bytes() if f.is_file() else b"", f.stat().st_mtime_ns) for f in [logs, *logs.rglob("*")]}


def test_the_partitions_are_the_folders_named_like_one(broker: Path) -> None:
    assert tuple(map(str, LogDir(OsDisk(), str(broker)).partitions())) == partitions()


def test_files_and_foreign_folders_are_no_partitions(tmp_path: Path) -> None:
    for name in (
        "orders-0",
        "orders-10",
        "orders-9",
        "orders-1.0a-delete",
        "orders-2.0a-stray",
        "orders-3.0a-future",
        "lost+found",
    ):
        (tmp_path / name).mkdir()
    (tmp_path / "file-0").touch()
    directory = LogDir(OsDisk(), str(tmp_path))
    assert directory.partitions() == tuple(TopicPartition("orders", n) for n in (0, 9, 10))
    assert [log.partition.partition for log in directory.logs()] == [0, 9, 10]


def test_foreign_folders_do_not_hide_the_partitions(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-01", "orders-9999999999"):
        (tmp_path / name).mkdir()
    assert [str(log.partition) for log in LogDir(OsDisk(), str(tmp_path)).logs()] == ["orders-0"]


def test_the_partitions_of_one_topic_are_found_without_a_look_at_the_others(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-11", "orders-2", "orders-eu-0", "orders-eu", "order-1", "orders-0.deleted"):
        (tmp_path / name).mkdir()
    (tmp_path / "orders-3").write_text("a file")
    disk = RecordingDisk()
    directory = LogDir(disk, str(tmp_path))
    assert directory.partitions_of("orders") == tuple(TopicPartition("orders", n) for n in (0, 2, 11))
    assert directory.partitions_of("nowhere") == ()
    assert ("is_folder", f"{tmp_path}/order-1") not in disk.asked
    assert [log.partition.partition for log in directory.found_in("orders")] == [0, 2, 11]
    assert [p for p in directory.partitions() if p.topic == "orders"] == list(directory.partitions_of("orders"))


def test_a_directory_that_is_not_there_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        LogDir(OsDisk(), str(tmp_path / "missing")).partitions()


class ClosedDisk(OsDisk):
    """A disk on which one folder cannot be read."""

    def names(self, folder: str) -> list[str]:
        if folder.endswith("g-tiny-0"):
            raise Unreadable(f"{folder}: Permission denied")
        return super().names(folder)


def test_a_folder_that_cannot_be_read_keeps_only_its_own_partition_closed(tmp_path: Path) -> None:
    directory = LogDir(ClosedDisk(), str(broker_logs(tmp_path, "g-tiny-0", "g-txn-0")))
    closed, opened = directory.found()
    assert isinstance(closed, Unopened)
    assert (str(closed.partition), str(opened.partition)) == ("g-tiny-0", "g-txn-0")
    assert [str(log.partition) for log in directory.logs(lambda topic: topic == "g-txn")] == ["g-txn-0"]
    with pytest.raises(Unreadable, match="g-tiny-0"):
        directory.logs()


def test_named_partitions_are_opened_without_a_listing_of_the_directory(tmp_path: Path) -> None:
    folder = str(broker_logs(tmp_path, "g-tiny-0", "g-txn-0", "g-trimmed-0"))

    class Unlisted(ClosedDisk):
        def is_folder(self, path: str) -> bool:
            raise AssertionError("the directory was listed")

    wanted = [TopicPartition("g-txn", 0), TopicPartition("gone", 7), TopicPartition("g-trimmed", 0), TopicPartition("g-tiny", 0)]
    txn, trimmed, closed = LogDir(Unlisted(), folder).found_of(wanted)
    assert isinstance(closed, Unopened)
    listed = {log.partition: log for log in LogDir(OsDisk(), folder).logs()}
    for log in (txn, trimmed):
        assert isinstance(log, LogReader)
        other = listed[log.partition]
        assert [s.base_offset for s in log.segments] == [s.base_offset for s in other.segments]
        assert (log.log_start_offset, log.high_watermark) == (other.log_start_offset, other.high_watermark)


def test_without_checkpoint_files_the_segments_speak(tmp_path: Path) -> None:
    logs = broker_logs(tmp_path, "g-trimmed-0")
    for file in logs.glob("*checkpoint"):
        file.unlink()
    (log,) = LogDir(OsDisk(), str(logs)).logs()
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (0, 0, 3000)


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_broken_checkpoint_file_is_corrupt_by_name(tmp_path: Path, name: str) -> None:
    logs = broker_logs(tmp_path, "g-tiny-0")
    (logs / name).write_bytes(b"rubbish")
    with pytest.raises(Corrupt) as caught:
        LogDir(OsDisk(), str(logs)).logs()
    assert caught.value.file == str(logs / name)


def cut_anywhere(file: Path) -> Iterator[int]:
    """Leaves a file with fewer bytes than it had, any number of them; how many."""
    whole = file.read_bytes()
    for size in range(len(whole)):
        file.write_bytes(whole[:size])
        yield size
    file.write_bytes(whole)


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "log-start-offset-checkpoint"])
def test_a_checkpoint_file_that_was_cut_is_corrupt_by_name_unless_nothing_is_left_of_it(tmp_path: Path, name: str) -> None:
    logs = broker_logs(tmp_path, "g-trimmed-0")
    directory = LogDir(OsDisk(), str(logs))
    for size in cut_anywhere(logs / name):
        if size:
            with pytest.raises(Corrupt) as caught:
                directory.logs()
            assert caught.value.file == str(logs / name)
        else:
            (log,) = directory.logs()
            assert log.checkpointed_high_watermark is None or log.checkpointed_start is None


@pytest.mark.parametrize(
    ("name", "ask", "of_nothing"),
    [
        ("leader-epoch-checkpoint", lambda log: log.leader_epochs, ()),
        ("partition.metadata", lambda log: log.topic_id, None),
    ],
)
def test_a_partition_s_own_file_that_was_cut_is_corrupt_by_name(
    tmp_path: Path, name: str, ask: Callable[[LogReader], object], of_nothing: object
) -> None:
    logs = broker_logs(tmp_path, "g-epochs-0")
    for size in cut_anywhere(logs / "g-epochs-0" / name):
        (log,) = LogDir(OsDisk(), str(logs)).logs()
        if size or of_nothing is None:
            with pytest.raises(Corrupt) as caught:
                ask(log)
            assert caught.value.file == str(logs / "g-epochs-0" / name)
        else:
            assert ask(log) == of_nothing


def test_a_producer_snapshot_that_was_cut_or_has_another_byte_costs_reading_and_nothing_else(tmp_path: Path) -> None:
    logs = broker_logs(tmp_path, "g-txn-0")
    file = logs / "g-txn-0" / "00000000000000003706.snapshot"
    whole = file.read_bytes()

    def stable() -> int:
        (log,) = LogDir(OsDisk(), str(logs)).logs()
        return log.last_stable_offset

    right = stable()
    assert right == live("g-txn-0")["last_stable_offset"] == 3671
    for size in cut_anywhere(file):
        assert stable() == right, size
    for at in range(len(whole)):
        file.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert stable() == right, at


def test_an_id_that_was_cut_is_not_taken_for_another_s(tmp_path: Path) -> None:
    lines = "#\n#Sat Nov 21 02:58:26 UTC 2026\nnode.id=17\ndirectory.id=jt3ggm45w_suKpenFLE7Lg\nversion=1\n"
    file = tmp_path / "meta.properties"
    file.write_text(lines)
    for size in cut_anywhere(file):
        if size and lines[size - 1] != "\n":
            with pytest.raises(Corrupt) as caught:
                LogDir(OsDisk(), str(tmp_path)).id()
            assert caught.value.file == str(file)
        else:
            assert LogDir(OsDisk(), str(tmp_path)).id() in (str(tmp_path), "17", "jt3ggm45w_suKpenFLE7Lg")


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ("#directory.id=x\ndirectory.id=abc\nnode.id=1\n", "abc"),
        ("node.id=1\nbroker.id=2\n", "1"),
        ("version=0\nbroker.id=2\n", "2"),
        ("version=0\n", None),
        (None, None),
    ],
)
def test_a_directory_is_told_by_its_id_else_its_broker_s_else_its_path(
    tmp_path: Path, properties: str | None, expected: str | None
) -> None:
    if properties is not None:
        (tmp_path / "meta.properties").write_text(properties)
    assert LogDir(OsDisk(), str(tmp_path)).id() == (expected or str(tmp_path))


@pytest.mark.parametrize("exists", [True, False])
def test_a_directory_that_is_not_mounted_has_no_id_that_its_disk_may_not_have(tmp_path: Path, exists: bool) -> None:
    logs = tmp_path / "logs"
    directory = LogDir(OsDisk(), str(logs))
    if exists:
        logs.mkdir()
    with pytest.raises(Unreadable, match="check whether its disk is mounted"):
        directory.mounted_id()
    logs.mkdir(exist_ok=True)
    (logs / "orders-0").mkdir()
    assert directory.mounted_id() == directory.id() == str(logs)
    (logs / "meta.properties").write_text("directory.id=abc\n")
    assert directory.mounted_id() == "abc"


def test_a_disk_that_is_mounted_while_its_id_is_read_has_its_own_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "meta.properties").write_text("directory.id=abc\nnode.id=1\n")
    read, asked = LogDir.properties, list[LogDir]()

    def mounted_after_one(self: LogDir) -> dict[str, str]:
        asked.append(self)
        return {} if len(asked) == 1 else read(self)

    monkeypatch.setattr(LogDir, "properties", mounted_after_one)
    assert LogDir(OsDisk(), str(tmp_path)).mounted_id() == "abc"


def test_reading_changes_no_byte_and_no_time(tmp_path: Path) -> None:
    logs = broker_logs(tmp_path)
    before = picture(logs)
    ask_everything(LogDir(OsDisk(), str(logs)))
    assert picture(logs) == before


def test_reading_takes_only_the_verbs_of_reading_and_stays_in_the_directory(broker: Path) -> None:
    disk = RecordingDisk()
    ask_everything(LogDir(disk, str(broker)))
    assert {verb for verb, _ in disk.asked} == {"names", "is_folder", "open", "read", "size"}
    assert all(path == str(broker) or path.startswith(f"{broker}/") for _, path in disk.asked)
