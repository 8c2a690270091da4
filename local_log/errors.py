"""What can go wrong with a log, on a broker's disk or in the archive, named by what to do about it.

    LogError
    ├── Corrupt         bytes that are not what was written: quarantine the file, restore it from a replica or the archive
    ├── Unreadable      the operating system does not give a file: correct rights or disk, then try again
    ├── Unavailable     the store did not answer, and nothing was changed there: retry later
    ├── Unknown         a write whose outcome nobody knows: read back before anything else, delete nothing
    ├── AlreadyExists   put-if-absent found the key taken: read it back
    ├── Conflict        another writer committed first and this change no longer makes sense: reload
    ├── Fenced          a writer with a higher epoch has claimed the partition: stop
    ├── NotFound        no such object, topic or partition
    │   ├── NoSuchFile         no such file or folder: its broker may have deleted it
    │   └── OffsetOutOfRange   Kafka's OFFSET_OUT_OF_RANGE
    └── Invalid         a question, a setting or an archive that cannot be used as it stands: fix it
        ├── BadAddress  an address that names no store: correct it
        ├── NotOurs     a topic whose log a broker writes: no rows are added to it here
        ├── TopicDeleted    what was deleted from the archive stays deleted: leave it out
        ├── BadRange    bytes that an object does not have: of an object that a manifest names, it is damage
        ├── Newer       written by a newer version of this project: upgrade
        ├── NoKey       what is encrypted needs a key that is not at hand: give the key ring that has it
        └── WrongKey    a key of the right name is not the one that was used: give that one

`engine.errors` has what an append is refused for. No subclass says where it happened: an error of bytes, an object's as a file's,
is a Corrupt.
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
    """Base of every error that these packages raise on purpose."""


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


class Unavailable(LogError):
    """The store did not answer, and nothing was changed there."""


class Unknown(LogError):
    """A write that may or may not have happened."""


class AlreadyExists(LogError):
    """Put-if-absent found the key taken; the first argument is the key."""


class Conflict(LogError):
    """Another commit came first and ours no longer applies."""


class Fenced(LogError):
    """A writer with a higher writer epoch owns this partition now."""


class NotFound(LogError):
    """No such object, topic, partition or file."""


class NoSuchFile(NotFound):
    """No such file or folder; one of a log that a broker runs may have been deleted or renamed meanwhile."""


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


class Invalid(LogError):
    """A question, a setting or an archive that cannot be used as it stands; the message says what would do."""


class BadAddress(Invalid):
    """An address that names no store, or one that cannot be used from here; the message says what would do."""


class NotOurs(Invalid):
    """A topic whose log a broker writes: what was added to it here would be another history than the broker's."""

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic

    def __str__(self) -> str:
        return (
            f"topic {self.topic} is archived from a broker's logs, and what was written to it here would fork its log; choose "
            "another topic, produce to that broker, or write to another archive"
        )


class TopicDeleted(Invalid):
    """A topic that was deleted from the archive under this id: nothing of it is archived any more."""


class BadRange(Invalid):
    """A range that is not inside its object."""


class Newer(Invalid):
    """What a newer version has written in a form that this one does not read."""


class NoKey(Invalid):
    """What is encrypted (`file`, an object key, where one is read) needs the key `key_id`; `reason` says what is at hand."""

    def __init__(self, key_id: str, reason: str, file: str = "") -> None:
        super().__init__(key_id, reason, file)
        self.key_id = key_id
        self.reason = reason
        self.file = file

    def __str__(self) -> str:
        return f"{_prefix(self.file)}key {self.key_id!r} is needed: {self.reason}; give keys that have it"


class WrongKey(Invalid):
    """The key that `place` has as `key_id` is not the one that the data key of `file`, an object key, was wrapped with."""

    def __init__(self, key_id: str, place: str, file: str = "") -> None:
        super().__init__(key_id, place, file)
        self.key_id = key_id
        self.place = place
        self.file = file

    def __str__(self) -> str:
        return (
            f"{_prefix(self.file)}key {self.key_id!r} of {self.place} does not unwrap the data key; give the key that had this "
            "id when it was wrapped, or, where that is the one, restore the manifest, whose wrapped key was changed"
        )


FILE_ERRORS: Final = (Corrupt, Unreadable, NoSuchFile)
"""What one file or object is at fault for; others of the same log and the same store may be well."""


def _prefix(file: str) -> str:
    return f"{file}: " if file else ""


def of_system(where: str, error: Exception) -> str:
    """What the operating system said of a file or folder, once, and what to do about it."""
    number, said = getattr(error, "errno", None), getattr(error, "strerror", None)
    return f"{where}: {said or error}; {_REMEDIES.get(number or 0, 'mend it')}, then try again"


def listed(names: Iterable[str]) -> str:
    """The first few of what there is, for a message that says what else could have been asked for."""
    first = list(islice(names, _LISTED_MAX + 1))
    return ", ".join(first[:_LISTED_MAX]) + (", …" if len(first) > _LISTED_MAX else "") if first else "none"
