"""The objects that a sweep deletes, as values, and the decisions that need no store. Ages are by the store's clock.

manifest    a version whose successor is older than the grace time and that no live pin protects, never the newest version
page        a page that no kept version names
segment     a `.log` or `.aux` object that the newest version names neither as an entry nor in `deleting`
pin         an expired pin
write       a record of a write over many partitions that is no longer needed: see `is_forgettable`
upload      an upload that was not completed
probe       a probe of the store whose command was killed
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from remote.keys import write_of
from remote.manifest.chain import StoredVersion
from remote.store.api import AbandonedUpload, ObjectMeta


class Kind(StrEnum):
    """The kind of an object that a sweep deletes."""

    manifest = "manifest"
    page = "page"
    segment = "segment"
    pin = "pin"
    write = "write"
    upload = "upload"
    probe = "probe"


@dataclass(frozen=True, slots=True)
class Garbage:
    """An object to delete, and when it was made. `upload` is set for an upload that was not completed."""

    kind: Kind
    key: str
    size: int
    made_ms: int | None
    upload: AbandonedUpload | None = None


def garbage(kind: Kind, meta: ObjectMeta) -> Garbage:
    """A listed object as garbage."""
    return Garbage(kind, meta.key, meta.size, meta.modified_ms)


def is_old(meta: ObjectMeta, before_ms: int) -> bool:
    """Whether an object was made before `before_ms`; False if its time is unknown."""
    return meta.modified_ms is not None and meta.modified_ms < before_ms


def kept_versions(versions: Sequence[StoredVersion], pinned: int | None, before_ms: int) -> int:
    """How many of the versions, newest first, are kept.

    A version is kept while its successor is younger than the grace time, and while a pinned reader may read it: `pinned` is the
    oldest version with a live pin, None if there is none.
    """
    for at in range(1, len(versions)):
        if is_old(versions[at - 1].meta, before_ms) and (pinned is None or versions[at].version < pinned):
            return at
    return len(versions)


def writer_has_finished(page: ObjectMeta, version: StoredVersion, slack_ms: int) -> bool:
    """Whether a page is older than a version by more than `slack_ms`, so that its writer has committed before it, or never will.

    A writer reads the newest version before it writes a page, and the page is first named by the next version
    (`ManifestWriter.commit`, `Rotation`). If another writer commits that version, the page is abandoned. Later versions name the
    page until one does not. So a page that is this much older than a version is named by it, or by no later version.
    """
    return version.meta.modified_ms is not None and is_old(page, version.meta.modified_ms - slack_ms)


def is_forgettable(key: str, pending: Collection[str], *, committed: bool, topics_are_gone: bool) -> bool:
    """Whether an old record of a write is no longer needed. `pending` are the keys of records that stored manifests refer to.

    A record is kept if a manifest has its write in `pending`, also an old version, which a reader may use. Also kept are

    - records of writes whose id the user chose: if the user repeats such a write, even a year later, it must be found committed
    - records of aborted writes: a paused writer that found no record would put one that says "committed", although the manifests
      no longer have the write. They are few: one for each write that failed half-way

    So records of committed writes with a generated id are deleted: only the writer knows the id, and it cannot put another
    record. Records of a deleted topic are deleted too if all topics of the write are deleted: nothing more is written with these
    topic ids, since a new topic of the same name has a new id.
    """
    if key in pending:
        return False
    write = write_of(key)
    assert write is not None
    return topics_are_gone or (committed and not write.is_repeatable)
