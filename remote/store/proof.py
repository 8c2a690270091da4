"""The proof that a store keeps its word, made once by each process that writes an archive there.

An archive may be moved to another store, and a store be replaced behind its address, so what was proved when the archive was made
proves nothing of where it lies now. It costs six requests: three puts, a listing and two deletions.
"""

from weakref import WeakSet

from remote.clock import Ids
from remote.keys import PROBE_PREFIX
from remote.store.api import ObjectStore
from remote.store.open import probe


class _Proven:
    """Which stores this process has proved, of any thread: by address; one in memory by itself, as it may be any other's."""

    def __init__(self) -> None:
        self._addresses: set[str] = set()
        self._in_memory: WeakSet[ObjectStore] = WeakSet()

    def prove(self, store: ObjectStore, ids: Ids) -> None:
        is_in_memory = store.url.startswith("memory:")
        if store in self._in_memory if is_in_memory else store.url in self._addresses:
            return
        probe(store, f"{PROBE_PREFIX}{ids.new_id()}")  # two threads may do it at once, which proves it twice
        if is_in_memory:
            self._in_memory.add(store)
        else:
            self._addresses.add(store.url)


_proven = _Proven()


def prove(store: ObjectStore, ids: Ids) -> None:
    """Proves that `store` honours put-if-absent and lists in order, unless this process has. Raises Invalid, and as `probe`."""
    _proven.prove(store, ids)
