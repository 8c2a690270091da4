"""Cleans the compacted logs, the dirtiest first, and deletes their old segments (LogCleaner, LogCleanerManager).

`run` starts jobs in the background, each of which cleans one log after the other until none needs it. The owner of the logs
pauses the cleaning of a log while it truncates or deletes it.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import NamedTuple

from local_log.engine.cleaner import CleaningAborted, DirtyPart, OffsetMap, clean, dirty_part
from local_log.engine.cleaner.throttle import Throttle
from local_log.engine.errors import UnknownServerError
from local_log.engine.manager.background import Background
from local_log.engine.manager.cleaner_offsets import CleanerOffsets
from local_log.engine.manager.cleaner_status import CleanerStats, CleanerStatus, Round, bytes_below
from local_log.engine.manager.cleaning_states import CleaningStates
from local_log.engine.manager.config import ManagerConfig
from local_log.engine.manager.guarded_disk import Offline
from local_log.engine.manager.managed_log import ManagedLog
from local_log.engine.manager.retention import KAFKAS, DeletionPolicy, delete_old_segments
from local_log.errors import Invalid, LogError
from local_log.formats.filenames import TopicPartition
from local_log.formats.primitives import INT32_MAX

_IO_BYTES_MIN = 1024


class Uncleanable(NamedTuple):
    """A log that an error has stopped the cleaner from cleaning, until its directory is opened anew."""

    managed: ManagedLog
    error: LogError


class LogCleaner:
    """Cleans the open logs, those of `logs`, by the settings log.cleaner.*; `policies` say which old segments go."""

    def __init__(
        self,
        config: ManagerConfig,
        now_ms: Callable[[], int],
        logs: Callable[[], Mapping[TopicPartition, ManagedLog]],
        background: Background,
        policies: Sequence[DeletionPolicy] = KAFKAS,
    ) -> None:
        self._config = config
        self._now_ms = now_ms
        self._logs = logs
        self._background = background
        self._policies = tuple(policies)
        self._threads = config.cleaner_threads if config.cleaner_enable else 0
        self._states = CleaningStates()
        self.offsets = CleanerOffsets(logs)
        self._throttle = Throttle(config.cleaner_io_max_bytes_per_second, now_ms, background.pause)
        self._uncleanable: dict[TopicPartition, Uncleanable] = {}
        self._errors: list[LogError] = []
        self._maps: list[OffsetMap] = []
        self._stats = CleanerStats(now_ms())
        self._lock = threading.Lock()

    # For the owner of the logs

    def run(self) -> None:
        """Cleans in the background what needs it, unless it still does so."""
        if self._threads and any(m.log.folder.config.compact for m in self._logs().values()):
            self._background.run(self._threads, self._clean_all)
        else:
            self._stats.looked(0, self._now_ms(), ())

    def take_errors(self) -> list[LogError]:
        """The errors since the last call."""
        with self._lock:
            errors, self._errors = self._errors, []
        return errors

    @property
    def uncleanable(self) -> dict[TopicPartition, LogError]:
        """The logs that the cleaner leaves alone since an error, with that error."""
        logs = self._logs()
        return {p: one.error for p, one in list(self._uncleanable.items()) if logs.get(p) is one.managed}

    def status(self, directories: Iterable[str]) -> CleanerStatus | None:
        """The metrics of Kafka's cleaner, for these log directories; None if the cleaner is disabled."""
        if not self._threads:
            return None
        uncleanable = dict.fromkeys(directories, (0, 0))
        now_ms, logs = self._now_ms(), self._logs()
        for partition in self.uncleanable:
            managed = logs.get(partition)
            if managed is not None:
                count, size = uncleanable.get(managed.directory.path, (0, 0))
                with suppress(LogError):  # what cannot be read is not counted, only that it is there
                    size += dirty_part(managed.log, self.offsets.get(partition), now_ms).cleanable_bytes
                uncleanable[managed.directory.path] = count + 1, size
        return self._stats.status(now_ms, uncleanable)

    def abort(self, partition: TopicPartition) -> None:
        """Ends the cleaning of a log, if it is under way, and waits for its end."""
        with self._states.paused(partition):
            pass

    @contextmanager
    def truncating(self, managed: ManagedLog, offset: int) -> Iterator[None]:
        """The log is truncated to `offset` inside. Its next round begins no later than at the active segment. Raises Offline."""
        needs_pause = offset < managed.log.local.segments.active.base_offset
        with self._states.paused(managed.partition) if needs_pause else nullcontext():
            yield
            if needs_pause:
                self.offsets.truncate(managed, managed.log.local.segments.active.base_offset)

    @contextmanager
    def deleting(self, managed: ManagedLog) -> Iterator[None]:
        """The log is removed from the open ones and deleted inside; what is known of it is forgotten. Raises Offline."""
        with self._states.paused(managed.partition):
            yield
            self.offsets.remove(managed)
            self._uncleanable.pop(managed.partition, None)

    def stop(self) -> None:
        """Ends all cleaning, and waits for its end."""
        self._states.stop()
        self._background.stop()

    # In the background

    def _clean_all(self) -> None:
        offsets = self._take_map()
        try:
            is_cleaned = True
            while is_cleaned:
                is_cleaned = self._clean_dirtiest(offsets)
                self._delete_old_segments()
        except BaseException:
            self._stats.died()
            raise
        finally:
            self._maps.append(offsets)

    def _take_map(self) -> OffsetMap:
        c = self._config
        with self._lock:
            if self._maps:
                return self._maps.pop()
        return OffsetMap(min(c.cleaner_dedupe_buffer_size // self._threads, INT32_MAX), c.cleaner_io_buffer_load_factor)

    def _clean_dirtiest(self, offsets: OffsetMap) -> bool:
        """Whether there was a log to clean."""
        found = [(part, managed) for managed in self._compacted() if (part := self._part(managed)) is not None]
        self._stats.looked(id(offsets), self._now_ms(), (part for part, _ in found))
        due = [(part.dirty_ratio, managed) for part, managed in found if _is_due(part, managed)]
        for _, managed in sorted(due, key=lambda one: -one[0]):
            with self._begun(managed) as is_begun:
                again = self._part(managed) if is_begun else None  # another thread may have just cleaned it
                if again is not None and _is_due(again, managed):
                    self._clean(managed, again, offsets)
                    return True
        return False

    def _compacted(self) -> list[ManagedLog]:
        stopped = self.uncleanable
        logs = list(self._logs().values())
        return [m for m in logs if m.log.folder.config.compact and m.is_online and m.partition not in stopped]

    def _part(self, managed: ManagedLog) -> DirtyPart | None:
        """What is dirty of a log; None after an error."""
        with self._reported(managed):
            part = dirty_part(managed.log, self.offsets.get(managed.partition), self._now_ms())
            if part.checkpoint_is_invalid:
                self.offsets.set(managed, part.first_dirty_offset)
            return part
        return None

    def _clean(self, managed: ManagedLog, part: DirtyPart, offsets: OffsetMap) -> None:
        with self._reported(managed):
            end, begun_ms, before = part.first_dirty_offset, self._now_ms(), _sizes(managed)
            managed.log.flush()  # markers above the cleaned part decide what goes, and a loss of power must not take them
            with suppress(CleaningAborted):
                end = clean(
                    managed.log,
                    part.first_dirty_offset,
                    part.first_uncleanable_offset,
                    offsets,
                    lambda size: self._on_io(managed.partition, size),
                    max(_IO_BYTES_MIN, self._config.cleaner_io_buffer_size // self._threads // 2),
                )
            self._states.check(managed.partition)
            self.offsets.set(managed, end)
            if end > part.first_dirty_offset:
                sizes = bytes_below(before, end), bytes_below(_sizes(managed), end)
                done = Round(*sizes, self._now_ms() - begun_ms, len(offsets) / offsets.slots)
                self._stats.cleaned(id(offsets), done)

    def _on_io(self, partition: TopicPartition, size: int) -> None:
        self._states.check(partition)
        self._throttle.passed(size)

    def _delete_old_segments(self) -> None:
        for managed in self._compacted():
            with self._begun(managed) as is_begun:
                if is_begun:
                    with self._reported(managed):
                        self._delete_old_segments_of(managed)

    def _delete_old_segments_of(self, managed: ManagedLog) -> None:
        try:
            delete_old_segments(managed.log, self._now_ms(), self._policies)
        except Invalid as e:  # a policy is at fault, not the log
            with self._lock:
                self._errors.append(e)

    @contextmanager
    def _begun(self, managed: ManagedLog) -> Iterator[bool]:
        """Whether the log may be cleaned inside; not if another thread does, if it is paused, or if it has been deleted."""
        if not self._states.begin(managed.partition):
            yield False
            return
        try:
            yield self._logs().get(managed.partition) is managed
        finally:
            self._states.end(managed.partition)

    @contextmanager
    def _reported(self, managed: ManagedLog) -> Iterator[None]:
        """An error inside makes the log uncleanable and is reported; not that of an offline directory, or of an abort."""
        try:
            yield
        except (CleaningAborted, Offline):
            pass
        except LogError as e:
            self._set_uncleanable(managed, e)
        except Exception as e:  # a fault of ours must not end the cleaning of all logs; Kafka leaves such a log alone, too
            error = UnknownServerError(f"{managed.partition}: cleaning failed, so the log is left alone: {type(e).__name__}: {e}")
            error.__cause__ = e
            self._set_uncleanable(managed, error)

    def _set_uncleanable(self, managed: ManagedLog, error: LogError) -> None:
        with self._lock:
            self._uncleanable[managed.partition] = Uncleanable(managed, error)
            self._errors.append(error)


def _is_due(part: DirtyPart, managed: ManagedLog) -> bool:
    return part.is_due(managed.log.folder.config.min_cleanable_dirty_ratio)


def _sizes(managed: ManagedLog) -> list[tuple[int, int]]:
    return [(segment.base_offset, segment.size) for segment in managed.log.local.segments]
