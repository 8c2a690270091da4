"""The archive is opened once, by whoever first finds that the store answers: an agent may start while it does not."""

from collections.abc import Callable
from threading import Lock


class Opening:
    """`open_archive` says whether it has made the archive; where it raises, the next call tries again. Of any thread."""

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
