"""An archive on whatever fsspec reaches: memory://, gs://, abfs:// and more, each with its own package installed.

Only file systems whose `pipe_file` is their own are taken, since the one they inherit asks "is it there?" and then
writes: two writers in a row pass that, two at once both win. fsspec's listing cache is switched off; it would
hide other writers' commits. An upload uses `pipe_file` too, with all of its bytes in memory, because an exclusive `open` is
worse everywhere: it shows half an object (memory), or completes one when closed after an error (the others).
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from io import BytesIO
from typing import Any

import fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.core import url_to_fs

from local_log.errors import AlreadyExists, BadRange, Invalid, LogError, NotFound, Unavailable, Unknown
from remote.store.api import AbandonedUpload, Body, ObjectMeta
from remote.store.shared import as_ms, check_folder, check_key, check_prefix, checked, installing, walk

upload_bytes_max = 2**31
"""A Kafka segment's limit."""
_times = ("LastModified", "last_modified", "mtime", "created")
"""What file systems call the time of a file, a datetime or seconds: s3fs, adlfs, gcsfs, memory."""

_making = threading.Lock()  # one for all stores, since a lock cannot be pickled
_creating_in_memory = threading.Lock()  # memory:// looks, then writes; it lives in this process alone, so a lock mends it


class FsspecStore:
    """Objects below `url`, written `protocol://container/prefix`."""

    def __init__(self, url: str) -> None:
        protocol, separator, _ = url.partition("://")
        if not separator or "::" in url:
            raise Invalid(f"{url!r} is no address for an archive; give one protocol://container/prefix, without '::'")
        try:
            kind = fsspec.get_filesystem_class(protocol)
        except ImportError as error:
            remedy = installing(protocol) or f"{error}; install it, or give s3:// or a folder"
            raise Invalid(f"{url!r}: {protocol}:// is not there yet; {remedy}") from error
        except ValueError as error:
            raise Invalid(f"{url!r}: {error}; give s3://, gs://, abfs:// or a folder") from error
        if not _creates_by_itself(kind):
            raise Invalid(f"{url!r}: fsspec's {protocol} cannot create a file if absent; give s3://, gs://, abfs:// or a folder")
        self.url = url
        self._protocol = protocol
        self._made: tuple[Any, str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """All but the file system, which the next process makes anew."""
        return {**self.__dict__, "_made": None}

    def get(self, key: str) -> bytes:
        """All bytes of an object. Raises NotFound, Unavailable, Invalid."""
        check_key(key)
        with self._translated(key):
            body: bytes = self._fs.cat_file(self._path(key))
            return body

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Bytes `[start, end)`. Raises NotFound, Unavailable, Invalid, BadRange."""
        check_key(key)
        # An empty range is not asked for, since s3fs returns all bytes for it; nor a negative one, which counts
        # from the end.
        body: bytes = b""
        if 0 <= start < end:
            with suppress(Unavailable), self._translated(key):
                body = self._fs.cat_file(self._path(key), start=start, end=end)
                if len(body) == end - start:
                    return body
        # A range past the end is cut short by some and a bare OSError with others, so the size decides.
        size = self.head(key).size
        if not 0 <= start <= end <= size:
            raise BadRange(f"{self.url}: {key} has {size} bytes, not [{start}, {end}); ask for a range inside")
        if start < end:
            raise Unavailable(f"{self.url}: {key} gave {len(body)} bytes for [{start}, {end}); try again later")
        return body

    def head(self, key: str) -> ObjectMeta:
        """No checksum: they differ from one file system to the next. Raises NotFound, Unavailable, Invalid."""
        check_key(key)
        with self._translated(key):
            found = self._fs.info(self._path(key))
            if found["type"] != "file":
                raise NotFound(f"{self.url}: no object {key}")
            return _described(key, found)

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        """Lists one folder at a time, with all of its names, also if `limit` is smaller. Raises Unavailable, Invalid."""
        check_prefix(prefix)
        return walk(prefix, self._entries, _described, limit, start_after)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """Where folders exist by themselves (abfs with a hierarchy), empty ones too. Raises Unavailable, Invalid."""
        check_folder(prefix)
        return (name[:-1] for name in sorted(name for name, _ in self._entries(prefix) if name.endswith("/")))

    def put_if_absent(self, key: str, body: Body) -> None:
        """Raises AlreadyExists, Unknown, Unavailable, Invalid."""
        check_key(key)
        data = body if isinstance(body, bytes) else bytes(body)
        with self._translated(key):
            fs = self._fs  # what fails here was never sent, and so is not Unknown
        with self._translated(key, writing=True), self._alone():
            fs.pipe_file(self._path(key), data, mode="create")

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        """Keeps all parts in memory. Raises AlreadyExists, Unknown, Unavailable, Invalid.

        Raises Corrupt if the parts do not match `size` and `crc32c`.
        """
        if size > upload_bytes_max:
            raise Invalid(f"{self.url}: {key}: {size} bytes are more than {upload_bytes_max}; roll smaller segments")
        body = BytesIO()
        for part in checked(key, parts, size, crc32c):
            body.write(part)
        self.put_if_absent(key, body.getvalue())

    def delete(self, key: str) -> None:
        """Removes the object, if it is there. Raises Unavailable, Invalid."""
        check_key(key)
        with suppress(NotFound), self._translated(key):
            self._fs.rm_file(self._path(key))

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        """None: where fsspec leaves any, it does not tell. Raises Invalid."""
        check_prefix(prefix)
        return iter(())

    def abort_upload(self, upload: AbandonedUpload) -> None:
        """Has nothing to free."""

    @property
    def _fs(self) -> Any:
        return self._reached()[0]

    def _path(self, key: str) -> str:
        return f"{self._reached()[1]}/{key}"

    def _reached(self) -> tuple[Any, str]:
        with _making:
            if self._made is None:
                try:
                    fs, root = url_to_fs(self.url, use_listings_cache=False, skip_instance_cache=True)
                except (FileNotFoundError, ValueError) as error:
                    raise Invalid(f"{self.url}: {error}; correct the address or the credentials") from error
                self._made = fs, root.rstrip("/")
            return self._made

    def _entries(self, folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
        with self._translated(folder):
            path = self._path(folder)
            self._fs.invalidate_cache()  # for those with a cache of their own
            try:
                found = self._fs.ls(path.rstrip("/"), detail=True)
            except FileNotFoundError:
                return
            for item in found:
                name = item["name"].rstrip("/")
                # The folder itself may be among them, as the marker that consoles make, or as a file of that name.
                if name.startswith(path) and name != path:
                    yield name.removeprefix(path) + ("/" if item["type"] == "directory" else ""), item

    def _alone(self) -> Any:
        return _creating_in_memory if self._protocol == "memory" else nullcontext()

    @contextmanager
    def _translated(self, key: str, writing: bool = False) -> Iterator[None]:
        """Turns every error into ours: behind fsspec stand SDKs whose errors have no common name."""
        where = f"{self.url}: {key}"
        try:
            yield
        except LogError:
            raise
        except FileExistsError as error:
            raise AlreadyExists(key) from error
        except FileNotFoundError as error:
            if writing:
                raise Invalid(f"{where}: {error}; create the bucket or container first") from error
            raise NotFound(f"{self.url}: no object {key}") from error
        except (PermissionError, ImportError, NotImplementedError, TypeError) as error:
            raise Invalid(f"{where}: {error!r}; check the credentials and the versions of fsspec's packages") from error
        except Exception as error:
            remedy = "check whether the store responds, then run it again"
            raise (Unknown if writing else Unavailable)(f"{where}: {error!r}; {remedy}") from error


def _creates_by_itself(kind: Any) -> bool:
    if issubclass(kind, AsyncFileSystem):
        return kind._pipe_file is not AsyncFileSystem._pipe_file
    return kind.pipe_file is not fsspec.AbstractFileSystem.pipe_file


def _described(key: str, found: dict[str, Any]) -> ObjectMeta:
    when = next((found[name] for name in _times if name in found), None)
    if isinstance(when, float | int):
        return ObjectMeta(key, found["size"], modified_ms=round(when * 1000))
    return ObjectMeta(key, found["size"], modified_ms=as_ms(when) if isinstance(when, datetime) else None)
