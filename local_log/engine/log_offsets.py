"""The offsets of an open log, the lock of its owner, and how a change of them reaches its readers."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from local_log.engine.epochs import LeaderEpochs
from local_log.engine.folder import LogFolder
from local_log.engine.local_log import LocalLog
from local_log.engine.offsets import LogOffsets, OffsetMetadata
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.published import PublishedOffsets, locate
from local_log.engine.waiters import Waiters, Wake
from local_log.errors import Invalid, OffsetOutOfRange
from local_log.formats.primitives import INT64_MAX

P = ParamSpec("P")
R = TypeVar("R")

L = TypeVar("L", bound="LogWithOffsets")

_NOWHERE = OffsetMetadata(0)


def by_owner(change: "Callable[Concatenate[L, P], R]") -> "Callable[Concatenate[L, P], R]":
    """A method that holds the lock. At the end of the outermost one the offsets are published, and waiters woken."""

    @wraps(change)
    def owned(self: L, /, *args: P.args, **options: P.kwargs) -> R:
        moves, is_outermost = self.published.moves, False
        try:
            with self.lock:
                is_outermost = not self._changes
                self._changes += 1
                try:
                    return change(self, *args, **options)
                finally:
                    self._changes -= 1
                    if is_outermost:
                        self.publish()
        finally:
            if is_outermost and self._is_awaited():  # without the lock, unless the caller holds it
                self.wake_waiters(everybody=self.published.moves != moves or self.local.is_closed)

    return owned


@dataclass(slots=True)
class LogWithOffsets:
    """The components of an open log, and its offsets."""

    folder: LogFolder
    local: LocalLog
    producers: ProducerStateManager
    epochs: LeaderEpochs
    log_start_offset: int
    local_log_start_offset: int
    highest_offset_in_archive: int = -1
    is_only_replica: bool = False
    """Whether no other replica exists, so that the high watermark is the log end offset; see `become_only_replica`."""
    _high_watermark: OffsetMetadata = _NOWHERE
    _first_unstable: OffsetMetadata | None = None
    _changes: int = 0
    """How many changes are under way, one within another."""
    lock: threading.RLock = field(default_factory=threading.RLock)
    published: PublishedOffsets = field(init=False)
    _end_waiters: Waiters = field(default_factory=Waiters)
    _high_watermark_waiters: Waiters = field(default_factory=Waiters)

    def __post_init__(self) -> None:
        self.published = PublishedOffsets(self.local, self.log_start_offset)

    @property
    def offsets(self) -> LogOffsets:
        """All offsets at one moment. Another thread may change the log at any time; this value stays as it is."""
        return self.published.current()

    def publish(self) -> None:
        """Publishes the offsets for readers; for the owner of the lock, as are all changes of the fields."""
        self.published.publish(self.log_start_offset, self.local_log_start_offset, self._high_watermark, self._first_unstable)

    # Waiting

    def when_end_reaches(self, offset: int, wake: Wake) -> int:
        """Calls `wake` once the log end offset is `offset` or above: for new data at N, N + 1. See `waiters`."""
        return self._end_waiters.add(offset, wake, lambda: self.offsets.end.offset)

    def when_high_watermark_reaches(self, offset: int, wake: Wake) -> int:
        """Calls `wake` once the high watermark is `offset` or above. See `waiters`."""
        return self._high_watermark_waiters.add(offset, wake, lambda: self.offsets.high_watermark.offset)

    def cancel_end_waiter(self, waiter: int) -> bool:
        """Whether the waiter was still waiting; it is not called any more."""
        return self._end_waiters.cancel(waiter)

    def cancel_high_watermark_waiter(self, waiter: int) -> bool:
        """As `cancel_end_waiter`, for one that waits for a high watermark."""
        return self._high_watermark_waiters.cancel(waiter)

    def _is_awaited(self) -> bool:
        return self._end_waiters.least < INT64_MAX or self._high_watermark_waiters.least < INT64_MAX

    def wake_waiters(self, *, everybody: bool = False) -> None:
        """Calls the waiters whose offset is reached and published, or all."""
        now = self.offsets
        self._end_waiters.wake(INT64_MAX if everybody else now.end.offset)
        self._high_watermark_waiters.wake(INT64_MAX if everybody else now.high_watermark.offset)

    # Offsets

    @property
    def log_end_offset(self) -> int:
        """The offset of the next record."""
        return self.local.log_end_offset

    @property
    def recovery_point(self) -> int:
        """All offsets below it are flushed to the device."""
        return self.local.recovery_point

    @property
    def high_watermark(self) -> int:
        """All offsets below it are replicated."""
        return self._high_watermark.offset

    @property
    def last_stable_offset(self) -> int:
        """The offset below which every transaction is ended and replicated."""
        first = self._first_unstable
        return self.high_watermark if first is None else min(first.offset, self.high_watermark)

    @by_owner
    def update_high_watermark(self, offset: int) -> int:
        """Sets the high watermark, limited to the log's bounds; returns its new value."""
        if offset < self.log_start_offset:
            self._set_high_watermark(OffsetMetadata(self.log_start_offset))
        else:
            self._set_high_watermark(self.local.end if offset >= self.log_end_offset else OffsetMetadata(offset))
        return self.high_watermark

    @by_owner
    def maybe_increment_high_watermark(self, offset: int) -> bool:
        """Raises the high watermark; False if it is already there or above. Raises Invalid beyond the log end offset."""
        if offset > self.log_end_offset:
            raise Invalid(f"{self.folder.path}: a high watermark of {offset} above the log's end {self.log_end_offset}")
        if offset <= self.high_watermark:
            return False
        self.update_high_watermark(offset)
        return True

    @by_owner
    def become_only_replica(self) -> None:
        """From now on the high watermark is the log end offset, as Kafka's leader has it where it is the only replica."""
        self.is_only_replica = True
        self._set_high_watermark(self.local.end)

    def _set_high_watermark(self, metadata: OffsetMetadata) -> None:
        self._high_watermark = metadata
        self.producers.on_high_watermark(metadata.offset)
        self._update_first_unstable()

    @by_owner
    def maybe_increment_log_start_offset(self, offset: int) -> bool:
        """Raises the log start offset (DeleteRecords, retention). Raises OffsetOutOfRange above the high watermark."""
        if offset > self.high_watermark:
            raise OffsetOutOfRange(self.folder.path, offset, self.log_start_offset, self.high_watermark)
        if self.folder.config.remote_storage_enable:
            self.local_log_start_offset = max(offset, self.local_log_start_offset)
        self.local.check_open()
        if offset <= self.log_start_offset:
            return False
        self._set_log_start_offset(offset)
        self.epochs.truncate_from_start(offset)
        self.producers.on_log_start_offset(offset)
        self._update_first_unstable()
        return True

    def _set_log_start_offset(self, offset: int) -> None:
        self.log_start_offset = offset
        self._begin_at_least_at(offset)

    def _begin_at_least_at(self, offset: int) -> None:
        if self.high_watermark < offset:
            self.update_high_watermark(offset)
        self.local.recovery_point = max(self.local.recovery_point, offset)

    def _start(self, offset: int) -> None:
        self._set_log_start_offset(offset)
        self.local_log_start_offset = max(offset, self.local.segments.first.base_offset)
        self._begin_at_least_at(self.local_log_start_offset)
        if not self.folder.config.remote_storage_enable:
            self.log_start_offset = self.local_log_start_offset
        self._update_first_unstable()

    def _update_first_unstable(self) -> None:
        first = self.producers.first_unstable_offset
        if first is None:
            self._first_unstable = None
            return
        start, known = self.log_start_offset, self._first_unstable
        # The batch at the log start offset may not be written yet: its position is looked up again.
        if first < start or known is None or known.offset != first:
            self._first_unstable = locate(self.local, max(first, start))

    def _is_first_unstable(self, offset: int) -> bool:
        """Whether it is still the first unstable offset after an append that neither begins nor ends a transaction."""
        return self.log_start_offset <= offset == self.producers.first_unstable_offset

    def _high_watermark_follows_end(self) -> None:
        if self.high_watermark >= self.log_end_offset:
            self._set_high_watermark(self.local.end)
