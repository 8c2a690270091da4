"""Where components are built: addresses in, tiers out. What they are built of is `machine`'s."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from local_log.errors import LogError, NotFound, listed
from local_log.log_dir import LogDir, Unopened
from local_log.log_reader import LogReader
from remote import archive
from remote.manifest.model import Manifest
from remote.read import chunk_cache, index_cache
from remote.read.cache_files import CacheFiles
from remote.read.context import ReadContext, decoder_with
from remote.read.log import ArchivedLog
from remote.read.read_ahead import AheadBytes, ReadAhead
from remote.signed_store import trusted
from remote.store.api import ObjectStore
from remote.store.instrumented import Meter
from remote.transforms.chunk_index import CHUNK_BYTES
from tiering.log_dirs import log_dir
from tiering.machine import CLOCK, IDS, RANDOMNESS, open_store, writable_disk
from tiering.read.tiered_log import TieredLog

if TYPE_CHECKING:
    from concurrent.futures import Executor, ThreadPoolExecutor

    from remote.transforms.encoder import Transforms

CACHE_BYTES_MAX = 5 << 30
SEEN_BYTES_MAX = 64 << 20

Warn = Callable[[str], object]
"""Takes a warning, a sentence for a person."""


def shares_a_folder(source: LogDir, store: ObjectStore) -> bool:
    """Whether a folder archive lies in the log directory, the other way round, or both are one, symbolic links followed."""
    scheme, _, folder = store.url.partition("://")
    if scheme != "file":
        return False
    ours, theirs = os.path.realpath(folder), os.path.realpath(source.path)
    return os.path.commonpath([ours, theirs]) in (ours, theirs)


@dataclass(frozen=True, slots=True)
class Tiers:
    """A log directory, an archive, or both, and how the archive is read.

    `warn` is called if the archive has several topics with the same name.
    """

    log_dir: LogDir | None
    store: ObjectStore | None
    reading: ReadContext = field(default_factory=ReadContext, compare=False)
    warn: Warn = field(default=lambda _: None, compare=False)

    @property
    def cluster_id(self) -> str:
        """The id of the cluster whose log directory it is, "" if that is not known. Raises Corrupt, Unreadable."""
        return self.log_dir.properties().get("cluster.id", "") if self.log_dir else ""

    def topics(self) -> tuple[str, ...]:
        """Every topic that either tier has, in order."""
        local = {p.topic for p in self.log_dir.partitions()} if self.log_dir else set()
        return tuple(sorted(local.union(archive.topics(self.store) if self.store else ())))

    def topic_ids(self, topic: str) -> tuple[str, ...]:
        """The ids of all topics of this name: of those in the archive, and of the one in the log directory. Raises LogError."""
        archived = archive.topic_ids(self.store, topic) if self.store else ()
        logs = self.log_dir.found_of(self.log_dir.partitions_of(topic)[:1]) if self.log_dir else ()
        return (*archived, *(log.topic_id for log in logs if isinstance(log, LogReader)))

    def found(self, topic: str, only: int | None = None, topic_id: str | None = None) -> dict[int, TieredLog | LogError]:
        """The topic's partitions in both tiers, by number, and in place of one that cannot be opened what went wrong.

        With `only` that one, if it is there: the others' manifests are not read.

        What a topic of the same name but another id has left in the archive is another topic's, read where `topic_id` asks for
        it. Raises NotFound, Unavailable, Corrupt (a checkpoint file of the log directory).
        """
        logs = self.log_dir.found_in(topic) if self.log_dir else ()
        local = {log.partition.partition: self._known(log) for log in logs}
        if topic_id is not None:
            local = {n: log for n, log in local.items() if not isinstance(log, LogReader) or log.topic_id == topic_id}
        archived = self._archived(topic, local, only, topic_id)
        numbers = sorted({*local, *archived} if only is None else {only} & {*local, *archived})
        if not numbers and only is None:
            places = " and ".join(t for t in (self.log_dir and self.log_dir.path, self.store and self.store.url) if t)
            names = self.topics()
            if topic in names:  # a folder of the archive, which a copy makes before its first manifest
                raise NotFound(f"nothing of topic {topic} is archived in {places} yet; its log directory has what there is")
            raise NotFound(f"topic {topic} is not in {places}; there are: {listed(names)}")
        return {n: _joined(local.get(n), archived.get(n)) for n in numbers}

    def partitions(self, topic: str, topic_id: str | None = None) -> dict[int, TieredLog]:
        """As `found`, all of them or none. Raises what is wrong with the first that cannot be opened, too."""
        return {number: _opened(log) for number, log in self.found(topic, topic_id=topic_id).items()}

    def partition(self, topic: str, number: int, topic_id: str | None = None) -> TieredLog:
        """One partition, whatever is wrong with the others. Raises NotFound, and what is wrong with this one."""
        partitions = self.found(topic, number, topic_id)
        if number not in partitions:
            partitions = self.found(topic, topic_id=topic_id)
            raise NotFound(f"topic {topic} has no partition {number}; it has {listed(map(str, partitions))}")
        return _opened(partitions[number])

    def _known(self, log: LogReader | Unopened) -> LogReader | LogError:
        """A log whose topic id can be read, where an archive is to be asked for it."""
        if isinstance(log, Unopened):
            return log.error
        if self.store is None:
            return log
        try:
            _ = log.topic_id
        except LogError as e:
            return e
        return log

    def _archived(
        self, topic: str, local: Mapping[int, LogReader | LogError], only: int | None, topic_id: str | None
    ) -> dict[int, ArchivedLog | archive.UnreadableManifest]:
        if self.store is None:
            return {}
        ids = [log.topic_id for log in local.values() if isinstance(log, LogReader)]
        if ids:
            found = archive.partitions_of(self.store, topic, ids[0], only)
        else:
            of_name = archive.find_topic(self.store, topic, topic_id, only=only)
            found = of_name.partitions
            if topic_id is not None and only is None and not local:
                archive.require_partitions(self.store, of_name)
            if of_name.warning is not None:
                self.warn(of_name.warning)
        return {n: ArchivedLog(self.store, m, reading=self.reading) if isinstance(m, Manifest) else m for n, m in found.items()}


def _joined(
    local: LogReader | LogError | None, archived: ArchivedLog | archive.UnreadableManifest | None
) -> TieredLog | LogError:
    if isinstance(local, LogError):
        return local
    if isinstance(archived, LogError):
        return archived
    return TieredLog(local, archived)


def _opened(log: TieredLog | LogError) -> TieredLog:
    if not isinstance(log, TieredLog):
        raise log
    if isinstance(log.local, LogReader):
        log.local.require_all_segments()
    return log


def open_reading(
    cache_dir: str | None,
    cache_bytes_max: int,
    pool: "Executor | None",
    keys_address: str | None = None,
    of_all: AheadBytes | None = None,
) -> ReadContext:
    """How archives are read: ahead by the pool's threads, and with a folder where indexes and bytes of segments are kept.

    `of_all` bounds the bytes that all readers are ahead.

    Of the folder's bytes a fifth at most are indexes. What is encrypted is read with the keys at `keys_address`, and not kept.
    Raises Invalid, BadAddress for keys that cannot be had.
    """
    decoded = decoder_with(keys_address)
    if cache_dir is None:
        return ReadContext(decoded, ahead=ReadAhead(pool, of_all=of_all))
    disk, clock, ids = writable_disk(), CLOCK, IDS
    of_indexes = min(index_cache.FILES_BYTES_MAX, cache_bytes_max // 5)
    indexes = CacheFiles(disk, f"{cache_dir}/indexes", index_cache.SUFFIX, of_indexes, clock, ids)
    chunks = CacheFiles(disk, f"{cache_dir}/chunks", chunk_cache.SUFFIX, cache_bytes_max - of_indexes, clock, ids)
    return ReadContext(
        decoded,
        indexes=index_cache.IndexCache(files=indexes),
        chunks=chunk_cache.ChunkCache(chunks),
        ahead=ReadAhead(pool, align=chunk_cache.CHUNK_BYTES, of_all=of_all),
    )


def read_ahead_pool(threads: int) -> "ThreadPoolExecutor":
    """Threads for reading ahead; none is started before there is something to read."""
    from concurrent.futures import ThreadPoolExecutor  # brings logging

    return ThreadPoolExecutor(threads, thread_name_prefix="read-ahead")


def remembered(folder: str | None) -> CacheFiles | None:
    """Where the newest versions that were seen are remembered, so that an older one in their place is found; None for nowhere."""
    if folder is None:
        return None
    return CacheFiles(writable_disk(), f"{folder}/seen", ".seen", SEEN_BYTES_MAX, CLOCK, IDS)


def open_tiers(  # one argument each of what a command's options say of the tiers
    log_dir_path: str | None,
    archive_url: str | None,
    reading: ReadContext | None = None,
    *,
    warn: Warn = lambda _: None,
    keys_address: str | None = None,
    cache_dir: str | None = None,
    meter: Meter | None = None,
    looks: bool = True,
) -> Tiers:
    """Opens what is given. Raises NotFound for an archive that is not there, Invalid for one that we cannot read.

    Unless it `looks`, the archive is taken for one: somebody else looks, and the store may be down now.

    With keys manifests are held against their signatures, and with a cache against the versions that were seen before.

    `meter` counts the requests to the store.

    A folder is read in turn whatever `reading` says: there the system reads ahead, and threads would only cost.
    """
    store = (
        trusted(open_store(archive_url, meter=meter), keys_address, remembered(cache_dir)) if archive_url is not None else None
    )
    reading = reading or ReadContext()
    if store is not None:
        if looks:
            archive.open_archive(store)
        if store.url.startswith("file://"):
            reading = replace(reading, ahead=replace(reading.ahead, pool=None))
    return Tiers(log_dir(log_dir_path) if log_dir_path is not None else None, store, reading, warn)


def transforms(*, compress: bool, encrypt_with: str | None, chunk_bytes: int = CHUNK_BYTES) -> "Transforms":
    """What an offload is to do to segments; `encrypt_with` is where the keys are, None where nothing is to be encrypted.

    The keys are tried. Raises Invalid, NoKey, WrongKey, Unavailable, BadAddress.
    """
    from remote.transforms.encoder import Encryption, Transforms  # who only reads encodes nothing
    from remote.transforms.key_rings import open_keys
    from remote.transforms.keys import check_key_ring

    if encrypt_with is None:
        return Transforms(compress, None, chunk_bytes)
    keys, randomness = open_keys(encrypt_with), RANDOMNESS
    check_key_ring(keys, randomness)
    return Transforms(compress, Encryption(keys, randomness), chunk_bytes)
