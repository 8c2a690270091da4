"""Writers of manifests who copy segments of ten offsets by number, each with an id source of its own."""

from collections.abc import Callable

from archive_fakes import CountingIds, Door, FixedClock, MemoryStore
from made_manifests import PATH, entry

from local_log.formats.checkpoints import EpochEntry
from remote.manifest.model import Manifest, never_archived
from remote.manifest.store import ManifestWriter
from remote.manifest.transitions import segment_copied
from remote.store.api import ObjectStore

FIRST = never_archived(PATH.topic, PATH.topic_id, PATH.partition, 0)
FIRST_PUT, PUT = 2, 3
"""The number of a commit's put among its calls, without and with a version before: behind a listing, or that and a get."""

Change = Callable[[Manifest], Manifest]


class Writer:
    """A writer with an id source of its own, who copies segments of ten offsets by number."""

    def __init__(self, store: ObjectStore, name: str = "a", epoch: int = 0) -> None:
        self.clock = FixedClock()
        self.writer = ManifestWriter(store, PATH, self.clock, CountingIds(name), name, epoch)

    def commit(self, change: Change) -> Manifest:
        return self.writer.commit(FIRST, change)

    def copy(self, *numbers: int) -> Manifest:
        for number in numbers:
            done = self.commit(copied(number))
        return done


def copied(number: int) -> Change:
    one = entry(10 * number, 10 * number + 10)
    return lambda before: segment_copied(before, one, (EpochEntry(0, 0),), "lost", 7)


def held(manifest: Manifest) -> list[int]:
    """The numbers of the segments that a manifest names."""
    return [e.base_offset // 10 for e in manifest.entries]


def sweep(store: MemoryStore, up_to: int) -> None:
    """What the sweep does to old versions."""
    for version in range(1, up_to + 1):
        store.delete(PATH.manifest(version))


def calls_of_a_commit(versions_before: int = 0) -> int:
    store = MemoryStore()
    for number in range(versions_before):
        Writer(store, "c").copy(number)
    door = Door(store)
    Writer(door).copy(90)
    return len(door.calls)
