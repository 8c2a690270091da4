"""A store that remembers the newest manifest of each partition, for who asks again and again whether there is a newer one.

A version is immutable, so where the listing still shows the same one, nothing has to be fetched.
"""

from typing import Any, cast

from remote.keys import parse_manifest_key
from remote.store.api import ObjectStore


class _ManifestMemory:
    """`inner`, with the last manifest that was got of each folder kept: as many bodies as there are partitions."""

    def __init__(self, inner: ObjectStore) -> None:
        self.inner = inner
        self._last: dict[str, tuple[str, bytes]] = {}

    def get(self, key: str) -> bytes:
        """As the inner store's."""
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


def remembering(store: ObjectStore) -> ObjectStore:
    """`store`, with the newest manifests kept in memory."""
    return cast(ObjectStore, _ManifestMemory(store))
