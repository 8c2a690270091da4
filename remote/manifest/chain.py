"""Whether the stored versions of a manifest are one chain, each naming the hash of the one before it. No open asks for that."""

from collections.abc import Iterable, Iterator

from local_log.errors import Corrupt
from remote.errors import Newer, NotFound
from remote.manifest import codec
from remote.manifest.model import Manifest
from remote.object_keys import PartitionPath, parse_manifest_key
from remote.object_store import ObjectReader, ObjectStore


class BrokenChain(Corrupt):
    """A version that is not what its child says it was, or that is missing between two others."""


def stored_versions(store: ObjectStore, path: PartitionPath) -> Iterator[int]:
    """The versions that the store lists, the newest first. Foreign keys, and pages, are passed over."""
    for meta in store.list(path.manifests):
        version = parse_manifest_key(meta.key)
        if version is not None and meta.key == path.manifest(version):
            yield version


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
            body = store.get(key)
        except NotFound:
            return  # swept meanwhile, and all older ones with it
        if child is not None and codec.sha256(body) != child.parent_sha256:
            yield BrokenChain(_problem(codec.sha256(body), child), file=key)
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


def _problem(found: str, child: Manifest) -> str:
    return (
        f"its hash is {found} where version {child.version} was built on {child.parent_sha256 or 'nothing'}: one of the two was "
        "changed after it was written. Delete nothing, and restore both from copies or the store's own versions"
    )
