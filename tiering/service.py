"""Where components are built: addresses in, tiers out. The only place that knows which disk, store, clock and ids are used."""

from dataclasses import dataclass

from local_log.errors import NotFound, listed
from local_log.log import LocalLog
from local_log.log_dir import LogDir
from local_log.storage import OsDisk
from remote import archive
from remote.object_store import ObjectStore
from remote.reader import ArchivedLog
from remote.stores import open_store
from tiering.tiered_log import TieredLog


def log_dir(path: str) -> LogDir:
    """The log directory at a path of this machine."""
    return LogDir(OsDisk(), path.rstrip("/") or "/")


@dataclass(frozen=True, slots=True)
class Tiers:
    """A log directory, an archive, or both."""

    log_dir: LogDir | None
    store: ObjectStore | None

    def topics(self) -> tuple[str, ...]:
        """Every topic that either tier has, in order."""
        local = {p.topic for p in self.log_dir.partitions()} if self.log_dir else set()
        return tuple(sorted(local.union(archive.topics(self.store) if self.store else ())))

    def partitions(self, topic: str) -> dict[int, TieredLog]:
        """The topic's partitions in both tiers, by number. Raises NotFound.

        What a topic of the same name but another id has left in the archive is another topic's.
        """
        logs = self.log_dir.logs(lambda name: name == topic) if self.log_dir else ()
        local = {log.partition.partition: log for log in logs}
        archived = self._archived(topic, local)
        numbers = sorted({*local, *archived})
        if not numbers:
            places = " and ".join(t for t in (self.log_dir and self.log_dir.path, self.store and self.store.url) if t)
            raise NotFound(f"topic {topic} is not in {places}; there are: {listed(self.topics())}")
        return {n: TieredLog(local.get(n), archived.get(n)) for n in numbers}

    def partition(self, topic: str, number: int) -> TieredLog:
        """One partition. Raises NotFound."""
        partitions = self.partitions(topic)
        if number not in partitions:
            raise NotFound(f"topic {topic} has no partition {number}; it has {listed(map(str, partitions))}")
        return partitions[number]

    def _archived(self, topic: str, local: dict[int, LocalLog]) -> dict[int, ArchivedLog]:
        if self.store is None:
            return {}
        if local:
            manifests = archive.manifests_of(self.store, topic, next(iter(local.values())).topic_id)
        else:
            manifests = archive.newest_manifests(self.store, topic)
        return {m.partition: ArchivedLog(self.store, m) for m in manifests}


def open_tiers(log_dir_path: str | None, archive_url: str | None) -> Tiers:
    """Opens what is given. Raises NotFound for an archive that is not there, Invalid for one that we cannot read."""
    store = open_store(archive_url) if archive_url is not None else None
    if store is not None:
        archive.open_archive(store)
    return Tiers(log_dir(log_dir_path) if log_dir_path is not None else None, store)
