"""A key ring that asks another one for each data key once, however many readers want it at a time."""

from threading import Lock
from typing import Final

from remote.lru_cache import LruCache
from remote.transforms.keys import KeyRing

KEPT_MAX: Final = 4_096
"""Data keys, one for each segment: about 500 bytes each."""
_LOCKS: Final = 64


class UnwrappedOnce:
    """The key ring `inner`, with the data keys that were used last. Concurrent misses of one key cause one request."""

    def __init__(self, inner: KeyRing, kept_max: int = KEPT_MAX) -> None:
        self.inner = inner
        self._kept: LruCache[tuple[str, bytes], bytes] = LruCache(kept_max)
        self._asking = [Lock() for _ in range(_LOCKS)]

    @property
    def current(self) -> str:
        """That of the other ring."""
        return self.inner.current

    def wrap(self, key_id: str, data_key: bytes) -> bytes:
        """As the other ring does."""
        return self.inner.wrap(key_id, data_key)

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        """The data key; an error is not kept."""
        data_key = self._kept.get((key_id, wrapped))
        if data_key is None:
            with self._asking[hash(wrapped) % _LOCKS]:
                data_key = self._kept.get((key_id, wrapped))
                if data_key is None:
                    data_key = self.inner.unwrap(key_id, wrapped)
                    self._kept.put((key_id, wrapped), data_key)
        return data_key
