"""Loads the newest manifest and commits the next one with optimistic concurrency: put-if-absent is the only lock.

A commit loads version N, ends a write that is pending in it (see `decisions`), applies a pure transition, writes the pages that
keep version N+1 short and reads them back, checks the invariants, and writes version N+1 with put-if-absent. Version N+1 contains
the hash of version N and a new put id. The outcomes of the put:

    done              The versions are listed again: ours must be the newest or an ancestor of the newest. After a sweep has
                      deleted old versions their keys are free, so a stale writer's put can succeed on a version outside the chain
    key taken         The object is read. If it has our put id, a lost first answer was a success; else reload and try again
    unknown           The put is repeated and the object is read. If that does not decide it, raise Unknown and delete nothing
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeVar

from local_log.errors import Conflict, Corrupt, Fenced, NoKey, NotFound, Unavailable, Unknown
from remote.clock import Clock, Ids
from remote.keys import PartitionPath, parse_manifest_key
from remote.manifest import codec, invariants, paging, stamped_json
from remote.manifest.entries import Pages
from remote.manifest.model import LIMITS, Limits, Manifest
from remote.manifest.own_objects import put_own
from remote.manifest.paging import NewPage
from remote.manifest.signatures import signing_key_of
from remote.manifest.transitions import brings_offsets, claimed, last_data_ms
from remote.manifest.write_record import ended
from remote.store.api import ObjectLister, ObjectReader, ObjectStore, ReadableStore
from remote.store.conditional_put import PutOutcome, conditional_put

T = TypeVar("T")

COMMIT_ATTEMPTS_MAX = 50
LOAD_ATTEMPTS_MAX = 4


@dataclass(frozen=True, slots=True)
class Stored:
    """A manifest and the hash of its stored form."""

    manifest: Manifest
    sha256: str


def load_version(store: ObjectReader, path: PartitionPath, version: int) -> Stored:
    """One version. Raises NotFound, Corrupt, Newer."""
    key = path.manifest(version)
    body = store.get(key)
    manifest = codec.decode(body, key)
    if (manifest.path, manifest.version) != (path, version):
        raise Corrupt(f"the manifest of {manifest.path.prefix}, version {manifest.version}, lies under another's key", file=key)
    return Stored(manifest, stamped_json.sha256(body))


def newest_version(store: ObjectLister, path: PartitionPath) -> int:
    """The version that a listing shows first, 0 for none. Foreign keys are passed over."""
    for limit in (1, None):
        is_empty = True
        for meta in store.list(path.manifests, limit=limit):
            is_empty = False
            version = parse_manifest_key(meta.key)
            if version is not None and meta.key == path.manifest(version):
                return version
        if is_empty:
            break
    return 0


def load_newest(store: ReadableStore, path: PartitionPath, *, at_least: int = 0) -> Stored | None:
    """The newest version, None where there is none. `at_least` is a version known to have been, should the listing lag behind.

    A version may be swept between listing and reading: then there is a newer one, and the versions are listed again.
    Raises Unavailable if the listing still has a version that does not exist.
    """
    for _ in range(LOAD_ATTEMPTS_MAX):
        listed = newest_version(store, path)
        if max(listed, at_least) == 0:
            return None
        try:
            newest = load_version(store, path, max(listed, at_least))
        except NotFound:
            at_least = 0
            continue
        return newest if listed >= at_least else _go_on_by_key(store, path, newest)
    raise Unavailable(f"{path}: the store lists manifests that it does not have; try again when its listing has caught up")


def of_newest(store: ObjectStore, manifest: Manifest, act: Callable[[Manifest], T]) -> T:
    """What `act` makes of a manifest that was the newest; of the newest where a page is gone that this one has done without.

    Raises what `act` raises, Corrupt only where the newest names what is not there.
    """
    while True:
        try:
            return act(manifest)
        except Corrupt:
            stored = load_newest(store, manifest.path)
            if stored is None or stored.manifest.version <= manifest.version:
                raise
            manifest = stored.manifest


def _go_on_by_key(store: ObjectReader, path: PartitionPath, stored: Stored) -> Stored:
    while True:
        try:
            stored = load_version(store, path, stored.manifest.version + 1)
        except NotFound:
            return stored


@dataclass(frozen=True, slots=True)
class Committed:
    """A version that was committed, and the newest one that was listed after it: most often the same."""

    stored: Stored
    newest: int


@dataclass(frozen=True, slots=True)
class ManifestWriter:
    """Commits to one partition's chain, as `writer` with `writer_epoch`; a chain with a higher epoch raises Fenced."""

    store: ObjectStore
    path: PartitionPath
    clock: Clock
    ids: Ids
    writer: str
    writer_epoch: int
    limits: Limits = LIMITS

    def commit(self, first: Manifest, change: Callable[[Manifest], Manifest]) -> Manifest:
        """Commits `change` of the newest version (of `first`, a version 0, where there is none) and gives the new newest.

        `change` is applied again to whatever has come in between; where it changes nothing, nothing is written, unless there
        is something below the log start offset still to be moved (`paging.has_below`): a commit moves at most a page's entries.
        The times of a chain's versions never go back, whatever clocks do, so that a time is looked up by halves.
        Raises Conflict, Fenced, Unknown, Unavailable, Invalid (an invariant would break), Corrupt, NoKey (to sign it).
        """
        return self.commit_on(None, first, change).stored.manifest

    def commit_on(self, known: Stored | None, first: Manifest, change: Callable[[Manifest], Manifest]) -> Committed:
        """The same for a caller who holds what was the newest version: it is loaded only where another has been put since."""
        seen = 0
        for _ in range(COMMIT_ATTEMPTS_MAX):
            before = known or load_newest(self.store, self.path, at_least=seen) or Stored(first, "")
            committed = self._commit_once(before, change)
            if committed is not None:
                return committed
            known, seen = None, before.manifest.version + 1
        raise Conflict(f"{self.path}: {COMMIT_ATTEMPTS_MAX} commits in a row were too late; run fewer writers, then try again")

    def _commit_once(self, before: Stored, change: Callable[[Manifest], Manifest]) -> Committed | None:
        """None where a newer version is to be asked for."""
        old = before.manifest
        if old.writer_epoch > self.writer_epoch:
            raise Fenced(
                f"{self.path}: writer epoch {old.writer_epoch} of {old.writer} has claimed the partition from epoch "
                f"{self.writer_epoch}; this writer stops"
            )
        base = ended(self.store, self.clock, old, self.writer)
        changed = change(base)
        if changed == old and not paging.is_due(changed, self.limits):
            return Committed(before, old.version)
        changed = replace(changed, signed_by=self._signer(old))
        try:
            paged, pages = self._within_limits(changed)
        except Corrupt:
            if newest_version(self.store, self.path) > old.version:
                return None  # a page is missing that a newer version has done without
            raise
        after = self._following(before, paged, brings_data=brings_offsets(base, changed), last_data_ms=last_data_ms(base))
        invariants.check(old, after)
        invariants.check_bounds(after, self.limits)
        for page in pages:
            put_own(self.store, self.clock, self.path.page(page.ref.name), page.body)
        body = codec.encode(after)
        stored = Stored(after, stamped_json.sha256(body))
        newest = self._newest_after(stored) if self._put(after, body) else None
        return None if newest is None else Committed(stored, newest)

    def _following(self, before: Stored, paged: Manifest, *, brings_data: bool, last_data_ms: int) -> Manifest:
        now_ms = max(self.clock.now_ms(), paged.committed_at_ms)
        return replace(
            paged,
            version=before.manifest.version + 1,
            parent_sha256=before.sha256,
            put_id=self.ids.new_id(),
            writer=self.writer,
            committed_at_ms=now_ms,
            data_committed_at_ms=now_ms if brings_data else last_data_ms,
        )

    def _signer(self, before: Manifest) -> str:
        """By which key the next version is signed, "" where none is. Raises NoKey where the chain would lose its signature."""
        key_id = signing_key_of(self.store)
        if before.signed_by and not key_id:
            reason = "its manifest is signed, and who has no keys would commit one that is not"
            raise NoKey(before.signed_by, reason, self.path.manifest(before.version))
        return key_id

    def _within_limits(self, manifest: Manifest) -> tuple[Manifest, tuple[NewPage, ...]]:
        read = Pages(self.store, self.path).read
        return paging.within_limits(manifest, read, self.ids.new_id, self.clock.now_ms(), self.limits)

    def _put(self, manifest: Manifest, body: bytes) -> bool:
        """Whether the version under the manifest's key is ours."""
        key = self.path.manifest(manifest.version)
        is_ours = partial(_has_put_id, key, manifest.put_id)
        put = conditional_put(self.store, self.clock, key, body, is_ours)
        if put.outcome is PutOutcome.unknown:
            raise self._unknown(manifest)
        return put.outcome is PutOutcome.done

    def _newest_after(self, ours: Stored) -> int | None:
        """The newest version that is listed after a put that was won; None where ours is not in its chain."""
        version = ours.manifest.version
        try:
            newest = newest_version(self.store, self.path)
            if newest <= version:
                if newest < version:
                    raise self._unknown(ours.manifest)
                return newest
            child = load_version(self.store, self.path, version + 1)
        except NotFound:
            return None
        except Unavailable as e:
            raise self._unknown(ours.manifest) from e
        return newest if child.manifest.parent_sha256 == ours.sha256 else None

    def _unknown(self, manifest: Manifest) -> Unknown:
        return Unknown(
            f"{self.path}: it is unknown whether manifest {manifest.version} is or will be in the chain; nothing was deleted, "
            "run the same command again"
        )


def _has_put_id(key: str, put_id: str, found: bytes) -> bool:
    return codec.decode(found, key).put_id == put_id


def claim(store: ObjectStore, first: Manifest, clock: Clock, ids: Ids, writer: str, limits: Limits = LIMITS) -> ManifestWriter:
    """Takes the partition of `first` (a version 0) over: a writer with the next writer epoch, which fences all before it.

    Raises what a commit raises; Fenced where another claim came first.
    """
    newest = load_newest(store, first.path)
    own = ManifestWriter(store, first.path, clock, ids, writer, newest.manifest.writer_epoch if newest else 0, limits)
    return replace(own, writer_epoch=own.commit(first, claimed).writer_epoch)
