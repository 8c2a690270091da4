"""A scrub of an archive: one walk along its listing, partition by partition. It writes nothing and deletes nothing."""

from collections.abc import Iterator

from remote.object_store import ObjectMeta
from remote.reading import Decoded
from remote.scrub.budget import Budget, Spent
from remote.scrub.finding import Finding, Kind
from remote.scrub.inventory import Loose, inventory
from remote.scrub.objects import foreign, orphan
from remote.scrub.partition import PartitionScrub
from remote.scrub.settings import ScrubSettings


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
    of_partitions = PartitionScrub(store, decoded, settings, now_ms)
    reached = _Reached()
    try:
        for one in inventory(reached.noting(_listed(store, topics))):
            if isinstance(one, Loose):
                yield orphan(one.meta, now_ms) if one.is_probe else foreign(one.meta)
            else:
                yield from of_partitions.check(one)
    except Spent:
        reached.is_cut = True
    if reached.is_cut:
        yield Finding(Kind.left_out, reached.key, "everything from here on: the requests are used up")


def _listed(store: Budget, topics: tuple[str, ...] | None) -> Iterator[ObjectMeta]:
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
