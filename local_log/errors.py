"""What can go wrong with a log, named by what to do about it. (`engine.errors` has what an append is refused for.)

LogError
├── Corrupt       bytes that are not what Kafka writes: quarantine the file, restore it from a replica or the archive
├── Unreadable    the operating system does not give a file: mend rights or disk, then try again
├── Invalid       a question or a setting that makes no sense: fix it
└── NotFound      no such directory, topic or partition
    └── OffsetOutOfRange   Kafka's OFFSET_OUT_OF_RANGE
"""

import errno
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import Final

_LISTED_MAX = 10
_REMEDIES: Final[Mapping[int, str]] = {
    errno.ENOSPC: "free some space there",
    errno.EDQUOT: "free some space there, or have the quota raised",
    errno.EACCES: "give this user the right to it",
    errno.EPERM: "give this user the right to it",
    errno.EROFS: "have it mounted so that it can be written to",
    errno.EMFILE: "let a process have more files open (ulimit -n)",
    errno.ENFILE: "let this machine have more files open (fs.file-max)",
    errno.EISDIR: "name a file",
    errno.EIO: "look into the system's log whether the disk fails, and mend it",
}


class LogError(Exception):
    """Base of everything that this package raises on purpose."""


class Corrupt(LogError):
    """Bytes that fail their checksum or break their format.

    `file` is a path, an object key or "" for a bare buffer; `position` is the byte in it; `problem` says what was found there
    against what was expected.
    """

    def __init__(self, problem: str, *, file: str = "", position: int = 0) -> None:
        super().__init__(problem, file, position)
        self.problem = problem
        self.file = file
        self.position = position

    def __str__(self) -> str:
        return f"{self.file or 'buffer'} at byte {self.position}: {self.problem}"

    def at(self, file: str, start: int = 0) -> "Corrupt":
        """The same finding, placed in `file`, whose byte `start` was the buffer's first."""
        return Corrupt(self.problem, file=file, position=self.position + start)

    def __reduce__(self) -> tuple[object, ...]:
        return _corrupt, (self.problem, self.file, self.position)


def _corrupt(problem: str, file: str, position: int) -> Corrupt:
    return Corrupt(problem, file=file, position=position)


@contextmanager
def placed(file: str, start: int = 0) -> Iterator[None]:
    """Places what is Corrupt in a buffer in `file`, whose byte `start` was the buffer's first."""
    try:
        yield
    except Corrupt as e:
        raise e.at(file, start) from e


class Unreadable(LogError):
    """A file that is there and that the operating system does not give: rights, a failing disk, too many open files."""


class Invalid(LogError):
    """A question or setting that cannot be met as it stands; the message says what would do."""


class NotFound(LogError):
    """No such directory, topic or partition."""


class OffsetOutOfRange(NotFound):
    """An offset below the log start offset or above the log end offset."""

    def __init__(self, partition: str, offset: int, start: int, end: int) -> None:
        super().__init__(partition, offset, start, end)
        self.partition = partition
        self.offset = offset
        self.start = start
        self.end = end

    def __str__(self) -> str:
        return f"{self.partition}: offset {self.offset} is outside [{self.start}, {self.end}); ask for one inside"


def of_system(where: str, error: Exception) -> str:
    """What the operating system said of a file or folder, once, and what to do about it."""
    number, said = getattr(error, "errno", None), getattr(error, "strerror", None)
    return f"{where}: {said or error}; {_REMEDIES.get(number or 0, 'mend it')}, then try again"


def listed(names: Iterable[str]) -> str:
    """The first few of what there is, for a message that says what else could have been asked for."""
    first = list(islice(names, _LISTED_MAX + 1))
    return ", ".join(first[:_LISTED_MAX]) + (", …" if len(first) > _LISTED_MAX else "") if first else "none"
