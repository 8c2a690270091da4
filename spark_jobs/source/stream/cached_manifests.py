"""A store that caches the newest manifest of each partition, for a stream that polls for newer ones.

A version is immutable, so while the listing shows the same one, nothing is fetched.
"""

from typing import Any, cast

from remote.keys import parse_manifest_key
from remote.store.api import ObjectStore


class _CachedManifests:
    """Keeps the last manifest fetched from each folder: as many bodies as there are partitions."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self._last: dict[str, tuple[str, bytes]] = {}

    def get(self, key: str) -> bytes:
        """The newest manifest of a partition is fetched once."""
        if parse_manifest_key(key) is None:
            return self.inner.get(key)
        folder = key.rpartition("/")[0]
        known, body = self._last.get(folder, ("", b""))
        if known != key:
            body = self.inner.get(key)
            self._last[folder] = key, body
        return body

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def cached_manifests(store: ObjectStore) -> ObjectStore:
    """`store`, with the newest manifests cached in memory."""
    return cast(ObjectStore, _CachedManifests(store))
