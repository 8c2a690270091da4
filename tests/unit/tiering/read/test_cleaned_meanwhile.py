"""A read of a broker's log directory whose cleaner puts a segment in the place of another while it is read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from logs_at_work import Log, batch_of, settings
from small_logs import Clock, marker

from local_log.engine.cleaner import OffsetMap, clean
from local_log.errors import NotFound
from local_log.file_range import FileRange
from local_log.formats.batches import scan
from local_log.formats.filenames import TopicPartition
from local_log.log_reader import open_log
from local_log.os_disk import OsDisk
from tiering.endpoint.reads import Reads
from tiering.read.tiered_log import Isolation, TieredLog

DELETE_RETENTION_MS = 1_000


class Disturbed(OsDisk):
    """A disk on which something happens after `at` calls that read a file."""

    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self.at, self.happens = 0, happens

    def open(self, file: str):  # type: ignore[no-untyped-def]  # as that of OsDisk
        opened = super().open(file)
        self._called()
        return opened

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        body = super().read(file, start, end)
        self._called()
        return body

    def _called(self) -> None:
        self.at -= 1
        if self.at == 0:
            self.happens()


def log_of(folder: Path) -> Log:
    """Aborted and committed records in an inactive segment, and a record in the active one."""
    folder.mkdir()
    log = Log(folder, settings(segment_bytes=4_000, index_interval_bytes=1, delete_retention_ms=DELETE_RETENTION_MS), Clock())
    for n in range(6):
        log.follow(batch_of("gone", keys=(b"a",), offset=3 * n, producer=1, sequence=n, transactional=True))
        log.follow(marker(3 * n + 1, 1, commit=False))
        log.follow(batch_of("kept", keys=(b"b%d" % n,), offset=3 * n + 2))
    log.log.roll()
    log.follow(batch_of("last", keys=(b"c",), offset=18))
    log.log.update_high_watermark(19)
    return log


def cleaned(log: Log) -> None:
    """Until the markers and their index entries are gone, too."""
    for _ in range(3):
        clean(log.log, 0, 18, OffsetMap(2_400))
        log.clock.sleep(DELETE_RETENTION_MS)


def read_from_file(log: TieredLog) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    found = Reads().read(log, 0, 1 << 20, Isolation.read_committed, one_at_least=True)
    parts = (part.read() if isinstance(part, FileRange) else bytes(part) for part in found.parts)
    return b"".join(parts), tuple((t.first_offset, t.last_offset) for t in found.aborted or ())


def fetch(log: TieredLog) -> tuple[bytes, tuple[tuple[int, int], ...]]:
    found = log.fetch(0, 1 << 20, Isolation.read_committed)
    return found.records, tuple((t.first_offset, t.last_offset) for t in found.aborted)


@pytest.mark.parametrize("read", [read_from_file, fetch])
def test_all_aborted_transactions_of_what_is_read_are_told(
    tmp_path: Path, read: Callable[[TieredLog], tuple[bytes, tuple[tuple[int, int], ...]]]
) -> None:
    given = 0
    for at in range(1, 60):
        log = log_of(tmp_path / f"orders-{at}")
        disk = Disturbed(lambda log=log: cleaned(log))  # type: ignore[misc]
        reader = open_log(disk, str(log.folder), TopicPartition("orders", at), 0, 19)
        assert reader.last_stable_offset == 19
        disk.at = at
        try:
            data, aborted = read(TieredLog(reader, None))
        except NotFound:
            assert disk.at <= 0
            continue
        batches, _ = scan(data)
        of_producer = batches[(batches.header["producer_id"] == 1) & ~batches.is_control & (batches.count > 0)]
        given += len(of_producer)
        for offset in of_producer.base_offset.tolist():
            assert any(first <= offset <= last for first, last in aborted), (at, offset)
        if disk.at > 0:
            break
    assert disk.at > 0
    assert given
