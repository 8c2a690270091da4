"""A scrub of an archive: one walk along its listing, partition by partition. It writes nothing and deletes nothing."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from remote.keys import PartitionPath
from remote.read.context import Decoder
from remote.scrub.budget import RequestBudget, RequestsExhausted
from remote.scrub.deep import DeepScrub
from remote.scrub.finding import Finding, Kind, not_checked
from remote.scrub.inventory import StrayObject, inventory
from remote.scrub.objects import foreign, orphan
from remote.scrub.partition import PartitionScrub
from remote.scrub.settings import ScrubSettings
from remote.scrub.steps import ScrubStep, SegmentToRead
from remote.store.api import ObjectMeta


def scrub(
    store: RequestBudget,
    decoded: Decoder,
    settings: ScrubSettings,
    now_ms: int,
    topics: tuple[str, ...] | None = None,
) -> Iterator[Finding]:
    """Everything that is wrong with an archive, or with these topics of it. Raises Unavailable.

    Costs the listing and a request for each manifest and each page of entries; a deep scrub reads the segments, too.
    """
    segments = DeepScrub(store, decoded)

    def read(unread: SegmentToRead) -> tuple[Finding, ...] | None:
        try:
            return segments.read(unread)
        except RequestsExhausted:
            return None

    return findings_of(walk(store, settings, now_ms, topics), read)


def walk(
    store: RequestBudget, settings: ScrubSettings, now_ms: int, topics: tuple[str, ...] | None = None
) -> Iterator[ScrubStep]:
    """What is wrong with an archive as far as its listing and its manifests show, and the segments that are to be read.

    What comes of these takes their places: see `findings_of`. Raises Unavailable.
    """
    of_partitions = PartitionScrub(store, settings, now_ms)
    reached = _ListingProgress()
    try:
        for one in inventory(reached.tracked(_listed(store, topics))):
            if isinstance(one, StrayObject):
                yield orphan(one.meta, now_ms) if one.is_probe else foreign(one.meta)
            else:
                yield from of_partitions.walk(one)
    except RequestsExhausted:
        reached.is_cut = True
    if reached.is_cut:
        yield Finding(Kind.left_out, reached.key, "everything from here on: the requests are used up")


def findings_of(steps: Iterable[ScrubStep], read: Callable[[SegmentToRead], tuple[Finding, ...] | None]) -> Iterator[Finding]:
    """The findings of a walk, and in the place of each segment what `read` gives for it: None where it was not read."""
    not_read: Counter[PartitionPath] = Counter()
    for step in steps:
        if isinstance(step, Finding):
            yield step
        elif isinstance(step, SegmentToRead):
            found = read(step)
            if found is None:
                not_read[step.manifest.path] += 1
            else:
                yield from found
        elif not_read[step.path]:
            yield not_checked(step.path, f"{not_read[step.path]} segments were not read: the requests are used up")


def _listed(store: RequestBudget, topics: tuple[str, ...] | None) -> Iterator[ObjectMeta]:
    """Of topics, or of single ids of them, written `topic/id`."""
    for prefix in ("",) if topics is None else (f"{topic}/" for topic in topics):
        yield from store.list(prefix)


class _ListingProgress:
    """How far a listing has been read."""

    key = ""
    is_cut = False

    def tracked(self, metas: Iterator[ObjectMeta]) -> Iterator[ObjectMeta]:
        try:
            for meta in metas:
                self.key = meta.key
                yield meta
        except RequestsExhausted:
            self.is_cut = True
            raise
