from collections import Counter
from pathlib import Path

import pytest
from archive_fakes import FixedClock

from local_log.errors import NotFound
from local_log.formats.filenames import HIGH_WATERMARK_CHECKPOINT, TopicPartition
from local_log.os_disk import OsDisk
from tiering.endpoint.recent_log_dir import CHECKPOINT_MS_MAX, LIST_MS_MAX, RecentLogDir


class CountingDisk(OsDisk):
    """Counts what is listed and read, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    def names(self, folder: str) -> list[str]:
        self.asked[Path(folder).name] += 1
        return super().names(folder)

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        self.asked[Path(file).name] += 1
        return super().read(file, start, end)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("a-0", "a-1", "b-0"):
        (tmp_path / name).mkdir()
    (tmp_path / HIGH_WATERMARK_CHECKPOINT).write_text("0\n3\na 0 5\na 1 6\nb 0 7\n")
    return tmp_path


def test_the_directory_is_listed_once_in_a_while_for_all_topics(folder: Path) -> None:
    disk, clock = CountingDisk(), FixedClock()
    directory = RecentLogDir(disk, str(folder), clock=clock)
    assert directory.partitions() == tuple(TopicPartition(*p) for p in (("a", 0), ("a", 1), ("b", 0)))
    (folder / "c-0").mkdir()
    assert directory.partitions_of("a") == directory.partitions()[:2]
    assert (directory.partitions_of("c"), disk.asked[folder.name]) == ((), 1)
    clock.now += LIST_MS_MAX
    assert directory.partitions_of("c") == (TopicPartition("c", 0),)


def test_a_checkpoint_is_read_once_in_a_while_for_all_topics(folder: Path) -> None:
    disk, clock = CountingDisk(), FixedClock()
    directory = RecentLogDir(disk, str(folder), clock=clock)
    found = [log for topic in "ab" for log in directory.found_in(topic)]
    assert [log.checkpointed_high_watermark for log in found] == [5, 6, 7]
    assert disk.asked[HIGH_WATERMARK_CHECKPOINT] == 1
    (folder / HIGH_WATERMARK_CHECKPOINT).write_text("0\n1\na 0 8\n")
    clock.now += CHECKPOINT_MS_MAX
    assert [log.checkpointed_high_watermark for log in directory.found_in("a")] == [8, None]


def test_what_takes_long_to_read_is_kept_for_longer(folder: Path) -> None:
    class SlowDisk(CountingDisk):
        def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
            clock.now += 50
            return super().read(file, start, end)

    disk, clock = SlowDisk(), FixedClock()
    directory = RecentLogDir(disk, str(folder), clock=clock)
    directory.checkpoint(HIGH_WATERMARK_CHECKPOINT)
    for waited, reads in ((400, 1), (49, 1), (1, 2), (499 - 50, 2), (1, 3)):
        clock.now += waited
        directory.checkpoint(HIGH_WATERMARK_CHECKPOINT)
        assert disk.asked[HIGH_WATERMARK_CHECKPOINT] == reads


def test_what_cannot_be_read_is_tried_again(tmp_path: Path) -> None:
    directory = RecentLogDir(OsDisk(), str(tmp_path / "logs"), clock=FixedClock())
    for _ in range(2):
        with pytest.raises(NotFound):
            directory.partitions()
    (tmp_path / "logs" / "a-0").mkdir(parents=True)
    assert len(directory.partitions()) == 1
