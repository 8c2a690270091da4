"""Opens the archive once, by the first turn to which the store responds: an agent may start while the store does not."""

from collections.abc import Callable
from threading import Lock


class Opening:
    """`open_archive` says whether it has created the archive; if it raises, the next call retries. Thread-safe."""

    def __init__(self, open_archive: Callable[[], bool]) -> None:
        self._open_archive = open_archive
        self._turn = Lock()
        self._is_open = False

    def __call__(self) -> bool:
        """Whether this call has made the archive."""
        with self._turn:
            is_new = not self._is_open and self._open_archive()
            self._is_open = True
            return is_new
