"""The disk with the folder in which an agent keeps its state: it fails as disks do, and the agent may end at each change."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from local_log.errors import Unreadable
from simulated.disks import QuietDisk


class StateDisk(QuietDisk):
    """The disk with an agent's folder. `changed` is called after each call that changes something.

    It is full, or cannot be read, while `failing` has the verb. `failures` counts the calls that have failed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changed: Callable[[], None] = lambda: None
        self.begins: Callable[[str], None] = lambda verb: None
        """Called before a call that may fail."""
        self.failing: frozenset[str] = frozenset()
        self.failures = 0

    def names(self, folder: str) -> list[str]:
        self._may_fail("read", folder)
        return super().names(folder)

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        self._may_fail("read", file)
        return super().read(file, start, end)

    def write(self, file: str, start: int, data: bytes) -> None:
        self._may_fail("write", file)
        super().write(file, start, data)

    def _may_fail(self, verb: str, path: str) -> None:
        self.begins(verb)
        if verb in self.failing:
            self.failures += 1
            raise Unreadable(f"{path}: the state folder's disk does not {verb}")

    def _called(self, *words: object) -> None:
        self.changed()

    @contextmanager
    def healthy(self) -> Iterator[None]:
        """Nothing fails meanwhile: it is not the agent that reads."""
        begins, failing, self.begins, self.failing = self.begins, self.failing, lambda verb: None, frozenset()
        try:
            yield
        finally:
            self.begins, self.failing = begins, failing
