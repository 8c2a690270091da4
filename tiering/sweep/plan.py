"""What the sweep takes, as values, and the decisions that need no store. Ages are by the store's own clock.

manifest    a version whose child is older than the grace time, none that a live pin's reader may have opened, never the newest
page        one that no version that stays names
segment     a `.log` or `.aux` object that the newest version does not name, neither to be read nor as being deleted
pin         one that is over
write       the record of a write over many partitions that nobody asks for any more: see `is_forgettable`
upload      what an upload that never ended has left behind
probe       a probe of the store whose command was killed
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

from remote.keys import write_of
from remote.manifest.chain import StoredVersion
from remote.store.api import AbandonedUpload, ObjectMeta

GRACE_MS = 24 * 3_600_000
LONG_MS = 30 * 24 * 3_600_000
"""How long objects wait that no manifest was ever written for."""


class Kind(StrEnum):
    """What a piece of garbage was."""

    manifest = "manifest"
    page = "page"
    segment = "segment"
    pin = "pin"
    write = "write"
    upload = "upload"
    probe = "probe"


@dataclass(frozen=True, slots=True)
class Garbage:
    """An object that goes, and when it was made; for an upload that never ended, what the store knows it by."""

    kind: Kind
    key: str
    size: int
    made_ms: int | None
    upload: AbandonedUpload | None = None


def garbage(kind: Kind, meta: ObjectMeta) -> Garbage:
    """A listed object as garbage."""
    return Garbage(kind, meta.key, meta.size, meta.modified_ms)


def is_old(meta: ObjectMeta, before_ms: int) -> bool:
    """Whether an object was made before that time; one whose time is not known was not."""
    return meta.modified_ms is not None and meta.modified_ms < before_ms


def kept_versions(versions: Sequence[StoredVersion], pinned: int | None, before_ms: int) -> int:
    """How many of the versions, the newest first, stay.

    One is needed for as long as the one after it is young, and for as long as a reader may read it who has a pin: `pinned` is the
    oldest version of a live one, None where there is none.
    """
    for at in range(1, len(versions)):
        if is_old(versions[at - 1].meta, before_ms) and (pinned is None or versions[at].version < pinned):
            return at
    return len(versions)


def writer_has_finished(page: ObjectMeta, version: StoredVersion, slack_ms: int) -> bool:
    """Whether a page is so much older than a version, by `slack_ms`, that its writer had committed by then, or never will.

    Whoever writes a page has read the newest version, and only the next one may name the page first (`ManifestWriter.commit`,
    `Rotation`): where somebody else has put that, the page is given up. The versions after that name it without a break until one
    does not. So one that is this much older than a version is named by that version, or by none after it.
    """
    return version.meta.modified_ms is not None and is_old(page, version.meta.modified_ms - slack_ms)


def is_forgettable(key: str, pending: Collection[str], *, committed: bool, topics_are_gone: bool) -> bool:
    """Whether an old record of a write is asked for by nobody any more. `pending` are the keys that stored manifests wait for.

    What a manifest waits for stays, also an old version, which somebody may read. Of the others there stay

    - those of writes with an id of a user's: whoever runs such a write again, a year later too, is to find that it was committed
    - those that say that a write was given up: its writer may only be asleep, and where there was no record any more it would
      put that the write is committed, which the manifests have forgotten. They are few: one for each that failed half-way

    so only those of committed writes go whose id nobody knows but the one who made it, who cannot put anything else. Of a topic
    that was deleted those go, too, whose other topics were deleted as well: under these ids nothing is written any more, and a
    topic that is made anew is another log.
    """
    if key in pending:
        return False
    write = write_of(key)
    assert write is not None
    return topics_are_gone or (committed and not write.is_repeatable)
