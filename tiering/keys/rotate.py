"""Rewraps the data keys of archived segments with the current key. Writes manifests and pages; no segment object changes.

Manifests are signed with that key as well, including those that were not signed before.

A rotation can be interrupted and run again: entries under the current key are skipped. A segment that is copied meanwhile by a
writer with another current key is left for the next run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from local_log.errors import Conflict, LogError
from remote import archive
from remote.clock import Clock, Ids
from remote.keys import PartitionPath, is_topic_id
from remote.manifest.entries import Entries, Pages
from remote.manifest.model import Manifest
from remote.manifest.own_objects import put_own
from remote.manifest.signatures import signing_key_of
from remote.manifest.store import ManifestWriter, of_newest
from remote.store.api import ObjectStore
from remote.transforms.keys import KeyRing
from remote.transforms.rotation import PAGES_PER_STEP_MAX, Rotation, RotationStep, is_due

STEPS_LOST_MAX = 50


@dataclass(frozen=True, slots=True)
class RotationResult:
    """The rotation of one partition: its encrypted segments, how many are due, how many were rewrapped, and the error if any.

    `signed` says whether its manifest and the hashes of its pages are signed with the current key.
    """

    path: PartitionPath
    encrypted: int = 0
    due: int = 0
    rewrapped: int = 0
    signed: bool = True
    error: LogError | None = None


def partitions(
    store: ObjectStore, topics: Iterable[str]
) -> Iterator[tuple[PartitionPath, Manifest | archive.UnreadableManifest]]:
    """The partitions of these topics, including those of deleted topics with the same names. Raises Unavailable."""
    for topic in topics:
        for topic_id in filter(is_topic_id, store.list_folders(f"{topic}/")):
            for number, manifest in archive.partitions_of(store, topic, topic_id).items():
                yield PartitionPath(topic, topic_id, number), manifest


def plan_rotation(store: ObjectStore, manifest: Manifest, key_id: str) -> RotationResult:
    """Counts the entries of a partition that a rotation to `key_id` would rewrap. An error is in the result."""

    def counted(newest: Manifest) -> RotationResult:
        encrypted = due = 0
        for entry in Entries.of(store, newest):
            encrypted += entry.is_encrypted
            due += is_due(entry, key_id)
        return RotationResult(newest.path, encrypted, due, signed=_is_signed(store, newest, key_id))

    try:
        return of_newest(store, manifest, counted)
    except LogError as e:
        return RotationResult(manifest.path, error=e)


@dataclass(frozen=True, slots=True)
class Rotator:
    """Rotates partitions of one archive to the current key of `keys`, as the writer `source`."""

    store: ObjectStore
    keys: KeyRing
    clock: Clock
    ids: Ids
    source: str
    pages_per_step: int = PAGES_PER_STEP_MAX

    def rotate(self, planned: RotationResult, manifest: Manifest) -> RotationResult:
        """Carries out what `plan_rotation` has found, in as many commits as it takes. An error is in the result."""
        if planned.error is not None or (not planned.due and planned.signed):
            return planned
        rewrapped = lost = 0
        try:
            rotation = self._rotation(manifest)
            while True:
                manifest, step = of_newest(self.store, manifest, lambda newest: (newest, rotation.step(newest)))
                if not step.replacements:
                    break
                manifest, count, is_lost = _committed(self._writer(manifest), manifest, step)
                rewrapped += count
                lost += is_lost
                if lost > STEPS_LOST_MAX:
                    problem = f"others have changed the manifest {lost} times in between; run it again later"
                    raise Conflict(f"{manifest.path}: {problem}")
            if not _is_signed(self.store, manifest, self.keys.current):
                manifest = self._writer(manifest).commit(manifest, lambda before: replace(before, signed_by=self.keys.current))
        except LogError as e:
            return replace(planned, rewrapped=rewrapped, error=e)
        return replace(planned, rewrapped=rewrapped, signed=_is_signed(self.store, manifest, self.keys.current))

    def _rotation(self, manifest: Manifest) -> Rotation:
        read, hashed = Pages(self.store, manifest.path).read, bool(signing_key_of(self.store))
        return Rotation(self.keys, self.keys.current, read, self.ids.new_id, self.pages_per_step, hashed)

    def _writer(self, manifest: Manifest) -> ManifestWriter:
        return ManifestWriter(self.store, manifest.path, self.clock, self.ids, self.source, manifest.writer_epoch)


def _is_signed(store: ObjectStore, manifest: Manifest, key_id: str) -> bool:
    """Whether the manifest is signed with this key; always true in a store that does not sign."""
    if not signing_key_of(store):
        return True
    return manifest.signed_by == key_id and all(ref.sha256 is not None for ref in manifest.pages)


def _committed(writer: ManifestWriter, manifest: Manifest, step: RotationStep) -> tuple[Manifest, int, bool]:
    """Commits a step: the newest manifest, the number of rewrapped entries, and whether the step was lost to another writer."""
    for page in step.made:
        put_own(writer.store, writer.clock, writer.path.page(page.ref.name), page.body)
    count, is_lost = 0, False

    def change(before: Manifest) -> Manifest:
        nonlocal count, is_lost
        after, count = step.applied(before)
        is_lost = after is before
        return after

    return writer.commit(manifest, change), count, is_lost
