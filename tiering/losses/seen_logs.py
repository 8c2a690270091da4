"""A state file of the logs that an offload saw in a log directory, for the next offload.

With it an offload detects logs that have disappeared, and skips the store for logs that have not changed. There is one small
file for each pair of log directory and archive. If it is lost, a log that disappears before the next offload is not detected.
A damaged one is not overwritten: the next save renames it.
"""

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from hashlib import sha256
from typing import Any, Final

from local_log.disk import WritableDisk, make_missing_folder, replace_file
from local_log.errors import Corrupt, NotFound
from local_log.formats.filenames import TopicPartition, parse_partition_dir
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from remote.clock import Clock

FORMAT: Final = 1
SUFFIX: Final = ".json"
DAMAGED: Final = ".damaged"
"""What is appended to the name of a damaged state file."""
RECORDED_MS_MAX: Final = 86_400_000
"""After this time the manifest is read again even if the log has not changed, because another writer may have changed it."""
_ATTEMPTS_MAX: Final = 40
_WAIT_SECONDS: Final = 0.05


@dataclass(frozen=True, slots=True)
class SeenLog:
    """The last seen state of a log. `single_base` is the base offset of its only segment, None if it has several.

    `end_offset` is the checkpointed high watermark, or the log end offset without one. `recorded_ms` is when the manifest was
    last known to have this state, 0 for never.
    """

    topic_id: str
    start_offset: int
    end_offset: int
    single_base: int | None
    recorded_ms: int

    @classmethod
    def of(cls, log: LogReader, recorded_ms: int) -> "SeenLog":
        """The current state of a log. Raises LogError."""
        high_watermark = log.checkpointed_high_watermark
        end = max(log.log_start_offset, log.log_end_offset if high_watermark is None else high_watermark)
        return cls(log.topic_id, log.log_start_offset, end, _single_base(log), recorded_ms)

    def is_recorded(self, log: LogReader, now_ms: int) -> bool:
        """Whether the manifest is up to date, because only the active segment has grown since. Raises LogError."""
        is_fresh = self.recorded_ms > 0 and 0 <= now_ms - self.recorded_ms < RECORDED_MS_MAX
        if not is_fresh or self.single_base is None or self.single_base != _single_base(log):
            return False
        return (self.topic_id, self.start_offset) == (log.topic_id, log.log_start_offset)


SeenLogs = Mapping[TopicPartition, SeenLog]


@dataclass(frozen=True, slots=True)
class SeenFile:
    """The state file. Several processes may use it concurrently."""

    disk: WritableDisk
    folder: str
    name: str

    @classmethod
    def of(cls, disk: WritableDisk, folder: str, log_dir: LogDir, source: str, archive: str) -> "SeenFile":
        """The state file of a log directory, whose id is `source`, and an archive.

        Its name includes the path, because without `directory.id` the directories of one broker share an id.
        """
        digest = sha256("\n".join((source, disk.real_path(log_dir.path), archive)).encode()).hexdigest()
        return cls(disk, folder, f"logs-{digest[:16]}{SUFFIX}")

    def load(self) -> dict[TopicPartition, SeenLog]:
        """The saved states; empty if the file is missing. Raises Corrupt, Unreadable."""
        file = f"{self.folder}/{self.name}"
        try:
            return _read(json.loads(self.disk.read(file)))
        except NotFound:
            return {}
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as e:
            problem = (
                f"expected a state file of format {FORMAT} ({type(e).__name__}: {e}); partitions that have disappeared since it "
                f"was saved are not noticed; the next save keeps it as {self.name}{DAMAGED}"
            )
            raise Corrupt(problem, file=file, position=getattr(e, "pos", 0)) from e

    def save(self, changes: Mapping[TopicPartition, SeenLog | None], clock: Clock) -> None:
        """Saves changed states and deletes those that are None; keeps what other processes have saved. Raises Unreadable."""
        if not changes:
            return
        make_missing_folder(self.disk, self.folder)
        lock = f"{self.folder}/{self.name}.lock"
        is_mine = self._lock(lock, clock)
        try:
            kept: dict[TopicPartition, SeenLog | None] = {**self._load_or_rename(), **changes}
            logs = {str(p): [*astuple(seen)] for p, seen in kept.items() if seen is not None}
            if not logs:
                self.disk.delete(f"{self.folder}/{self.name}")
                return
            body = json.dumps({"format": FORMAT, "logs": logs}, sort_keys=True, indent=1)
            replace_file(self.disk, f"{self.folder}/{self.name}", body.encode() + b"\n")
        finally:
            if is_mine:
                self.disk.unlock(lock)

    def _load_or_rename(self) -> dict[TopicPartition, SeenLog]:
        try:
            return self.load()
        except Corrupt:  # whoever loaded it has told
            file = f"{self.folder}/{self.name}"
            self.disk.rename(file, f"{file}{DAMAGED}")
            return {}

    def _lock(self, lock: str, clock: Clock) -> bool:
        """Tries to lock for a bounded time: the file is only a hint, so it is written without the lock after that."""
        for _ in range(_ATTEMPTS_MAX):
            if self.disk.lock(lock):
                return True
            clock.sleep(_WAIT_SECONDS)
        return False


def _single_base(log: LogReader) -> int | None:
    return log.segments[0].base_offset if len(log.segments) == 1 else None


def _read(body: dict[str, Any]) -> dict[TopicPartition, SeenLog]:
    if body["format"] != FORMAT:
        raise ValueError(f"format {body['format']}")
    return {p: _seen(of) for name, of in body["logs"].items() if (p := parse_partition_dir(name)) is not None}


def _seen(of: list[Any]) -> SeenLog:
    topic_id, start, end, single_base, recorded_ms = of
    return SeenLog(str(topic_id), int(start), int(end), None if single_base is None else int(single_base), int(recorded_ms))
