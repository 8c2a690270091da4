"""A bounded, thread-safe LRU cache."""

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """At most `entries_max` values; the least recently used one is evicted. Thread-safe."""

    def __init__(self, entries_max: int) -> None:
        self.entries_max = entries_max
        self._values: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def get(self, key: K) -> V | None:
        """The cached value, or None."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """Caches a value and evicts the least recently used one if the cache is full."""
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self.entries_max:
                self._values.popitem(last=False)

    def forget(self, key: K) -> None:
        """Removes a value, if it is there."""
        with self._lock:
            self._values.pop(key, None)
