"""The files that fetches were answered from a moment ago, still open: most fetches go on in the same file."""

from typing import Final, NamedTuple

from local_log.batch_file import BatchFile
from tiering.read.tiered_log import Isolation, TieredLog

FILES_MAX: Final = 64


class _Recent(NamedTuple):
    """A log's file, which has the batches of the offsets from `start` to `stop`."""

    log: TieredLog
    file: BatchFile
    start: int
    stop: int


class RecentFiles:
    """One file of a log. For one thread, which has to `forget` them every second, so that files that are deleted are closed."""

    def __init__(self) -> None:
        self._of_log: dict[int, _Recent] = {}

    def batch_file(self, log: TieredLog, offset: int) -> BatchFile | None:
        """As `TieredLog.batch_file` for read_uncommitted, perhaps as it was a moment ago."""
        recent = self._of_log.get(id(log))
        if recent is not None and recent.log is log and recent.start <= offset < recent.stop:
            return recent.file
        file = log.batch_file(offset, Isolation.read_uncommitted)
        if file is None:
            return None
        is_same = recent is not None and recent.log is log and recent.file.name == file.name
        start = min(recent.start, offset) if recent is not None and is_same else offset
        stop = file.end_offset if file.next_offset is None else min(file.end_offset, file.next_offset)
        if len(self._of_log) >= FILES_MAX:
            self.forget()
        self._of_log[id(log)] = _Recent(log, file, start, stop)
        return file

    def forget(self) -> None:
        """Of all logs: they are opened anew."""
        self._of_log.clear()
