"""The segments of an archived partition that fetches have asked for, found by offset: no entry is looked for twice."""

import threading
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple

from local_log.batch_file import BatchFile
from remote.manifest.segment_entry import SegmentEntry
from remote.store.api import FileOpener

SEGMENTS_MAX: Final = 1024
"""Some 500 bytes each. Beyond, all are looked up again."""


class SegmentFile(NamedTuple):
    """The offsets `[start, end)`, which the plan of a read takes from this segment, and how its file is opened.

    `opener` is None if the segment is in no file as it is. Nothing here refers to the log, so that both go when the log does.
    """

    start: int
    end: int
    name: str
    opener: FileOpener | None
    entry: SegmentEntry

    def batch_file(self, end_offset: int, position_of: Callable[[SegmentEntry, int], int]) -> BatchFile | None:
        """The file, opened, with its batches below `end_offset`. Raises as the opener does."""
        if self.opener is None:
            return None
        end = min(self.end, end_offset)
        return tuple.__new__(
            BatchFile, (self.name, self.opener(), partial(position_of, self.entry), end, end, self.entry.log_size)
        )


@dataclass(slots=True)
class SegmentFiles:
    """Of one manifest version, for many threads."""

    _kept: tuple[list[int], list[SegmentFile]] = ([], [])
    """By start; both lists are replaced and never changed."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def find(self, offset: int) -> SegmentFile | None:
        """The one with an offset, None if it has not been looked up yet."""
        starts, files = self._kept
        at = bisect_right(starts, offset) - 1
        return files[at] if at >= 0 and offset < files[at].end else None

    def keep(self, file: SegmentFile) -> None:
        """To be found from now on."""
        with self._lock:
            _, files = self._kept
            others = [kept for kept in files if kept.start != file.start] if len(files) < SEGMENTS_MAX else []
            ordered = sorted((*others, file), key=lambda kept: kept.start)
            self._kept = [kept.start for kept in ordered], ordered
