"""A disk with one file, for tests that make thousands of them."""

from local_log.errors import NotFound
from local_log.os_disk import OsDisk


class OneFile(OsDisk):
    """Reads one file that is nowhere."""

    def __init__(self, name: str, body: bytes) -> None:
        super().__init__()
        self._name, self._body = name, body

    def size(self, file: str) -> int:
        return len(self._of(file))

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        return self._of(file)[start:end]

    def _of(self, file: str) -> bytes:
        if file != self._name:
            raise NotFound(file)
        return self._body
