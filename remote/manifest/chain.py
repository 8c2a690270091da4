"""Whether the stored versions of a manifest are one chain, each naming the hash of the one before it. No open asks for that.

A writer that slept between its load and its put may have put a version under a key that a sweep had freed meanwhile. It has found
out and committed again (`ManifestWriter`), but the version stays until the next sweep. It is none of the chain: it lies below all
that is, nothing is built on it, and the store made it long after the version above it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from local_log.errors import Corrupt, Newer, NotFound
from remote.keys import PartitionPath, parse_manifest_key
from remote.manifest import codec, stamped_json
from remote.manifest.model import CLOCK_DIFFERENCE_MS_MAX, Manifest
from remote.manifest.signatures import NotSigned
from remote.store.api import ObjectLister, ObjectMeta, ObjectReader, ReadableStore


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """A manifest version as a listing shows it."""

    version: int
    meta: ObjectMeta


class BrokenChain(Corrupt):
    """A version that is not what its child says it was, or that is missing between two others."""


def listed_versions(store: ObjectLister, path: PartitionPath) -> list[StoredVersion]:
    """All versions that the store lists, the newest first. Foreign keys, and pages, are passed over."""
    found = ((parse_manifest_key(meta.key), meta) for meta in store.list(path.manifests))
    return [StoredVersion(version, meta) for version, meta in found if version and meta.key == path.manifest(version)]


def stored_versions(store: ReadableStore, path: PartitionPath) -> Sequence[StoredVersion]:
    """Those that are of the chain, the newest first."""
    return chain_of(store, path, listed_versions(store, path))


def chain_of(store: ObjectReader, path: PartitionPath, listed: Sequence[StoredVersion]) -> Sequence[StoredVersion]:
    """The listed versions, newest first, that belong to the chain, including damaged ones.

    A version is read only if it was made long after the version that follows it. Such a version may have been restored from a
    copy. It belongs to the chain if the version that follows it names its hash.
    """
    end = _late_from(listed)
    while end < len(listed) and _is_built_on(store, path, listed[end - 1].version, listed[end].version):
        end += 1
    return listed[:end]


def _late_from(listed: Sequence[StoredVersion]) -> int:
    """From where on all versions were made long after the last one before, how many there are where none were."""
    end, earliest_ms = len(listed), None
    for at in range(len(listed) - 1, 0, -1):
        made_ms, above_ms = listed[at].meta.modified_ms, listed[at - 1].meta.modified_ms
        if made_ms is None or above_ms is None:
            return len(listed)
        earliest_ms = made_ms if earliest_ms is None else min(earliest_ms, made_ms)
        if earliest_ms > above_ms + CLOCK_DIFFERENCE_MS_MAX:
            end = at
    return end


def _is_built_on(store: ObjectReader, path: PartitionPath, child: int, version: int) -> bool:
    if version != child - 1:
        return False
    try:
        key = path.manifest(child)
        return codec.decode(store.get(key), key).parent_sha256 == stamped_json.sha256(store.get(path.manifest(version)))
    except NotFound:
        return False
    except (Corrupt, Newer):
        return True  # an unreadable child does not show its parent, so the version is kept


def walk_chain(store: ObjectReader, path: PartitionPath, versions: Iterable[int]) -> Iterator[Manifest | Corrupt | Newer]:
    """These versions, the newest first, each where it can be read, and what is wrong with them. Each is read when it is come to.

    That the oldest ones have been swept is no fault. Raises Unavailable.
    """
    child: Manifest | None = None
    for version in versions:
        key = path.manifest(version)
        if child is not None and version != child.version - 1:
            missing = path.manifest(child.version - 1)
            problem = f"version {child.version - 1} is missing between {version} and {child.version}: restore it from a copy"
            yield BrokenChain(problem, file=missing)
            child = None
        try:
            body = _vouched_for(store, key, child)
        except NotFound:
            return  # swept meanwhile, and all older ones with it
        except Corrupt as e:
            yield e
            child = None
            continue
        if child is not None and stamped_json.sha256(body) != child.parent_sha256:
            yield BrokenChain(_problem(stamped_json.sha256(body), child), file=key)
        try:
            child = codec.decode(body, key)
        except (Corrupt, Newer) as e:
            yield e
            child = None
        else:
            if (child.path, child.version) != (path, version):
                yield BrokenChain(
                    f"it says that it is version {child.version} of {child.path.prefix}: restore it from a copy", file=key
                )
                child = None
            else:
                yield child
    if child is not None and child.version == 1 and child.parent_sha256:
        yield BrokenChain("version 1 names a parent: restore it from a copy", file=path.manifest(1))


def _vouched_for(store: ObjectReader, key: str, child: Manifest | None) -> bytes:
    """What is stored; also unsigned, where the version after it names its hash: that one is signed, or vouched for, too."""
    try:
        return store.get(key)
    except NotSigned as e:
        if child is None or stamped_json.sha256(e.body) != child.parent_sha256:
            raise
        return e.body


def _problem(found: str, child: Manifest) -> str:
    return (
        f"its hash is {found} where version {child.version} was built on {child.parent_sha256 or 'nothing'}: one of the two was "
        "changed after it was written. Delete nothing, and restore both from copies or the store's own versions"
    )
