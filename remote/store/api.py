"""The interface of an object store: a few methods, in small protocols, so that code can require only what it uses.

Keys are relative to the archive's root, with "/" between their parts. Bodies are bytes-like; ranges are `[start, end)`.
Every backend raises the errors of `local_log.errors` and nothing else: what a docstring names, and Invalid where the address, the
rights or the key are at fault.

Each call is retried in one place. `retrying` repeats calls that have certainly changed nothing, reads, listings, deletions, and
uploads, whose key no other writer uses. A backend repeats only the requests inside one upload. `conditional_put` repeats a put of
unknown outcome, since only its caller can distinguish its own object from another writer's.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, cast, runtime_checkable

from local_log.file_range import OpenedFile

Body = bytes | bytearray | memoryview


@dataclass(frozen=True, slots=True)
class ObjectMeta:
    """An object as the store describes it: its key, its size in bytes, and two values that not every store has.

    These are the CRC-32C of all its bytes, and the time of its creation, in ms since 1970 by the store's clock.
    """

    key: str
    size: int
    crc32c: int | None = None
    modified_ms: int | None = None


@dataclass(frozen=True, slots=True)
class AbandonedUpload:
    """A multipart upload that was not completed: it is no object, but uses space. `started_ms` is by the store's clock."""

    key: str
    upload_id: str
    started_ms: int


class ObjectReader(Protocol):
    """Reads objects."""

    def get(self, key: str) -> bytes:
        """All bytes of an object. Raises NotFound, Unavailable."""

    def get_range(self, key: str, start: int, end: int) -> Body:
        """Exactly bytes `[start, end)`; `end` may not pass the object's end. Raises NotFound, Unavailable, BadRange."""

    def head(self, key: str) -> ObjectMeta:
        """Size, checksum, time. Raises NotFound, Unavailable."""


class ObjectLister(Protocol):
    """Lists objects."""

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        """Objects whose key starts with `prefix` and comes after `start_after`, at most `limit`; their time, but no checksum.

        In the order of keys' bytes. Raises Unavailable.
        """

    def list_folders(self, prefix: str) -> Iterator[str]:
        """The distinct next parts of keys below `prefix` (which ends with "/" or is empty), without the slash.

        In the order of keys' bytes, slash included, as S3 has it: `a-b` before `a`.
        """


class ReadableStore(ObjectReader, ObjectLister, Protocol):
    """What those need who look at an archive and change nothing."""


class ObjectWriter(Protocol):
    """Writes objects, never over another one."""

    def put_if_absent(self, key: str, body: Body) -> None:
        """Creates a small object in one request, durable on return.

        Raises AlreadyExists (the key was taken, perhaps by this very call's lost first try), Unknown, Unavailable.
        """

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        """Creates an object of any size under a key that no other writer uses, durable on return, with the given CRC-32C.

        `parts` come in order, each of the same length but the last, and at least 5 MiB unless there is only one. Where they can
        be read again from the start (a list can, an iterator cannot), a failed upload can be repeated.
        Nothing is left visible under the key when it fails. Raises AlreadyExists, Unknown, Unavailable, and
        `local_log.errors.Corrupt` where the parts are not what `size` and `crc32c` say.
        """


class ObjectDeleter(Protocol):
    """Deletes objects, and what failed uploads have left behind."""

    def delete(self, key: str) -> None:
        """Removes an object; one that is not there counts as removed. Raises Unavailable."""

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        """Uploads to keys that start with `prefix`, begun before that time of the store and neither ended nor given up.

        Whoever still works on one would lose it to `abort_upload`, so the time has to be long ago. Raises Unavailable.
        """

    def abort_upload(self, upload: AbandonedUpload) -> None:
        """Frees what it has left behind; one that is not there any more counts as freed. Raises Unavailable."""


class ObjectStore(ObjectReader, ObjectLister, ObjectWriter, ObjectDeleter, Protocol):
    """Everything an archive's owner does with a store. `url` names it for people."""

    url: str


class Harm(StrEnum):
    """What a rule of a bucket does to an archive in it."""

    loses = "loses"
    hides = "hides"
    costs = "costs"
    unknown = "unknown"


@dataclass(frozen=True, slots=True)
class BucketRule:
    """A rule that somebody has given a bucket, and that an archive's owner should know of."""

    harm: Harm
    text: str


@runtime_checkable
class HasRules(Protocol):
    """A backend whose buckets have rules of their own."""

    def rules(self) -> Iterator[BucketRule]:
        """Those that do an archive any harm, or are missing, or cannot be read. Raises Unavailable, Invalid."""


FileOpener = Callable[[], OpenedFile]
"""Opens a file to be read, also when it is deleted meanwhile. Raises NotFound, Unavailable, Invalid."""


@runtime_checkable
class MakesDurable(Protocol):
    """A backend that shows an object a moment before it is sure to outlive a crash."""

    def make_durable(self, key: str) -> None:
        """On return, what was shown under the key outlives one. Raises Unknown."""


def make_durable(store: object, key: str) -> None:
    """Asked of what the store has shown, before anything else is deleted on the strength of it. Raises Unknown.

    `store` may be a backend or wrappers around one, which they call `inner`.
    """
    while not isinstance(store, MakesDurable):
        if not hasattr(store, "inner"):
            return
        store = store.inner
    store.make_durable(key)


class HasFiles(Protocol):
    """A backend whose objects are files."""

    def file_opener(self, key: str) -> FileOpener:
        """Opens an object's file each time that it is called. Raises Invalid for what is no key."""


def file_opener(store: object, key: str) -> FileOpener | None:
    """Opens an object's file, None if the store has no files. `store` as for `make_durable`. Raises Invalid."""
    while not hasattr(store, "file_opener"):
        if not hasattr(store, "inner"):
            return None
        store = store.inner
    return cast("HasFiles", store).file_opener(key)
