"""A scrub of an archive: one walk along its listing, partition by partition. It writes nothing and deletes nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from remote.keys import PartitionPath
from remote.read.context import Decoded
from remote.scrub.budget import Budget, Spent
from remote.scrub.deep import SegmentScrub
from remote.scrub.finding import Finding, Kind, left_out
from remote.scrub.inventory import Loose, inventory
from remote.scrub.objects import foreign, orphan
from remote.scrub.partition import PartitionScrub
from remote.scrub.settings import ScrubSettings
from remote.scrub.steps import Step, Unread
from remote.store.api import ObjectMeta


def scrub(
    store: Budget,
    decoded: Decoded,
    settings: ScrubSettings,
    now_ms: int,
    topics: tuple[str, ...] | None = None,
) -> Iterator[Finding]:
    """Everything that is wrong with an archive, or with these topics of it. Raises Unavailable.

    Costs the listing and a request for each manifest and each page of entries; a deep scrub reads the segments, too.
    """
    segments = SegmentScrub(store, decoded)

    def read(unread: Unread) -> tuple[Finding, ...] | None:
        try:
            return segments.read(unread)
        except Spent:
            return None

    return filled(walk(store, settings, now_ms, topics), read)


def walk(store: Budget, settings: ScrubSettings, now_ms: int, topics: tuple[str, ...] | None = None) -> Iterator[Step]:
    """What is wrong with an archive as far as its listing and its manifests show, and the segments that are to be read.

    What comes of these takes their places: see `filled`. Raises Unavailable.
    """
    of_partitions = PartitionScrub(store, settings, now_ms)
    reached = _Reached()
    try:
        for one in inventory(reached.noting(_listed(store, topics))):
            if isinstance(one, Loose):
                yield orphan(one.meta, now_ms) if one.is_probe else foreign(one.meta)
            else:
                yield from of_partitions.walk(one)
    except Spent:
        reached.is_cut = True
    if reached.is_cut:
        yield Finding(Kind.left_out, reached.key, "everything from here on: the requests are used up")


def filled(steps: Iterable[Step], read: Callable[[Unread], tuple[Finding, ...] | None]) -> Iterator[Finding]:
    """The findings of a walk, and in the place of each segment what `read` gives for it: None where it was not read."""
    not_read: Counter[PartitionPath] = Counter()
    for step in steps:
        if isinstance(step, Finding):
            yield step
        elif isinstance(step, Unread):
            found = read(step)
            if found is None:
                not_read[step.manifest.path] += 1
            else:
                yield from found
        elif not_read[step.path]:
            yield left_out(step.path, f"{not_read[step.path]} segments were not read: the requests are used up")


def _listed(store: Budget, topics: tuple[str, ...] | None) -> Iterator[ObjectMeta]:
    """Of topics, or of single ids of them, written `topic/id`."""
    for prefix in ("",) if topics is None else (f"{topic}/" for topic in topics):
        yield from store.list(prefix)


class _Reached:
    """How far a listing has been read."""

    key = ""
    is_cut = False

    def noting(self, metas: Iterator[ObjectMeta]) -> Iterator[ObjectMeta]:
        try:
            for meta in metas:
                self.key = meta.key
                yield meta
        except Spent:
            self.is_cut = True
            raise
