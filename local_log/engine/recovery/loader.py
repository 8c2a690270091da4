"""Loads a log's folder at startup: removes temporary files, opens segments, recovers unflushed ones (LogLoader).

    1  delete .deleted and .cleaned files, and each .swap at or after the lowest .cleaned offset: its cleaning had not finished
    2  delete the segments that a .swap replaces, and rename it
    3  delete index files without a log; open segments, and recover one whose index is missing or of another segment
    4  after an unclean shutdown recover the segments from the recovery point on; after a truncation drop all later ones
    5  restart the log at its start offset if it ends before it
    6  drop leader epochs and snapshots outside of the log, and rebuild the producers' state

A load that is killed and repeated has the same result: the segments after a damaged batch are deleted before the batch is
truncated, since a truncated segment looks valid.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from local_log.engine.epochs import LeaderEpochs
from local_log.engine.folder import LogFolder
from local_log.engine.index_file import CorruptIndex, InvalidOffset, OffsetOverflow
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.recovery.rebuild import rebuild_producers
from local_log.engine.recovery.segment import recover
from local_log.engine.recovery.split import split_overflowed
from local_log.engine.segment import Segment
from local_log.engine.segments import Segments
from local_log.errors import Invalid, NotFound
from local_log.formats.filenames import (
    CLEANED,
    DELETE_DIR,
    DELETED,
    LOG,
    OFFSET_INDEX,
    SWAP,
    TIME_INDEX,
    TXN_INDEX,
    offset_file,
    offset_of_file,
)
from local_log.formats.primitives import INT64_MAX

T = TypeVar("T")

_INDEXES = (OFFSET_INDEX, TIME_INDEX, TXN_INDEX)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The log start offset, the recovery point and the log end offset after the load."""

    log_start_offset: int
    recovery_point: int
    log_end_offset: int


class _Overflowed(Exception):
    def __init__(self, segment: Segment) -> None:
        self.segment = segment


