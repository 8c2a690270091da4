"""What every backend would otherwise write again: which keys are keys, and the walks over parts and folders."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from heapq import heappop, heappush
from itertools import islice
from typing import Final, TypeVar

from local_log.errors import Corrupt, Invalid
from local_log.formats.checksum import crc32c as crc_of
from remote.store.api import Body, ObjectMeta

key_bytes_max = 1_024
"""S3's limit; the narrowest of those known, and so everybody's."""

_extras: Final = {"gs": "gcs", "gcs": "gcs", "abfs": "azure", "abfss": "azure", "az": "azure", "s3": "s3fs", "s3a": "s3fs"}
"""What of pyproject.toml brings fsspec's file system of a protocol."""

T = TypeVar("T")


def installing(protocol: str) -> str | None:
    """How to install what fsspec needs for a protocol, None where it is nothing that we know; fsspec's own words for it vary."""
    extra = _extras.get(protocol)
    return None if extra is None else f"pip install 'kafka-tiering[{extra}]'"


_NO_NAMES = frozenset(("", ".", ".."))


def check_key(key: str) -> None:
    """Refuses what is no key on some store: an absolute path, an empty part, "." or "..", NUL, too many bytes.

    Raises Invalid.
    """
    _check(key, key.split("/"))


def check_prefix(prefix: str) -> None:
    """Refuses a prefix that no key can start with; its last part may be cut anywhere. Raises Invalid."""
    *folders, tail = prefix.split("/")
    _check(prefix, folders + ([tail] if tail == ".." else []))


def check_folder(prefix: str) -> None:
    """Refuses a prefix that is not empty and does not end with "/". Raises Invalid."""
    if prefix and not prefix.endswith("/"):
        raise Invalid(f"{prefix!r} is no folder of keys; end it with '/'")
    check_prefix(prefix)


def _check(key: str, parts: list[str]) -> None:
    try:
        length = len(key.encode())
    except UnicodeEncodeError as error:
        raise Invalid(f"{key!r} is not UTF-8; give a key that is") from error
    if length > key_bytes_max:
        raise Invalid(f"a key of {length} bytes is longer than {key_bytes_max}: {key[:80]!r}…; shorten the names in it")
    if "\0" in key or not _NO_NAMES.isdisjoint(parts):
        raise Invalid(f"{key!r} is no key; give relative names with one '/' between them, none of them '.' or '..'")


def checked(key: str, parts: Iterable[Body], size: int, crc32c: int) -> Iterator[Body]:
    """The same `parts`, and after the last of them Corrupt if they are not `size` bytes with the given CRC-32C."""
    length = crc = 0
    for part in parts:
        length += memoryview(part).nbytes
        crc = crc_of(part, crc)
        yield part
    if length != size:
        raise Corrupt(f"{length} bytes were read for upload, expected {size}", file=key, position=min(length, size))
    if crc != crc32c:
        raise Corrupt(f"the bytes read for upload have CRC-32C {crc:08x}, expected {crc32c:08x}", file=key)


def as_ms(when: datetime) -> int:
    """Milliseconds since 1970 of a time with a zone."""
    return round(when.timestamp() * 1000)


def walk(
    prefix: str,
    entries: Callable[[str], Iterator[tuple[str, T]]],
    measure: Callable[[str, T], ObjectMeta | None],
    limit: int | None = None,
    start_after: str = "",
) -> Iterator[ObjectMeta]:
    """Objects as `ObjectLister.list` gives them, on a store that lists one folder at a time.

    `entries(folder)` gives a folder's names, those of folders with a "/" at their end, in any order; `folder` is ""
    or ends with "/". `measure` describes the object of a key, None when it has gone meanwhile. Only folders that
    can hold a result are opened, each when its turn comes: since a folder sorts as its name and a slash, what it holds
    comes out just where it stood.
    """

    def found() -> Iterator[ObjectMeta]:
        things: dict[str, T] = {}
        heap: list[str] = []
        folder: str | None = prefix[: prefix.rfind("/") + 1]
        while True:
            if folder is not None:
                for name, thing in entries(folder):
                    key = folder + name
                    if key.startswith(prefix) and (key > start_after or (key.endswith("/") and start_after.startswith(key))):
                        things[key] = thing
                        heappush(heap, key)
            if not heap:
                return
            key = heappop(heap)
            thing = things.pop(key)
            folder = key if key.endswith("/") else None
            if folder is None and (meta := measure(key, thing)) is not None:
                yield meta

    return islice(found(), limit)
