"""A log directory: its partitions, its checkpoint files, and that reading it leaves no trace."""

from pathlib import Path

import pytest
from golden_logs import broker_logs, partitions

from local_log.errors import Corrupt, NotFound, Unreadable
from local_log.formats.filenames import TopicPartition
from local_log.formats.records import record_batches
from local_log.log_dir import LogDir, Unopened
from local_log.storage import OsDisk


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

    def modified_ms(self, file: str) -> int:
        self.asked.add(("modified_ms", file))
        return self.disk.modified_ms(file)

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        self.asked.add(("read", file))
        return self.disk.read(file, start, end)


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


def test_reading_changes_no_byte_and_no_time(tmp_path: Path) -> None:
    logs = broker_logs(tmp_path)
    before = picture(logs)
    ask_everything(LogDir(OsDisk(), str(logs)))
    assert picture(logs) == before


def test_reading_takes_only_the_verbs_of_reading_and_stays_in_the_directory(broker: Path) -> None:
    disk = RecordingDisk()
    ask_everything(LogDir(disk, str(broker)))
    assert {verb for verb, _ in disk.asked} == {"names", "is_folder", "size", "read"}
    assert all(path == str(broker) or path.startswith(f"{broker}/") for _, path in disk.asked)
