"""Where jobs write: any fsspec URL whose store creates objects if absent. Files are staged out of sight, then published.

What is staged lies below `_tiering/`: Spark, Arrow and Hive pass over names that start with "_". A local file is
published by a rename, an object by a copy inside the store. Commits and done marks go through the archive's own `ObjectStore`,
whose put-if-absent gives one winner.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from tempfile import TemporaryDirectory
from typing import Any

import fsspec

from local_log.errors import NotFound
from remote.store.api import ObjectStore
from remote.store.open import open_store
from remote.store.shared import installing
from spark_jobs.errors import OptionError

HIDDEN = "_tiering/"
STAGING = f"{HIDDEN}staging/"
_PART = re.compile(r"[A-Za-z0-9=._~%-]{1,300}")


def inside(name: str, below: str = "") -> str:
    """A name that leads to no other place than below `below` in a target, as it is; what has read it may have been written by
    anybody who may write there. Raises ValueError."""
    parts = name.split("/") if type(name) is str else [""]
    if not all(_PART.fullmatch(part) and part not in (".", "..") for part in parts) or not name.startswith(below):
        raise ValueError(f"{name!r} is no name of a file below {below or 'the target'!r}")
    return name


@dataclass
class Drop:
    """Files on their way to a folder of the target: `path(name)` is where to write one; `bytes` are known after the block."""

    folder: str
    local: str
    bytes: dict[str, int] = field(default_factory=dict)

    def path(self, name: str) -> str:
        """A local file for `name`, which appears below the folder when the block ends."""
        self.bytes[name] = 0
        return f"{self.local}/{name}"


@dataclass(frozen=True, slots=True)
class Target:
    """A folder at an fsspec URL; names below it are relative, with "/" between their parts."""

    url: str

    @property
    def store(self) -> ObjectStore:
        """The folder as an object store. Raises BadAddress where it cannot create an object if absent."""
        return open_store(self.url)

    def names(self, suffix: str) -> set[str]:
        """The files below the folder whose names end with `suffix`, without hidden ones."""
        files, root = self._open()
        found = (file.removeprefix(root).lstrip("/") for file in files.find(root))
        return {n for n in found if n.endswith(suffix) and not any(part.startswith((".", "_")) for part in n.split("/"))}

    @contextmanager
    def dropped(self, folder: str) -> Iterator[Drop]:
        """Files that are in `folder`, complete and durable, when the block ends; none of them if it fails."""
        files, root = self._open()
        if not _is_local(files):
            with TemporaryDirectory() as local:
                drop = Drop(folder, local)
                yield drop
                for name in drop.bytes:
                    drop.bytes[name] = os.path.getsize(drop.path(name))
                    files.put_file(f"{local}/{name}", f"{root}/{folder}/{name}")
            return
        drop = Drop(folder, f"{root}/{folder}")
        os.makedirs(drop.local, exist_ok=True)
        try:
            yield drop
            for name in drop.bytes:
                drop.bytes[name] = _synced(f"{drop.local}/{name}")
            _synced(drop.local)
        except BaseException:
            for name in drop.bytes:
                with suppress(FileNotFoundError):
                    os.unlink(f"{drop.local}/{name}")
            raise

    def publish(self, staged: str, name: str) -> None:
        """Publishes a staged file as `name`, atomically. A file that was published before stays.

        Raises NotFound if there is neither file, ValueError for a name outside of the target.
        """
        files, root = self._open()
        final, staged = f"{root}/{inside(name)}", inside(staged, HIDDEN)
        try:
            if _is_local(files):
                os.makedirs(os.path.dirname(final), exist_ok=True)
                os.replace(f"{root}/{staged}", final)
                _synced(os.path.dirname(final))
            else:
                files.cp_file(f"{root}/{staged}", final)
                files.rm_file(f"{root}/{staged}")
        except FileNotFoundError as e:
            if not files.exists(final):
                raise NotFound(f"{self.url}: neither {name} nor {staged}, which it was to be made of, is there") from e

    def _open(self) -> tuple[Any, str]:
        try:
            files, root = fsspec.core.url_to_fs(self.url, use_listings_cache=False, skip_instance_cache=True)
        except ImportError as e:
            remedy = installing(self.url.partition("://")[0].lower()) or f"{e}; install it"
            raise OptionError(f"the target {self.url!r} cannot be used, since its package is not there yet; {remedy}") from e
        except ValueError as e:  # an unknown protocol
            raise OptionError(f"the target {self.url!r} cannot be used: {e}") from e
        if not root.strip("/"):
            raise OptionError(f"the target {self.url!r} names no folder; give one, such as s3://bucket/prefix")
        return files, root.rstrip("/")


def _synced(path: str) -> int:
    """Waits until a file or folder is on the device; gives its bytes."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
        return os.fstat(descriptor).st_size
    finally:
        os.close(descriptor)


def _is_local(files: Any) -> bool:
    protocol = files.protocol
    return "file" in ((protocol,) if isinstance(protocol, str) else protocol)
