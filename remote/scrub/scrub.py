"""Scrubs an archive in one pass over its listing, partition by partition. Writes and deletes nothing."""

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
from remote.scrub.steps import ScrubbedSegment, ScrubStep, SegmentToRead
from remote.scrub.transactions import TransactionCheck
from remote.store.api import ObjectMeta


def scrub(
    store: RequestBudget,
    decoded: Decoder,
    settings: ScrubSettings,
    now_ms: int,
    topics: tuple[str, ...] | None = None,
) -> Iterator[Finding]:
    """The findings about an archive, or about these topics of it. Raises Unavailable.

    Makes the requests of a listing and one for each manifest and page; a deep scrub also reads the segments.
    """
    segments = DeepScrub(store, decoded)

    def read(unread: SegmentToRead) -> ScrubbedSegment | None:
        try:
            return segments.read(unread)
        except RequestsExhausted:
            return None

    return findings_of(walk(store, settings, now_ms, topics), read)


def walk(
    store: RequestBudget, settings: ScrubSettings, now_ms: int, topics: tuple[str, ...] | None = None
) -> Iterator[ScrubStep]:
    """The findings from the listing and the manifests, and in between the segments that a deep scrub reads.

    `findings_of` puts the findings about these segments in their places. Raises Unavailable.
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
        yield Finding(Kind.left_out, reached.key, "everything from here on: the request limit is reached")


def findings_of(steps: Iterable[ScrubStep], read: Callable[[SegmentToRead], ScrubbedSegment | None]) -> Iterator[Finding]:
    """The findings of the steps, with those of `read` in the place of each segment; `read` returns None if it read nothing.

    Those about transactions that end in a later segment come with that one.
    """
    not_read: Counter[PartitionPath] = Counter()
    transactions: TransactionCheck | None = None
    for step in steps:
        if isinstance(step, Finding):
            yield step
        elif isinstance(step, SegmentToRead):
            found = read(step)
            if found is None:
                not_read[step.manifest.path] += 1
                transactions = None
                continue
            yield from found.findings
            if transactions is None or transactions.path != step.manifest.path:
                transactions = TransactionCheck(step.manifest.path)
            yield from transactions.add(step.entry, found.transactions)
        elif not_read[step.path]:
            yield not_checked(step.path, f"{not_read[step.path]} segments were not read: the request limit is reached")


def _listed(store: RequestBudget, topics: tuple[str, ...] | None) -> Iterator[ObjectMeta]:
    """The objects of topics, or of topic ids written as `topic/id`; without any, those of all topics."""
    for prefix in ("",) if topics is None else (f"{topic}/" for topic in topics):
        yield from store.list(prefix)


class _ListingProgress:
    """Tracks how far a listing was read."""

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