@dataclass(slots=True)
class Loader:
    """One load of a log. `log_start_offset` and `recovery_point` come from the checkpoints; `new_producers` creates the state for
    the recovery of one segment; `on_progress` gets the number of segments to recover and of those that remain."""

    folder: LogFolder
    segments: Segments
    epochs: LeaderEpochs
    producers: ProducerStateManager
    new_producers: Callable[[], ProducerStateManager]
    log_start_offset: int
    recovery_point: int
    clean: bool
    on_progress: Callable[[int, int], None] = lambda all_of_them, left: None

    def load(self) -> Loaded:
        """Runs all steps. Raises Corrupt, Invalid and Refused where Kafka fails, too; Unreadable."""
        self._swap(self._remove_temporary_files())
        self._split_and_retry(self._open_segments)
        if self.folder.path.endswith(DELETE_DIR):
            if not len(self.segments):
                self.segments.add(self.folder.segment(0))
            point = end = 0
        else:
            point, end = self._split_and_retry(self._recover_unflushed)
            self.segments.active.resize_indexes(self.folder.config.segment_index_bytes)
        self.epochs.truncate_from_end(end)
        start = self.log_start_offset
        if not self.folder.config.remote_storage_enable:
            start = max(start, self.segments.first.base_offset)
        self.epochs.truncate_from_start(self.log_start_offset)
        self.producers.remove_stray_snapshots(self.segments.base_offsets)
        rebuild_producers(self.producers, self.segments, start, end, clean=self.clean)
        return Loaded(start, point, end)

    def _files(self) -> list[str]:
        return self.folder.disk.files(self.folder.path)

    def _delete(self, name: str) -> None:
        self.folder.disk.delete(f"{self.folder.path}/{name}")

    def _remove_temporary_files(self) -> list[str]:
        """Step 1; returns the .swap files of finished cleanings."""
        names = self._files()
        for name in names:
            if name.endswith(DELETED) and not name.endswith(".checkpoint.deleted"):
                self._delete(name)
        cleaned = [name for name in names if name.endswith(CLEANED)]
        first_cleaned = min((offset_of_file(name) for name in cleaned), default=INT64_MAX)
        swapped = [name for name in names if name.endswith(SWAP)]
        for name in swapped:
            if offset_of_file(name) >= first_cleaned:
                self._delete(name)
        for name in cleaned:
            self._delete(name)
        return [name for name in swapped if offset_of_file(name) < first_cleaned]

    def _swap(self, swapped: list[str]) -> None:
        first, end = INT64_MAX, -INT64_MAX - 1
        for name in swapped:
            if name.removesuffix(SWAP).endswith(LOG):
                segment = self.folder.segment(offset_of_file(name), SWAP)
                first = min(first, segment.base_offset)
                end = max(end, segment.read_next_offset())
        for name in self._files():
            try:
                if not name.endswith(SWAP) and first <= offset_of_file(name) < end:
                    self._delete(name)
            except Invalid:
                continue  # not a segment's file
        for name in self._files():
            if name.endswith(SWAP):
                path = f"{self.folder.path}/{name}"
                self.folder.disk.rename(path, path.removesuffix(SWAP))

    def _split_and_retry(self, step: Callable[[], T]) -> T:
        """Runs a step, and runs it again after it has split a segment with an offset overflow."""
        while True:
            try:
                return step()
            except _Overflowed as e:
                gone = split_overflowed(self.folder, self.segments, e.segment)
                self.folder.delete_snapshots_later(self.producers, gone)

    def _open_segments(self) -> None:
        self.segments.close()
        self.segments.clear()
        disk, path = self.folder.disk, self.folder.path
        for name in self._files():
            if name.endswith(_INDEXES):
                if not disk.exists(f"{path}/{offset_file(offset_of_file(name), LOG)}"):
                    self._delete(name)
            elif name.endswith(LOG):
                self.segments.add(self._opened(offset_of_file(name)))

    def _opened(self, base_offset: int) -> Segment:
        has_time_index = self.folder.disk.exists(f"{self.folder.path}/{offset_file(base_offset, TIME_INDEX)}")
        segment = self.folder.segment(base_offset)
        if not self.folder.disk.exists(segment.path(OFFSET_INDEX)):
            self._reindex(segment)
            return segment
        if not has_time_index:
            segment.time_index.resize(0)
        try:
            segment.txn_index.check()
        except CorruptIndex:
            self._reindex(segment)
        return segment

    def _reindex(self, segment: Segment) -> None:
        """Recovers a segment to rebuild its indexes. If the recovery is interrupted, the next start repeats it."""
        if not self.clean and segment.base_offset >= self.recovery_point:
            self._recover(segment)  # every start recovers it again until it is flushed
            return
        segment.hide_offset_index()
        self._recover(segment)
        segment.show_offset_index()

    def _recover(self, segment: Segment, behind: Sequence[Segment] = ()) -> int:
        producers = self.new_producers()
        rebuild_producers(producers, self.segments, self.log_start_offset, segment.base_offset, clean=False)
        try:
            truncated = recover(segment, producers, self.epochs, lambda: self._remove(behind))
        except OffsetOverflow:
            raise _Overflowed(segment) from None
        producers.take_snapshot()
        return truncated

    def _recover_unflushed(self) -> tuple[int, int]:
        """Steps 4 and 5; returns the new recovery point and the log end offset."""
        if not self.clean:
            unflushed = self.segments.between(self.recovery_point, INT64_MAX)
            for at, segment in enumerate(unflushed):
                behind = unflushed[at + 1 :]
                self.on_progress(len(unflushed), len(unflushed) - at)
                try:
                    truncated = self._recover(segment, behind)
                except (InvalidOffset, NotFound):
                    if segment.translate(segment.base_offset) is not None:
                        self._remove(behind)
                    truncated = segment.truncate_to(segment.base_offset)
                if truncated > 0:
                    break
            self.on_progress(len(unflushed), 0)
        end = self._end_unless_before_start()
        if not len(self.segments):
            self.segments.add(self.folder.segment(self.log_start_offset))
        if self.clean and end is not None:
            return end, end
        end = self.segments.active.read_next_offset() if end is None else end
        return min(self.recovery_point, end), end

    def _end_unless_before_start(self) -> int | None:
        if not len(self.segments):
            return None
        end = self.segments.active.read_next_offset()
        if end >= self.log_start_offset:
            return end
        self._remove(list(self.segments))
        self.epochs.clear()
        self.producers.truncate_fully_and_start_at(self.log_start_offset)
        return None

    def _remove(self, segments: Sequence[Segment]) -> None:
        self.segments.remove(*(s.base_offset for s in segments))
        self.folder.delete_later(segments)
        self.folder.delete_snapshots_later(self.producers, segments)
        if segments:
            self.folder.disk.sync_folder(self.folder.path)
