"""The stores that an archive can live on, each an `ObjectStore`: a folder, S3, whatever fsspec reaches.

Here are the way in (`open_store`) and the proof that a store meets the requirements (`probe`). The backends
and their SDKs are imported when one is opened, since they take most of a second.
"""

import re

from local_log.errors import AlreadyExists, BadAddress, Invalid
from remote.clock import Clock, Jitter, SystemClock, jitter, stopwatch
from remote.store.api import ObjectStore
from remote.store.instrumented import Instrumented, Meter
from remote.store.retrying import Retrying
from remote.store.throttled import Throttled

_examples = "a folder's path, file:///folder, s3://bucket/prefix, gs://bucket/prefix or abfs://container@account/prefix"


_BY_FSSPEC = ("gs", "gcs", "abfs", "abfss", "az", "memory")
"""The protocols whose stores create an object if it is absent, in one request. With fsspec's others (http://, zip://, sftp://,
reference:// …) there is no such request, or what asks for it is ignored."""

_system_clock = SystemClock()


def open_store(
    url: str,
    *,
    bytes_per_second: int | None = None,
    meter: Meter | None = None,
    clock: Clock = _system_clock,
    chance: Jitter = jitter,
) -> ObjectStore:
    """The store that `url` names, which counts in `meter`, keeps to a rate where one is given, and retries.

    Nothing is asked of it yet. Raises BadAddress, Invalid (a rate below 1).
    """
    # From within: what is counted are tries, what is limited are the bytes of every try.
    store: ObjectStore = Instrumented(open_backend(url), meter or Meter(), stopwatch)
    if bytes_per_second is not None:
        store = Throttled(store, bytes_per_second, clock)
    return Retrying(store, clock, chance)


def open_backend(url: str) -> ObjectStore:
    """The store that `url` names, bare. Nothing is asked of it yet. Raises BadAddress."""
    try:
        return _opened(url)
    except Invalid as error:
        raise BadAddress(str(error)) from error


def _opened(url: str) -> ObjectStore:
    scheme, separator, rest = url.partition("://")
    if not separator:
        if not url or re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", url):
            raise Invalid(f"{url!r} names no store; give {_examples}")
        return _folder(url)
    scheme = scheme.lower()
    if re.match(r"[^/@]*:[^/]*@", rest):
        # The URL goes into messages, manifests and logs, so it is not repeated here either.
        raise Invalid(f"a {scheme}:// URL carries a password; give credentials through the environment instead")
    if scheme == "file":
        if not rest.startswith("/"):
            raise Invalid(f"{url!r} names a host, not a folder; give file:/// and an absolute path")
        return _folder(rest)
    if scheme in ("s3", "s3a"):
        from remote.store.s3.store import S3Store

        bucket, _, prefix = rest.partition("/")
        if not bucket:
            raise Invalid(f"{url!r} names no bucket; give s3://bucket/prefix")
        return S3Store(bucket, prefix)
    if scheme not in _BY_FSSPEC:
        known = ", ".join(f"{name}://" for name in ("file", "s3", *_BY_FSSPEC))
        raise Invalid(
            f"{url!r}: an archive cannot lie on {scheme}://, where a commit could overwrite another; give one of {known}"
        )
    from remote.store.fsspec.store import FsspecStore

    return FsspecStore(url)


def _folder(path: str) -> ObjectStore:
    from remote.store.folder.store import FolderStore

    return FolderStore(path)


def probe(store: ObjectStore, key: str) -> None:
    """Checks that `store` supports put-if-absent, with two puts of the new key `key`, and that it lists objects at once, by key.

    Costs three puts, a listing, and two deletions of what it wrote. Raises Invalid if the second put succeeds, the first one does
    not, or the listing is in another order, and the errors of the store's methods.
    """
    try:
        store.put_if_absent(key, b"first")
    except AlreadyExists as error:
        raise Invalid(f"{store.url}: {key} is taken, so it proves nothing; probe with a fresh key") from error
    try:
        _refuses_second(store, key)
        _lists_by_keys(store, key)
    finally:
        store.delete(key)


def _refuses_second(store: ObjectStore, key: str) -> None:
    try:
        store.put_if_absent(key, b"second")
    except AlreadyExists:
        return
    raise Invalid(
        f"{store.url} ignores the put-if-absent condition (If-None-Match) and must not be used for an archive: "
        "two writers would overwrite each other's commits; use a store that supports it"
    )


def _lists_by_keys(store: ObjectStore, key: str) -> None:
    """Lists `key` with one that was made after it and comes before it, which is deleted."""
    before = f"{key[:-1]}-"
    store.put_if_absent(before, b"third")
    try:
        found = [meta.key for meta in store.list(key[:-1])]
    finally:
        store.delete(before)
    if found != [before, key]:
        raise Invalid(
            f"{store.url} lists {', '.join(found) or 'nothing'} where {before}, {key} were put, and must not be used for an "
            "archive: the newest manifest has to be the first key listed; use one that lists by keys, and at once"
        )
