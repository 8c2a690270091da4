"""A disk of which a call fails now and then, as one does that is full or broken."""

from local_log.errors import Unreadable
from simulated.disks import QuietDisk


class FailingDisk(QuietDisk):
    """A disk of which one call may fail: `fault` is what becomes of the next one of that verb.

    What a failed `sync` was to write is never written: the system takes these pages for clean, and the next `sync` for done.
    """

    def __init__(self) -> None:
        super().__init__()
        self.fault: tuple[str, str] | None = None
        self._taken_for_clean: set[object] = set()

    def _fails(self, verb: str, path: str) -> bool:
        """Whether a write is to be short. Raises Unreadable for what fails."""
        if self.fault is None or self.fault[0] != verb:
            return False
        kind, self.fault = self.fault[1], None
        if kind != "short":
            raise Unreadable(f"{path}: {kind}")
        return True

    def write(self, file: str, start: int, data: bytes) -> None:
        if self._fails("write", file):
            super().write(file, start, data[: len(data) // 2])
            raise Unreadable(f"{file}: a short write")
        super().write(file, start, data)

    def sync(self, file: str) -> None:
        node = self._file(file)
        try:
            self._fails("sync", file)
        except Unreadable:
            self._taken_for_clean.add(node)
            raise
        if node not in self._taken_for_clean:
            super().sync(file)

    def rename(self, path: str, to: str) -> None:
        self._fails("rename", path)
        super().rename(path, to)
