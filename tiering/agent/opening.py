"""Opens the archive once, by the first turn to which the store responds: an agent may start while the store does not."""

from collections.abc import Callable
from threading import Lock

from local_log.errors import LogError


class Opening:
    """`open_archive` says whether it has created the archive; if it raises, the next call retries. Thread-safe.

    Whoever calls while another one tries is told what comes of that, so that many turns do not try one after the other.
    """

    def __init__(self, open_archive: Callable[[], bool]) -> None:
        self._open_archive = open_archive
        self._turn = Lock()
        self._is_open = False
        self._failures: list[LogError] = []

    def __call__(self) -> bool:
        """Whether this call has made the archive. Raises LogError."""
        before = self._failures
        with self._turn:
            if self._is_open:
                return False
            if self._failures is not before:
                raise self._failures[0]
            try:
                is_new = self._open_archive()
            except LogError as e:
                self._failures = [e]
                raise
            self._is_open = True
            return is_new
