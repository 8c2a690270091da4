"""A log directory (one of `log.dirs`): a folder for each partition, and the checkpoint files for all of them."""

from collections.abc import Callable, Container, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass

from local_log.disk import Disk
from local_log.errors import Corrupt, NotFound, Unreadable, placed
from local_log.formats.checkpoints import read_offsets
from local_log.formats.filenames import (
    HIGH_WATERMARK_CHECKPOINT,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    TOPICS,
    TopicPartition,
    parse_partition_dir,
)
from local_log.log_reader import LogReader, open_log


@dataclass(frozen=True, slots=True)
class Unopened:
    """A partition whose folder cannot be read, and the operating system's error."""

    partition: TopicPartition
    error: Unreadable


@dataclass(frozen=True, slots=True)
class LogDir:
    """The log directory at `path`. Nothing is cached: each call reads the current files."""

    disk: Disk
    path: str

    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that have a folder here, sorted. Raises NotFound."""
        found = (parse_partition_dir(name) for name in self.disk.names(self.path) if self.disk.is_folder(f"{self.path}/{name}"))
        return tuple(sorted(p for p in found if p is not None))

    def partitions_of(self, topic: str) -> tuple[TopicPartition, ...]:
        """The partitions of one topic that have a folder here, sorted. Raises NotFound."""
        names = (name for name in self.disk.names(self.path) if name.startswith(f"{topic}-"))
        found = ((name, parse_partition_dir(name)) for name in names)
        return tuple(sorted(p for name, p in found if p and p.topic == topic and self.disk.is_folder(f"{self.path}/{name}")))

    def logs(self, wanted: Callable[[str], bool] = lambda topic: True) -> tuple[LogReader, ...]:
        """The logs of all partitions of the wanted topics, with their offsets from the checkpoint files.

        Raises NotFound, Corrupt, Unreadable.
        """
        return tuple(_opened(log) for log in self.found(wanted))

    def found(
        self, wanted: Callable[[str], bool] = lambda topic: True, only: Container[TopicPartition] | None = None
    ) -> tuple[LogReader | Unopened, ...]:
        """As `logs`, but a folder that cannot be read gives an Unopened and does not fail the others. `only` selects partitions.

        Raises NotFound, Corrupt and Unreadable for the directory itself or a checkpoint file.
        """
        return self._opened(lambda: (p for p in self.partitions() if wanted(p.topic) and (only is None or p in only)))

    def found_in(self, topic: str) -> tuple[LogReader | Unopened, ...]:
        """As `found`, for all partitions of one topic, without a look at the others."""
        return self._opened(lambda: self.partitions_of(topic))

    def found_of(self, partitions: Iterable[TopicPartition]) -> tuple[LogReader | Unopened, ...]:
        """As `found`, for these partitions in their order, without a listing of the directory. One without a folder is left out.

        Raises Corrupt and Unreadable for a checkpoint file.
        """
        return self._opened(lambda: partitions)

    def _opened(self, partitions: Callable[[], Iterable[TopicPartition]]) -> tuple[LogReader | Unopened, ...]:
        """The logs of the partitions, which are listed after the checkpoints were read."""
        high_watermarks = self.checkpoint(HIGH_WATERMARK_CHECKPOINT)
        starts = self.checkpoint(LOG_START_OFFSET_CHECKPOINT)  # later: what it does not tell yet is not replicated here
        found: list[LogReader | Unopened] = []
        for p in partitions():
            with suppress(NotFound):  # the topic has been deleted since the listing
                try:
                    found.append(self._log(p, starts.get(p), high_watermarks.get(p)))
                except Unreadable as e:
                    found.append(Unopened(p, e))
        return tuple(found)

    def _log(self, partition: TopicPartition, start: int | None, high_watermark: int | None) -> LogReader:
        return open_log(self.disk, f"{self.path}/{partition}", partition, start, high_watermark)

    def settle(self, partition: TopicPartition) -> None:
        """Has what is replicated of a log survive a loss of power, before it is archived. A broker's replicas see to that."""

    def deleted_to(self, partition: TopicPartition) -> int:
        """The offset below which users have deleted a log's records, as far as that is known: nothing tells it of a broker's."""
        return 0

    def check_mounted(self) -> None:
        """Raises Unreadable if the directory is empty or not there: of one that had partitions the disk is not mounted."""
        try:
            names = self.disk.names(self.path)
        except NotFound:
            names = []
        if not names:
            raise Unreadable(f"{self.path}: it is empty or not there; check whether its disk is mounted")

    def id(self) -> str:
        """The id that distinguishes this directory from other replicas': its `directory.id`, else its broker's id, else its path.

        Raises Corrupt if the file does not end with a line end: a truncated id may be another directory's.
        """
        return _id_of(self.properties()) or self.path

    def mounted_id(self) -> str:
        """As `id`. Raises Unreadable, too, if the directory is empty or not there: its disk may have another id."""
        found = _id_of(self.properties())
        if not found:
            self.check_mounted()
            found = _id_of(self.properties())  # the disk may have been mounted since
        return found or self.path

    def broker_id(self) -> str:
        """The id of the broker that owns the directory, "" if meta.properties does not say it. Raises Corrupt."""
        return _broker_id_of(self.properties())

    def properties(self) -> dict[str, str]:
        """The properties of the directory's meta.properties, none if it has no such file. Raises Corrupt."""
        file = f"{self.path}/{META_PROPERTIES}"
        try:
            text = self.disk.read(file).decode("utf-8", errors="replace")
        except NotFound:
            return {}
        if text and not text.endswith("\n"):
            raise Corrupt("expected a line's end after the last line; it was cut", file=file, position=len(text.encode()))
        return dict(line.partition("=")[::2] for line in text.splitlines() if not line.startswith("#"))

    def checkpoint(self, name: str) -> dict[TopicPartition, int]:
        """The offsets in a checkpoint file, none if the file is missing. Raises Corrupt, Unreadable."""
        file = f"{self.path}/{name}"
        try:
            with placed(file):
                return read_offsets(self.disk.read(file))
        except NotFound:
            return {}


def _id_of(properties: Mapping[str, str]) -> str:
    return properties.get("directory.id") or _broker_id_of(properties)


def _broker_id_of(properties: Mapping[str, str]) -> str:
    return properties.get("node.id") or properties.get("broker.id") or ""


def is_brokers(disk: Disk, directory: str) -> bool:
    """Whether the log directory is a broker's, so that its logs may have other replicas, rather than one of our own."""
    names = disk.names(directory)
    return META_PROPERTIES in names and TOPICS not in names


def is_new(disk: Disk, directory: str) -> bool:
    """Whether the folder has nothing that a log directory has: it is new, or it is a mount point without its disk."""
    names = disk.names(directory)
    return META_PROPERTIES not in names and TOPICS not in names and not LogDir(disk, directory).partitions()


def _opened(log: LogReader | Unopened) -> LogReader:
    if isinstance(log, Unopened):
        raise log.error
    return log
