"""The log directory that a restore writes: its lock, the check of existing folders, and the checkpoint files.

During a restore the directory contains a folder that is not a partition's. A broker refuses to start on such a directory, and
so does our engine, so neither starts on an incomplete restore.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from local_log.disk import WritableDisk, has_content, make_missing_folder, replace_file
from local_log.errors import Invalid, NotFound, placed
from local_log.formats.checkpoints import read_offsets, write_offsets
from local_log.formats.filenames import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARK_CHECKPOINT,
    LEADER_EPOCH_CHECKPOINT,
    LOCK,
    LOG,
    LOG_START_OFFSET_CHECKPOINT,
    META_PROPERTIES,
    PARTITION_METADATA,
    RECOVERY_POINT_CHECKPOINT,
    TopicPartition,
    offset_file,
    parse_offset_file,
)
from local_log.formats.partition_metadata import read_topic_id
from local_log.formats.record import NO_TIMESTAMP
from remote.segment.download import CutLog
from remote.segment_bytes import SegmentBytes
from tiering.restore.open_transactions import is_active_segment
from tiering.restore.plan import RestorePlan

UNFINISHED = "tiering-restore-unfinished"
_MARKERS_BYTES_MAX = 16 << 20


@dataclass(frozen=True, slots=True)
class StagedPartition:
    """A partition whose staging folder is complete. `first_base` is the base offset of its first segment."""

    partition: TopicPartition
    first_base: int
    log_start_offset: int
    log_end_offset: int


@dataclass(frozen=True, slots=True)
class RestoreTarget:
    """A locked log directory. Use `open_target` to make one."""

    disk: WritableDisk
    path: str

    def staging(self, partition: TopicPartition) -> str:
        """The staging folder of a partition."""
        return f"{self.path}/{UNFINISHED}/{partition}"

    def stage(self, plan: RestorePlan, source: SegmentBytes) -> str:
        """Creates the staging folder, with the files of an earlier restore if there are any; returns its path.

        Raises Invalid if the partition's folder has other files than the archive's; Corrupt, Unavailable, Unreadable.
        """
        folder, staging = f"{self.path}/{plan.partition}", self.staging(plan.partition)
        if self.disk.exists(folder):
            check_replaceable(self.disk, folder, plan, source)
        self.disk.make_folder(f"{self.path}/{UNFINISHED}")
        self.disk.sync_folder(self.path)  # from here on no broker starts
        if self.disk.exists(folder):
            if self.disk.exists(staging):
                self.disk.delete_folder(staging)
            self.disk.rename(folder, staging)
        else:
            self.disk.make_folder(staging)
        self.disk.sync_folder(f"{self.path}/{UNFINISHED}")
        return staging

    def finish(self, staged: Iterable[StagedPartition]) -> None:
        """Updates the checkpoint files, renames the staging folders, and makes the directory usable for brokers.

        The clean-shutdown file is deleted: with it a broker would trust the producer snapshots, and a log without them would
        have no producers. Recovery then reads only what is after the recovery point, the end of the log.
        """
        done = tuple(staged)
        if not done:
            return
        ends = {s.partition: s.log_end_offset for s in done}
        self._replace_offsets(RECOVERY_POINT_CHECKPOINT, ends)
        self._replace_offsets(HIGH_WATERMARK_CHECKPOINT, ends)
        starts = {s.partition: s.log_start_offset if s.log_start_offset > s.first_base else None for s in done}
        self._replace_offsets(LOG_START_OFFSET_CHECKPOINT, starts)
        self.disk.delete(f"{self.path}/{CLEAN_SHUTDOWN}")
        for s in done:
            self.disk.rename(self.staging(s.partition), f"{self.path}/{s.partition}")
        self.disk.sync_folder(self.path)
        unfinished = f"{self.path}/{UNFINISHED}"
        if self.disk.is_folder(unfinished):
            self.disk.sync_folder(unfinished)
            if not self.disk.names(unfinished):
                self.disk.delete_folder(unfinished)
                self.disk.sync_folder(self.path)

    def _replace_offsets(self, name: str, offsets: Mapping[TopicPartition, int | None]) -> None:
        """Replaces the lines of these partitions in a checkpoint file; None removes the line."""
        file = f"{self.path}/{name}"
        try:
            with placed(file):
                known = read_offsets(self.disk.read(file))
        except NotFound:
            known = {}
        kept = {p: offset for p, offset in known.items() if p not in offsets}
        replace_file(self.disk, file, write_offsets(kept | {p: offset for p, offset in offsets.items() if offset is not None}))

    def write_properties(self, cluster_id: str, node_id: int) -> None:
        """Writes meta.properties for a broker. Raises Invalid if the file is another broker's."""
        file = f"{self.path}/{META_PROPERTIES}"
        wanted = {"version": "1", "cluster.id": cluster_id, "node.id": str(node_id)}
        try:
            lines = self.disk.read(file).decode("utf-8", errors="replace").splitlines()
        except NotFound:
            replace_file(self.disk, file, "".join(f"{name}={value}\n" for name, value in wanted.items()).encode())
            return
        found = dict(line.partition("=")[::2] for line in lines if not line.startswith("#"))
        differ = {name: value for name, value in wanted.items() if found.get(name) != value}
        if differ:
            theirs = {name: found.get(name) for name in differ}
            raise Invalid(f"{file} says {theirs}, not {differ}; leave --cluster-id and --node-id out, or give another directory")


