"""Classifies the listed keys of an archive: which partition each belongs to, and which kind of object it is."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby

from remote.keys import (
    ARCHIVE,
    PROBE_PREFIX,
    PartitionPath,
    parse_manifest_key,
    parse_page_name,
    parse_pin_name,
    parse_segment_name,
    partition_of,
    registration_of,
    write_of,
)
from remote.manifest.chain import StoredVersion
from remote.store.api import ObjectMeta


@dataclass(frozen=True, slots=True)
class StrayObject:
    """An object outside every partition: left by a probe of the store, or foreign."""

    meta: ObjectMeta
    is_probe: bool


@dataclass(frozen=True, slots=True)
class ListedPartition:
    """The objects of a partition: manifest versions, newest first, pages and pins by name, and foreign objects.

    `segments` streams the listing in key order, and must be consumed before the next partition.
    """

    path: PartitionPath
    versions: tuple[StoredVersion, ...]
    pages: dict[str, ObjectMeta]
    pins: dict[str, ObjectMeta]
    foreign: tuple[ObjectMeta, ...]
    segments: Iterator[ObjectMeta]

    @property
    def newest(self) -> int:
        """The newest version. Only valid if `versions` is not empty."""
        return self.versions[0].version


def inventory(objects: Iterable[ObjectMeta]) -> Iterator[StrayObject | ListedPartition]:
    """Groups a listing in key order by partition. Memory holds the manifests and pages of one partition at a time."""
    for path, metas in groupby(objects, key=lambda meta: partition_of(meta.key)):
        if path is None:
            for meta in metas:
                if meta.key != ARCHIVE and write_of(meta.key) is None and registration_of(meta.key) is None:
                    yield StrayObject(meta, meta.key.startswith(PROBE_PREFIX) and "/" not in meta.key)
        else:
            yield _sorted(path, metas)


def _sorted(path: PartitionPath, metas: Iterator[ObjectMeta]) -> ListedPartition:
    versions: list[StoredVersion] = []
    pages: dict[str, ObjectMeta] = {}
    pins: dict[str, ObjectMeta] = {}
    foreign: list[ObjectMeta] = []
    first: list[ObjectMeta] = []
    for meta in metas:
        if meta.key.startswith(path.segments):
            first.append(meta)
            break
        version, name = parse_manifest_key(meta.key), meta.key.rpartition("/")[2]
        if version is not None and meta.key == path.manifest(version):
            versions.append(StoredVersion(version, meta))
        elif parse_page_name(name) is not None and meta.key == path.page(name):
            pages[name] = meta
        elif (pin := parse_pin_name(name)) is not None and meta.key == path.pin(pin):
            pins[pin] = meta
        else:
            foreign.append(meta)
    return ListedPartition(path, tuple(versions), pages, pins, tuple(foreign), _chained(first, metas))


def _chained(first: list[ObjectMeta], rest: Iterator[ObjectMeta]) -> Iterator[ObjectMeta]:
    yield from first
    yield from rest


def is_segment(path: PartitionPath, key: str) -> bool:
    """Whether a key below `path.segments` is that of a segment's object."""
    name = key.removeprefix(path.segments)
    return parse_segment_name(name) is not None
