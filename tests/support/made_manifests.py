"""Manifests made by hand, and what must hold of those that writers made."""

import itertools
from typing import Any

from crc32c import crc32c

from local_log.errors import Corrupt, Newer
from local_log.formats.checkpoints import EpochEntry
from remote.keys import AUX, LOG, PartitionPath, segment_name
from remote.manifest import invariants, pages
from remote.manifest.chain import stored_versions, walk_chain
from remote.manifest.gaps import Gap
from remote.manifest.model import Manifest, PageRef, missing_ranges, never_archived
from remote.manifest.segment_entry import AuxRange, SegmentEntry
from remote.manifest.store import load_newest, load_version
from remote.store.api import ObjectStore

TOPIC_ID = "A" * 22
PATH = PartitionPath("topic", TOPIC_ID, 0)
_segment_numbers = itertools.count(1)


def entry(base_offset: int, end_offset: int, **fields: Any) -> SegmentEntry:
    """An entry of `[base_offset, end_offset)` that names objects which need not exist."""
    segment_id = f"{next(_segment_numbers):032x}"
    known: dict[str, Any] = {
        "segment_id": segment_id,
        "base_offset": base_offset,
        "end_offset": end_offset,
        "last_offset": end_offset - 1,
        "max_timestamp_ms": 1_000 + end_offset,
        "record_count": end_offset - base_offset,
        "leader_epochs": (EpochEntry(0, base_offset),),
        "log_name": segment_name(base_offset, 0, segment_id, LOG),
        "log_size": 100,
        "log_crc32c": 1,
        "aux_name": segment_name(base_offset, 0, segment_id, AUX),
        "aux_size": 10,
        "aux_crc32c": 2,
        "aux_ranges": {"offset_index": AuxRange(0, 10, 0)},
        "txn_index_empty": True,
        "encoding": "identity",
        "copied_at_ms": 5_000,
    }
    return SegmentEntry(**{**known, **fields})


def manifest(*entries: SegmentEntry, log_start_offset: int = 0, reason: str = "lost", **fields: Any) -> Manifest:
    """Version 1 with these entries, and a gap of that reason for each range that they leave open."""
    first = never_archived(PATH.topic, PATH.topic_id, PATH.partition, log_start_offset)
    known: dict[str, Any] = {name: getattr(first, name) for name in first.__dataclass_fields__}
    known |= {"version": 1, "entries": tuple(sorted(entries, key=lambda e: (e.base_offset, e.end_offset)))}
    ungapped = Manifest(**known)
    known["gaps"] = tuple(Gap(start, end, reason, 7) for start, end in missing_ranges(ungapped))
    return Manifest(**{**known, **fields})


def epochs(*pairs: tuple[int, int]) -> tuple[EpochEntry, ...]:
    return tuple(EpochEntry(*pair) for pair in pairs)


def paged(*entries: SegmentEntry) -> PageRef:
    """A page of entries that is nowhere stored."""
    return pages.ref_of(0, entries, pages.encode(0, entries), f"{next(_segment_numbers):032x}")


def chain_faults(store: ObjectStore, path: PartitionPath = PATH, *, versions_max: int | None = None) -> list[Corrupt | Newer]:
    """What is wrong with the stored versions as one chain, the newest first."""
    walked = walk_chain(store, path, [v.version for v in stored_versions(store, path)][:versions_max])
    return [found for found in walked if not isinstance(found, Manifest)]


def assert_sound_chain(store: ObjectStore, path: PartitionPath = PATH, *, first_version: int = 1) -> Manifest:
    """Every version from `first_version` on follows the one before it and keeps the invariants; gives the newest."""
    newest = load_newest(store, path)
    assert newest is not None
    before = None if first_version == 1 else load_version(store, path, first_version - 1)
    for version in range(first_version, newest.manifest.version + 1):
        after = load_version(store, path, version)
        assert after.manifest.version == version
        assert after.manifest.parent_sha256 == (before.sha256 if before else "")
        if before is not None:
            invariants.check(before.manifest, after.manifest)
        before = after
    return newest.manifest


def assert_sound_archive(store: ObjectStore, path: PartitionPath) -> Manifest:
    """The chain is sound, and every named object exists with its size and CRC-32C, and is named once; gives the newest."""
    newest = assert_sound_chain(store, path)
    for e in newest.entries:
        for stored in (e.stored_log, e.stored_aux):
            body = store.get(path.segment(stored.name))
            assert (len(body), crc32c(body)) == (stored.size, stored.crc32c), stored.name
    assert len({e.log_name for e in newest.entries}) == len({e.base_offset for e in newest.entries}) == len(newest.entries)
    return newest
