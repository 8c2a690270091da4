"""Syncs appended records in groups: one sync of a log acknowledges all that was appended to it before (group commit).

While a group is synced, the appends that come meanwhile gather in the next one.
"""

import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from local_log.errors import LogError

if TYPE_CHECKING:
    from local_log.engine.unified_log import UnifiedLog

Synced = Future[Mapping[str, LogError]]
"""The errors of the logs that could not be synced, by the paths of their folders."""


@dataclass(slots=True)
class _Group:
    logs: "dict[str, UnifiedLog]" = field(default_factory=dict)
    synced: Synced = field(default_factory=Future)


@dataclass(slots=True)
class GroupCommit:
    """For many threads. `executor` has one, which does nothing else."""

    executor: Executor
    _next: _Group | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def sync(self, logs: "Iterable[UnifiedLog]") -> Synced:
        """Has what was appended to the logs before the call synced."""
        with self._lock:
            group, is_new = self._next, self._next is None
            if group is None:
                group = self._next = _Group()
            group.logs |= {log.folder.path: log for log in logs}
        if is_new:
            self.executor.submit(self._sync_next)
        return group.synced

    def _sync_next(self) -> None:
        with self._lock:
            group, self._next = self._next, None
        assert group is not None
        errors: dict[str, LogError] = {}
        for path, log in group.logs.items():
            try:
                log.sync_appended()
            except LogError as e:
                errors[path] = e
        group.synced.set_result(errors)