@contextmanager
def open_target(disk: WritableDisk, path: str) -> Iterator[RestoreTarget]:
    """Creates the directory if needed, and locks it. Raises Invalid if a broker uses it, Unreadable."""
    if disk.exists(path) and not disk.is_folder(path):
        raise Invalid(f"{path} is a file; name a folder")
    make_missing_folder(disk, path)
    lock = f"{path}/{LOCK}"
    if not disk.lock(lock):
        raise Invalid(f"{path}: a broker or another process of ours is using this log directory (it has {lock}); stop it first")
    try:
        yield RestoreTarget(disk, path)
    finally:
        disk.unlock(lock)


def check_replaceable(disk: WritableDisk, folder: str, plan: RestorePlan, source: SegmentBytes) -> None:
    """Raises Invalid unless every log file of the folder is empty or exactly what the plan would write."""

    def refuse(why: str) -> Invalid:
        return Invalid(f"{folder}: {why}; nothing in it was changed: move it away, or restore into another directory")

    names = disk.names(folder)
    foreign = [n for n in names if parse_offset_file(n) is None and n not in (LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA)]
    if foreign:
        raise refuse(f"{foreign[0]} is not from the archive")
    if PARTITION_METADATA in names:
        with placed(f"{folder}/{PARTITION_METADATA}"):
            topic_id = read_topic_id(disk.read(f"{folder}/{PARTITION_METADATA}"))
        if topic_id != plan.topic_id:
            raise refuse(
                f"its topic has the id {topic_id}, and {plan.topic_id} would be restored (--topic-id "
                f"{plan.partition.topic}={topic_id} restores under the id that is there)"
            )
    logs = {n for n in names if n.endswith(LOG) and disk.size(f"{folder}/{n}")}
    if not logs:
        return
    for link in plan.links():
        name = offset_file(link.start, LOG)
        if name in logs:
            size, crc = link.entry.log_size, link.entry.log_crc32c
            if not link.is_whole:
                cut = CutLog(source, plan.manifest.path, link)
                for _ in cut.parts():
                    pass
                size, crc = cut.size, cut.crc32c
            if has_content(disk, f"{folder}/{name}", size, crc):
                logs.discard(name)
    other = next((n for n in sorted(logs) if not _is_restored_active_segment(disk, folder, n, plan)), None)
    if other is not None:
        raise refuse(f"{other} has other bytes than the archive would give it")


def _is_restored_active_segment(disk: WritableDisk, folder: str, name: str, plan: RestorePlan) -> bool:
    """Whether a log file is the active segment of an earlier restore, from an earlier state of the archive."""
    parsed, file = parse_offset_file(name), f"{folder}/{name}"
    if parsed is None or disk.size(file) > _MARKERS_BYTES_MAX:
        return False
    before = (link.entry.max_timestamp_ms for link in plan.links() if link.start < parsed[0])
    return is_active_segment(disk.read(file), parsed[0], max(before, default=NO_TIMESTAMP))
