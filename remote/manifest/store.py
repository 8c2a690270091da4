"""Loads the newest manifest and commits the next one: optimistic, by put-if-absent, with no other lock.

A commit is: load version N; apply a pure transition; check the invariants; write N+1, which names N's hash and carries a
fresh put id, with put-if-absent. What may come back:

    done              list once more: ours must be the newest, or an ancestor of it. The key of a version that a sweep has
                      deleted is free again, so a writer that slept can win a put that nobody will ever build on
    key taken         read it back: with our own put id we won (a lost first answer looks like this), else reload and go again
    unknown           the same put again, then read back; still unknown: stop with Unknown, delete nothing
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from remote.clock import Clock, Ids
from remote.errors import AlreadyExists, Conflict, Fenced, NotFound, Unknown
from remote.manifest import codec, invariants
from remote.manifest.model import Manifest
from remote.object_keys import PartitionPath, parse_manifest_key
from remote.object_store import ObjectLister, ObjectReader, ObjectStore

COMMIT_ATTEMPTS_MAX = 50
PUT_ATTEMPTS_MAX = 4


@dataclass(frozen=True, slots=True)
class Stored:
    """A manifest and the hash of its stored form."""

    manifest: Manifest
    sha256: str


def load_version(store: ObjectReader, path: PartitionPath, version: int) -> Stored:
    """One version. Raises NotFound, Corrupt, Invalid (a newer format)."""
    key = path.manifest(version)
    body = store.get(key)
    return Stored(codec.decode(body, key), codec.sha256(body))


def newest_version(store: ObjectLister, path: PartitionPath) -> int:
    """The version that a listing shows first, 0 for none. Foreign keys are passed over."""
    for limit in (1, None):
        for meta in store.list(path.manifests, limit=limit):
            version = parse_manifest_key(meta.key)
            if version is not None:
                return version
    return 0


def load_newest(store: ObjectStore, path: PartitionPath, *, at_least: int = 0) -> Stored | None:
    """The newest version, None where there is none. `at_least` is a version known to exist, should the listing lag behind."""
    version = max(at_least, newest_version(store, path))
    if version == 0:
        return None
    newest = load_version(store, path, version)
    while at_least:  # the listing lagged once: go on by key
        try:
            newest = load_version(store, path, newest.manifest.version + 1)
        except NotFound:
            break
    return newest


@dataclass(frozen=True, slots=True)
class ManifestWriter:
    """Commits to one partition's chain, as `writer` with `writer_epoch`; a chain with a higher epoch raises Fenced."""

    store: ObjectStore
    path: PartitionPath
    clock: Clock
    ids: Ids
    writer: str
    writer_epoch: int

    def commit(self, first: Manifest, change: Callable[[Manifest], Manifest]) -> Manifest:
        """Commits `change` of the newest version (of `first`, version 0, where there is none) and gives the new newest.

        `change` is applied again to whatever has come in between; where it changes nothing, nothing is written.
        Raises Conflict, Fenced, Unknown, Unavailable, Invalid (an invariant would break), Corrupt.
        """
        seen = 0
        for _ in range(COMMIT_ATTEMPTS_MAX):
            before = load_newest(self.store, self.path, at_least=seen) or Stored(first, "")
            if before.manifest.writer_epoch > self.writer_epoch:
                raise Fenced(
                    f"{self.path}: writer epoch {before.manifest.writer_epoch} of {before.manifest.writer} has claimed the "
                    f"partition from epoch {self.writer_epoch}; this writer stops"
                )
            changed = change(before.manifest)
            if changed == before.manifest:
                return changed
            after = replace(
                changed,
                version=before.manifest.version + 1,
                parent_sha256=before.sha256,
                put_id=self.ids.new_id(),
                writer=self.writer,
                committed_at_ms=self.clock.now_ms(),
            )
            invariants.check(before.manifest, after)
            if self._put(after) and self._is_in_chain(after):
                return after
            seen = after.version
        raise Conflict(f"{self.path}: {COMMIT_ATTEMPTS_MAX} commits in a row came too late; run fewer writers, then try again")

    def _put(self, manifest: Manifest) -> bool:
        """Whether the version under the manifest's key is ours."""
        body = codec.encode(manifest)
        key = self.path.manifest(manifest.version)
        for attempt in range(PUT_ATTEMPTS_MAX):
            try:
                self.store.put_if_absent(key, body)
            except AlreadyExists:
                return self._is_ours(manifest)
            except Unknown:
                if attempt + 1 == PUT_ATTEMPTS_MAX:
                    return self._read_back(manifest)
                self.clock.sleep(0.1 * 4**attempt)
            else:
                return True
        raise AssertionError("unreachable: the last attempt returns or raises")

    def _is_ours(self, manifest: Manifest) -> bool:
        return load_version(self.store, self.path, manifest.version).manifest.put_id == manifest.put_id

    def _read_back(self, manifest: Manifest) -> bool:
        try:
            return self._is_ours(manifest)
        except NotFound as e:
            raise Unknown(
                f"{self.path}: nobody knows whether manifest {manifest.version} is or will be written; nothing was deleted, "
                "run the same command again"
            ) from e

    def _is_in_chain(self, manifest: Manifest) -> bool:
        newest = newest_version(self.store, self.path)
        if newest == manifest.version:
            return True
        if newest < manifest.version:
            raise Unknown(f"{self.path}: the store does not list manifest {manifest.version}, which it has just taken")
        try:
            child = load_version(self.store, self.path, manifest.version + 1)
        except NotFound:
            return False
        return child.manifest.parent_sha256 == codec.sha256(codec.encode(manifest))
