"""The error classes of a log, on a broker's disk or in the archive, one class for each remedy.

    LogError
    ├── Corrupt         bytes differ from what was written: quarantine the file, restore it from a replica or the archive
    ├── Unreadable      the operating system cannot read a file: fix permissions or disk, then retry
    ├── Unavailable     the store did not answer, and nothing changed there: retry later
    ├── Unknown         the outcome of a write is unknown: read back first, delete nothing
    ├── AlreadyExists   put-if-absent found an object with this key: read it back
    ├── Conflict        another writer committed first, and this change no longer applies: reload
    ├── Fenced          a writer with a higher epoch owns the partition: stop
    ├── NotFound        no such object, topic or partition
    │   ├── NoSuchFile         no such file or folder: the broker may have deleted it
    │   └── OffsetOutOfRange   Kafka's OFFSET_OUT_OF_RANGE
    └── Invalid         a request, a setting or an archive that cannot be used as it is: fix it
        ├── UnsupportedCompressionType    Kafka's UNSUPPORTED_COMPRESSION_TYPE: use a newer client
        ├── BadAddress  an address that does not name a store: correct it
        ├── NotOurs     a topic whose log a broker writes: it cannot be written here
        ├── TopicDeleted    a topic that was deleted from the archive is not archived again: exclude it
        ├── BadRange    bytes that an object does not have: damage, if a manifest names the object
        ├── Newer       written by a newer version of this project: upgrade
        ├── NoKey       a key that decryption needs is missing: use the key ring that has it
        └── WrongKey    a key has the right name but did not wrap the data key: use the right one

`engine.errors` has the errors for refused appends. There is no subclass by place: damaged bytes of a file and of an object are
both Corrupt.
"""

import errno
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from typing import ClassVar, Final

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
    """Base of every error that these packages raise deliberately."""


class Corrupt(LogError):
    """Bytes that do not match their checksum or their format.

    `file` is a path, an object key or "" for a buffer; `position` is the byte in it; `problem` says what was found and what was
    expected.
    """

    def __init__(self, problem: str, *, file: str = "", position: int = 0) -> None:
        super().__init__(problem, file, position)
        self.problem = problem
        self.file = file
        self.position = position

    def __str__(self) -> str:
        return f"{self.file or 'buffer'} at byte {self.position}: {self.problem}"

    def at(self, file: str, start: int = 0) -> "Corrupt":
        """The same error for `file`, where the buffer starts at byte `start`."""
        return Corrupt(self.problem, file=file, position=self.position + start)

    def __reduce__(self) -> tuple[object, ...]:
        return _corrupt, (self.problem, self.file, self.position)


def _corrupt(problem: str, file: str, position: int) -> Corrupt:
    return Corrupt(problem, file=file, position=position)


class Missing(Corrupt):
    """An object that a manifest names is not there: damage, unless a newer manifest no longer names it."""

    def at(self, file: str, start: int = 0) -> "Missing":
        """See Corrupt."""
        return Missing(self.problem, file=file, position=self.position + start)

    def __reduce__(self) -> tuple[object, ...]:
        return _missing, (self.problem, self.file, self.position)


def _missing(problem: str, file: str, position: int) -> Missing:
    return Missing(problem, file=file, position=position)


@contextmanager
def placed(file: str, start: int = 0) -> Iterator[None]:
    """Adds `file`, where the buffer starts at byte `start`, to a Corrupt that is raised inside."""
    try:
        yield
    except Corrupt as e:
        raise e.at(file, start) from e


class Unreadable(LogError):
    """An existing file that the operating system cannot read: permissions, a failing disk, too many open files."""


class Unavailable(LogError):
    """The store did not answer, and nothing changed there."""


class Unreachable(Unavailable):
    """Nobody is at the store's address: no such host, or it refuses connections. Most often the address is wrong."""


class Unknown(LogError):
    """A write that may or may not have succeeded."""


class AlreadyExists(LogError):
    """Put-if-absent found an existing object; the first argument is its key."""


class Conflict(LogError):
    """Another commit came first, and this one no longer applies."""


class Fenced(LogError):
    """A writer with a higher writer epoch owns the partition."""


class NotFound(LogError):
    """No such object, topic, partition or file."""


class NoSuchFile(NotFound):
    """No such file or folder; a running broker may have deleted or renamed it."""


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
    """A request, a setting or an archive that cannot be used as it is; the message says what would work."""


class UnsupportedCompressionType(Invalid):
    """Batches with a codec that an older client's message format does not have: it needs a newer client."""

    code: ClassVar[int] = 76
    """In Kafka's protocol (UNSUPPORTED_COMPRESSION_TYPE)."""


class BadAddress(Invalid):
    """An address that does not name a store, or a store that cannot be used from here; the message says what would work."""


class NotOurs(Invalid):
    """A topic whose log a broker writes: records that were added here would contradict the broker's log."""

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic

    def __str__(self) -> str:
        return (
            f"topic {self.topic} is archived from a broker's logs, and what was written to it here would fork its log; choose "
            "another topic, produce to that broker, or write to another archive"
        )


class TopicDeleted(Invalid):
    """A topic that was deleted from the archive under this id: it is not archived again."""


class BadRange(Invalid):
    """A byte range outside of its object."""


class Newer(Invalid):
    """Data of a newer version, in a format that this version cannot read."""


class NoKey(Invalid):
    """Decryption needs the key `key_id`. `file` is the object key, if one is read; `reason` names the keys that are there."""

    def __init__(self, key_id: str, reason: str, file: str = "") -> None:
        super().__init__(key_id, reason, file)
        self.key_id = key_id
        self.reason = reason
        self.file = file

    def __str__(self) -> str:
        return f"{_prefix(self.file)}key {self.key_id!r} is needed: {self.reason}; give keys that have it"


class WrongKey(Invalid):
    """`place` has a key `key_id`, but it is not the one that wrapped the data key of `file`, an object key."""

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
"""Errors of one file or object; others of the same log or store may be valid."""


def _prefix(file: str) -> str:
    return f"{file}: " if file else ""


def of_system(where: str, error: Exception) -> str:
    """The operating system's error for a file or folder, and the remedy, as a message."""
    number, said = getattr(error, "errno", None), getattr(error, "strerror", None)
    return f"{where}: {said or error}; {_REMEDIES.get(number or 0, 'mend it')}, then try again"


def listed(names: Iterable[str]) -> str:
    """The first few names, for a message that lists the alternatives."""
    first = list(islice(names, _LISTED_MAX + 1))
    return ", ".join(first[:_LISTED_MAX]) + (", …" if len(first) > _LISTED_MAX else "") if first else "none"
