"""One of log.dirs: its lock, folders, checkpoint files and clean shutdown file. The log manager has the logs in it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from local_log.disk import WritableDisk, make_missing_folder, replace_file
from local_log.engine.manager.guarded_disk import GuardedDisk, Offline
from local_log.errors import Corrupt, Invalid, LogError, NotFound
from local_log.formats.checkpoints import read_offsets, write_offsets
from local_log.formats.clean_shutdown import read_broker_epoch, write_clean_shutdown
from local_log.formats.filenames import (
    CLEAN_SHUTDOWN,
    CLEANER_OFFSET_CHECKPOINT,
    CLUSTER_METADATA_TOPIC,
    HIGH_WATERMARK_CHECKPOINT,
    LOCK,
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    REMOTE_INDEX_CACHE_DIR,
    LogDirName,
    TopicPartition,
    parse_log_dir,
)

Offsets = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class Checkpoints:
    """The content of a directory's checkpoint files. A damaged file counts as empty; `damaged` has its error."""

    recovery_points: Offsets
    log_start_offsets: Offsets
    high_watermarks: Offsets
    cleaner_offsets: Offsets = field(default_factory=dict)
    damaged: tuple[Corrupt, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """A folder of a log directory: its path and its parsed name."""

    path: str
    name: LogDirName


@dataclass(slots=True)
class DataDir:
    """The log directory at `path`. After the first failure of its disk it is offline, and its lock is released."""

    path: str
    disk: GuardedDisk
    was_clean: bool = False
    broker_epoch: int | None = None
    """The epoch of the broker at the last clean shutdown, if the clean shutdown file has it."""
    said: Checkpoints = field(default_factory=lambda: Checkpoints({}, {}, {}))
    """The content of the checkpoint files at startup."""
    unopened: set[TopicPartition] = field(default_factory=set)
    """The partitions with a folder here whose log is not opened, or not yet."""
    _written: dict[str, Offsets] = field(default_factory=dict)

    @property
    def failure(self) -> Offline | None:
        """Why the directory is offline; None while it is not."""
        return self.disk.failure

    def lock(self) -> None:
        """Creates the directory if it is missing, and locks it. Raises Invalid if another process has the lock; Offline."""
        if not self.disk.exists(self.path):
            make_missing_folder(self.disk, self.path)
        if not self.disk.is_folder(self.path):
            raise self.disk.fail("it is not a folder")
        if not self.disk.lock(f"{self.path}/{LOCK}"):
            raise Invalid(
                f"{self.path}: a broker or another process of ours is using this log directory (it has the lock of {LOCK}); "
                "stop it first, or name another directory"
            )
        self.disk.sync_folder(self.path)  # who has created the folder of a log may have been killed before its name was synced

    def unlock(self) -> None:
        """Unlocks the directory. Raises Offline."""
        self.disk.unlock(f"{self.path}/{LOCK}")

    # Clean shutdown

    def consume_clean_shutdown_file(self) -> None:
        """Reads and deletes the clean shutdown file, so that a crash from now on is seen as one. Raises Offline."""
        file = f"{self.path}/{CLEAN_SHUTDOWN}"
        self.was_clean, self.broker_epoch = False, None
        with suppress(NotFound):
            self.broker_epoch = read_broker_epoch(self.disk.read(file))
            self.was_clean = True
        if self.disk.delete(file):
            self.disk.sync_folder(self.path)

    def write_clean_shutdown_file(self, broker_epoch: int) -> None:
        """Writes the clean shutdown file: every log in the directory is closed. Raises Offline."""
        replace_file(self.disk, f"{self.path}/{CLEAN_SHUTDOWN}", write_clean_shutdown(broker_epoch))

    # Folders

    def folders(self) -> tuple[Found, ...]:
        """The folders of logs. Raises Offline; Invalid for a folder that is not a log's, as Kafka does."""
        paths = {name: f"{self.path}/{name}" for name in self.disk.names(self.path) if name != REMOTE_INDEX_CACHE_DIR}
        names = {name: parse_log_dir(name) for name, path in paths.items() if self.disk.is_folder(path)}
        foreign = [paths[name] for name, parsed in names.items() if parsed is None]
        if foreign:
            raise Invalid(
                f"{foreign[0]}: not a partition's folder (topic-number, or topic-number.id-delete, -future or -stray); "
                "move it away, since a log directory holds nothing else"
            )
        found = (Found(paths[name], parsed) for name, parsed in names.items() if parsed is not None)
        return tuple(f for f in found if f.name.partition.topic != CLUSTER_METADATA_TOPIC)

    def rename(self, path: str, name: str) -> str:
        """Renames the folder of a log that is not open; returns its new path. Raises Offline."""
        renamed = f"{self.path}/{name}"
        self.disk.rename(path, renamed)
        self.disk.sync_folder(self.path)
        return renamed

    # Checkpoints

    def read_checkpoints(self) -> None:
        """Reads the checkpoint files into `said`; a missing file counts as empty. Raises Offline."""
        damaged: list[Corrupt] = []
        names = (
            RECOVERY_POINT_CHECKPOINT, LOG_START_OFFSET_CHECKPOINT, HIGH_WATERMARK_CHECKPOINT, CLEANER_OFFSET_CHECKPOINT
        )  # fmt: skip
        points, starts, high_watermarks, cleaner_offsets = (self._read(name, damaged) for name in names)
        self.said = Checkpoints(points, starts, high_watermarks, cleaner_offsets, tuple(damaged))
        self._written = {}

    def _read(self, name: str, damaged: list[Corrupt]) -> Offsets:
        file = f"{self.path}/{name}"
        try:
            return read_offsets(self.disk.read(file))
        except NotFound:
            return {}
        except Corrupt as e:
            damaged.append(e.at(file))
            return {}

    def write_recovery_points(self, offsets: Offsets) -> None:
        """Writes the recovery points, the offsets up to which each log is flushed. Raises Offline."""
        self._write(RECOVERY_POINT_CHECKPOINT, offsets, self.said.recovery_points)

    def write_log_start_offsets(self, offsets: Offsets) -> None:
        """Writes the log start offsets that differ from the base offset of the first segment. Raises Offline."""
        self._write(LOG_START_OFFSET_CHECKPOINT, offsets, self.said.log_start_offsets)

    def write_high_watermarks(self, offsets: Offsets) -> None:
        """Writes the high watermarks of all logs in the directory. Raises Offline."""
        self._write(HIGH_WATERMARK_CHECKPOINT, offsets, self.said.high_watermarks)

    def write_cleaner_offsets(self, offsets: Offsets) -> None:
        """Writes the offsets up to which the compacted logs are clean. Raises Offline."""
        self._write(CLEANER_OFFSET_CHECKPOINT, offsets, self.said.cleaner_offsets)

    def _write(self, name: str, offsets: Offsets, said: Offsets) -> None:
        # A log that could not be opened keeps its entry, which is valid again once the log is repaired.
        offsets = {p: said[p] for p in self.unopened if p in said} | dict(offsets)
        if self._written.get(name) != offsets:  # most checkpoints are unchanged since the last write
            replace_file(self.disk, f"{self.path}/{name}", write_offsets(offsets))
            self._written[name] = offsets


def open_data_dir(disk: WritableDisk, path: str) -> DataDir:
    """The directory at `path`, not locked yet. If its disk fails, its lock and its open files are released."""

    def release() -> None:
        with suppress(LogError):
            disk.unlock(f"{path}/{LOCK}")
        disk.release(path)

    return DataDir(path, GuardedDisk(disk, path, release))
