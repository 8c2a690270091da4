"""A log that its process writes, with its archive: appends, offloads, local retention and the archive's retention by hand."""

from dataclasses import replace
from typing import Any

from archive_fakes import CountingIds, FixedClock, MemoryStore
from logs_at_work import batch_of, settings
from small_logs import NOW, marker

from local_log.disk import WritableDisk
from local_log.engine.manager.retention import delete_old_segments
from local_log.engine.memory_records import memory_batches
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.formats.filenames import TopicPartition
from local_log.log_reader import LogReader
from local_log.log_reader import open_log as open_reader
from local_log.os_disk import OsWritableDisk
from remote import archive
from remote.keys import PartitionPath
from remote.read.context import ReadContext
from remote.store.api import ObjectStore
from remote.store.store_time import StoreRun
from tiering.offload.copy import OffloadRun, offload
from tiering.offload.due import plan
from tiering.read.live_log import LiveLog, archive_loader
from tiering.retention import expire as retention
from tiering.retention.local import held
from tiering.retention.plan import Policy

PARTITION = TopicPartition("orders", 0)


class OwnedLog:
    """One partition in `folder` and `store`. `batches` are those that were appended, in order, by base offset."""

    ids_prefix = ""
    """Of the ids that it makes: another one for each process that writes to one archive."""

    def __init__(self, folder: str, store: ObjectStore | None = None, disk: WritableDisk | None = None, **given: Any) -> None:
        self.disk = disk or OsWritableDisk()
        self.folder = f"{folder}/{PARTITION}"
        self.store = store or MemoryStore()
        self.config = settings(**{"segment_bytes": 600, "index_interval_bytes": 1, "remote_storage_enable": True} | given)
        self.ids = CountingIds(self.ids_prefix)
        self.batches: dict[int, bytes] = {}
        self.loads = 0
        archive.create_archive(self.store, FixedClock(), self.ids)
        self.log = self.opened()
        self.live = self.lived()

    def opened(self, start: int = 0, point: int = 0) -> UnifiedLog:
        """The log, opened as after a crash."""
        log = open_log(
            self.disk, self.folder, self.config, lambda: NOW, lambda: 0.5, log_start_offset=start, recovery_point=point
        )
        log.become_only_replica()
        return log

    def lived(self, reading: ReadContext | None = None) -> LiveLog:
        """A reader over both tiers, whose loads of the manifest are counted."""
        load = archive_loader(self.store, PartitionPath(PARTITION.topic, self.reader.topic_id, 0), reading or ReadContext())

        def counted() -> Any:
            self.loads += 1
            return load()

        return LiveLog(self.log, PARTITION, counted)

    @property
    def reader(self) -> LogReader:
        """The folder as the offload reads it."""
        log = self.log
        return open_reader(self.disk, self.folder, PARTITION, log.local_log_start_offset, log.high_watermark)

    def append(self, *batches: bytes, origin: Origin = Origin.CLIENT) -> None:
        """Appends batches, one at a time."""
        for one in batches:
            end = self.log.log_end_offset
            self.log.append_as_leader(one, 0, origin)
            self.batches[end] = self.log.local.read(end, 1 << 20, self.log.local.end).records

    def fill(self, count: int, *, time: int = NOW, step_ms: int = 0) -> None:
        """Appends so many batches of two records."""
        for number in range(count):
            offset = self.log.log_end_offset
            self.append(batch_of(f"{offset}".zfill(40), f"{offset + 1}".zfill(40), time=time + number * step_ms))

    def transaction(self, producer: int, batches: int, *, sequence: int = 0, commit: bool | None) -> None:
        """A transaction of batches of one record; it stays open where `commit` is None."""
        for number in range(batches):
            self.append(batch_of("x" * 80, producer=producer, sequence=sequence + number, transactional=True))
        if commit is not None:
            self.end_transaction(producer, commit=commit)

    def end_transaction(self, producer: int, *, commit: bool) -> None:
        """The marker that a coordinator writes."""
        self.append(marker(0, producer, commit=commit), origin=Origin.COORDINATOR)

    def offload(self) -> None:
        """Copies what is due."""
        run = OffloadRun(self.store, FixedClock(), self.ids, "source", lambda _: None)
        for done in offload(plan(self.reader, self.store), run):
            if done.error:
                raise done.error

    def drop(self, local_bytes: int = 0) -> int:
        """Local retention: keeps about so many bytes of what is archived."""
        self.log.highest_offset_in_archive = held(self.store, self.reader).through
        self.log.folder.config = replace(self.config, local_retention_bytes=local_bytes)
        return delete_old_segments(self.log, NOW)

    def drop_without_asking(self) -> None:
        """Local retention by what the log itself believes is archived."""
        self.log.folder.config = replace(self.config, local_retention_bytes=0)
        delete_old_segments(self.log, NOW)

    def archived_end(self) -> int:
        """The offset after the last archived one."""
        archived = archive_loader(self.store, PartitionPath(PARTITION.topic, self.reader.topic_id, 0), ReadContext())()
        return archived.end_offset if archived else 0

    def expire(self, retention_bytes: int, *, is_log_moved: bool = True) -> int:
        """The archive's retention; then the log starts where the archive does."""
        path = PartitionPath(PARTITION.topic, self.reader.topic_id, 0)
        manifest = retention.newest_manifest(self.store, path)
        policy = Policy(retention_bytes=retention_bytes, delete_delay_ms=0)
        due = retention.plan(manifest, self.store, policy, NOW)
        done = retention.expire(due, StoreRun(self.store, FixedClock(NOW), self.ids), "test")
        if done.error:
            raise done.error
        if is_log_moved:
            self.log.maybe_increment_log_start_offset(done.log_start_offset)
        return done.log_start_offset

    def expected(self, offset: int, end: int | None = None) -> bytes:
        """The batches from the one with an offset on, up to the batch that starts at `end`."""
        bases = [base for base in sorted(self.batches) if end is None or base < end]
        first = max((base for base in bases if base <= offset), default=None)
        return b"".join(self.batches[base] for base in bases if first is not None and base >= first)


def drained(live: LiveLog, offset: int, size: int = 300, **options: Any) -> bytes:
    """What fetches one after the other give: whole batches, each once."""
    found = b""
    while parts := live.fetch(offset, size, **options).read():
        whole = memory_batches(parts)
        found += parts[: sum(b.size for b in whole)]
        offset = whole[-1].last_offset + 1
    return found
