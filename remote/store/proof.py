"""Checks that a store supports put-if-absent and ordered listings, once in each process that writes to an archive there.

An archive may be moved to another store, and the store at an address may be replaced, so a check when the archive was created is
not enough. The check costs six requests: three puts, a listing and two deletions.
"""

from weakref import WeakSet

from remote.clock import Ids
from remote.keys import PROBE_PREFIX
from remote.store.api import ObjectStore
from remote.store.open import probe


class _Proven:
    """The stores that this process has checked: by address; in-memory stores by identity, since several have one address."""

    def __init__(self) -> None:
        self._addresses: set[str] = set()
        self._in_memory: WeakSet[ObjectStore] = WeakSet()

    def prove(self, store: ObjectStore, ids: Ids) -> None:
        is_in_memory = store.url.startswith("memory:")
        if store in self._in_memory if is_in_memory else store.url in self._addresses:
            return
        probe(store, f"{PROBE_PREFIX}{ids.new_id()}")  # two threads may do it at once; a second check does no harm
        if is_in_memory:
            self._in_memory.add(store)
        else:
            self._addresses.add(store.url)


_proven = _Proven()


def prove(store: ObjectStore, ids: Ids) -> None:
    """Proves that `store` honours put-if-absent and lists in order, unless this process has. Raises Invalid, and as `probe`."""
    _proven.prove(store, ids)
