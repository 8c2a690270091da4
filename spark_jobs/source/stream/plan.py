"""What a stream reads next, from what the archive has and where the stream stands: pure, but for `newest` and `unseen`.

A stream never goes back. Where the archive seems to end before the place that the stream has reached (a listing that lags, an
archive that is being filled again), the stream waits there: offsets of a topic with the same id are the same records, unless
the archive has given up a history from some offset on, which it says (see `remote.manifest.gaps`) and the stream's offsets note.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import chain

from local_log.errors import NotFound
from remote import archive
from remote.keys import PartitionPath
from remote.manifest.losses import has_nothing_for_readers
from remote.manifest.model import Manifest
from remote.manifest.store import load_newest
from remote.store.api import ObjectStore
from spark_jobs.source.limits import ByPartition
from spark_jobs.source.options import Assign, Strategy, Subscribe
from spark_jobs.source.ranges import INTERNAL_TOPICS, NO_IDS, Range, chosen, each_topic
from spark_jobs.source.stream.offsets import Histories, StreamOffsets

Manifests = Mapping[PartitionPath, Manifest]
"""The newest of every partition that the stream reads."""


_GONE = "the partition is gone from the archive"


class DataLoss(NotFound):
    """Offsets `[start, end)` of a partition that a stream can no longer read, and the reason; `end` is None if it is unknown."""

    def __init__(self, partition: str, start: int, end: int | None, reason: str) -> None:
        super().__init__(partition, start, end, reason)
        self.partition = partition
        self.start = start
        self.end = end
        self.reason = reason

    def __str__(self) -> str:
        missing = f"from {self.start} on" if self.end is None else f"[{self.start}, {self.end})"
        return (
            f"{self.partition}: this stream has not read offsets {missing}, and they no longer exist: {self.reason}; to "
            "continue without them, start the query again from its checkpoint with failOnDataLoss=false"
        )


class OtherHistory(DataLoss):
    """Offsets `[start, end)` that a stream has read from a history that the archive has given up since."""

    def __str__(self) -> str:
        return (
            f"{self.partition}: this stream has read offsets [{self.start}, {self.end}) of a history that the archive gave up, "
            f"and other records are there now; to read them, start a new query with a new checkpoint at {self.start}; to "
            "continue without them, start the query again from its checkpoint with failOnDataLoss=false"
        )


def newest(store: ObjectStore, strategy: Strategy, topic_ids: Mapping[str, str] = NO_IDS) -> Manifests:
    """The newest manifests of what is subscribed, without those topics and partitions that are not there. Raises Unavailable,
    Corrupt, Newer.
    """
    if isinstance(strategy, Assign):
        topics = [*strategy.partitions]
    elif isinstance(strategy, Subscribe):
        topics = [*strategy.topics]
    else:
        pattern = re.compile(strategy.pattern)
        topics = [t for t in archive.topics(store) if t not in INTERNAL_TOPICS and pattern.search(t)]
    found = each_topic(lambda t, threads: chosen(store, t, topic_ids, threads).manifests, topics)
    if isinstance(strategy, Assign):
        found = [m for m in found if m.partition in strategy.partitions[m.topic]]
    return {m.path: m for m in found}


def ends(manifests: Manifests, start: StreamOffsets, stop_at: ByPartition | None) -> StreamOffsets:
    """The end offsets of the archived partitions, limited to where the stream ends."""
    limits = stops(manifests, stop_at)
    return {path: max(start.get(path, 0), min(manifests[path].end_offset, limit)) for path, limit in limits.items()}


def unseen(store: ObjectStore, manifests: Manifests, start: StreamOffsets) -> StreamOffsets:
    """The partitions of `start` that readers do not see any more though they are there, where the stream stands in them.

    All that the archive had of such a partition was a loss, which is none any more since its log has come back. Raises
    Unavailable, Corrupt, Newer.
    """
    topic_ids = {path.topic: path.topic_id for path in manifests}
    hidden = (path for path in start.keys() - manifests.keys() if topic_ids.get(path.topic, path.topic_id) == path.topic_id)
    return {path: start[path] for path in hidden if _is_there(store, path)}


def _is_there(store: ObjectStore, path: PartitionPath) -> bool:
    stored = load_newest(store, path)
    return stored is not None and not stored.manifest.is_deleted and has_nothing_for_readers(stored.manifest)


def stops(manifests: Manifests, stop_at: ByPartition | None) -> dict[PartitionPath, int]:
    """The offset at which the stream ends in each partition that it reads: the greatest possible one if none is given."""
    if stop_at is None:
        return dict.fromkeys(manifests, 2**63 - 1)
    named = ((path, stop_at.get(path.topic, {}).get(path.partition)) for path in manifests)
    return {path: stop for path, stop in named if stop is not None}


def begin(manifests: Manifests, start: StreamOffsets, until: StreamOffsets) -> StreamOffsets:
    """Where each partition of `until` goes on: a new one at its earliest offset, as in Spark's Kafka source."""
    return {path: start[path] if path in start else min(manifests[path].log_start_offset, end) for path, end in until.items()}


def histories(manifests: Manifests) -> Histories:
    """When the archive last gave up a history of each of the partitions."""
    return {path: m.diverged[-1].resolved_at_ms for path, m in manifests.items() if m.diverged}


def ranges(
    manifests: Manifests, start: StreamOffsets, end: StreamOffsets, known: Histories, *, fail_on_data_loss: bool
) -> tuple[Range, ...]:
    """What lies between two offsets of the stream, and is there; `known` are the histories that were given up before `start`.

    Raises DataLoss, unless it is to be passed over.
    """
    found: list[Range] = []
    for piece in chain(_of_other_histories(manifests, start, known), _pieces(manifests, start, end)):
        if isinstance(piece, Range):
            found.append(piece)
        elif fail_on_data_loss:
            raise piece
    return tuple(found)


def _of_other_histories(manifests: Manifests, start: StreamOffsets, known: Histories) -> Iterator[OtherHistory]:
    for path in start.keys() & manifests.keys():
        for d in manifests[path].diverged:
            if d.resolved_at_ms > known.get(path, 0) and d.fork_offset < start[path]:
                yield OtherHistory(_name(path), d.fork_offset, min(start[path], d.end), "")


def _pieces(manifests: Manifests, start: StreamOffsets, end: StreamOffsets) -> Iterator[Range | DataLoss]:
    for path in sorted(start.keys() - end.keys()):
        again = [p for p in end if (p.topic, p.partition) == (path.topic, path.partition)]
        why = f"topic {path.topic} was deleted and created again" if again else _GONE
        yield DataLoss(_name(path), start[path], None, why)
    for path, last in end.items():
        manifest = manifests.get(path)
        first = start.get(path, 0)
        if manifest is None:
            if first < last:
                yield DataLoss(_name(path), first, last, _GONE)
            continue
        earliest, archived = manifest.log_start_offset, manifest.end_offset
        if first < min(earliest, last):
            why = "they came before the first that was archived, or retention has deleted them"
            yield DataLoss(_name(path), first, min(earliest, last), why)
        if archived < last:
            why = f"the archive has been read up to {last} before, and ends at {archived} now"
            yield DataLoss(_name(path), max(first, archived), last, why)
        if max(first, earliest) < min(last, archived):
            yield Range(manifest, max(first, earliest), min(last, archived))


def _name(path: PartitionPath) -> str:
    return f"{path.topic}-{path.partition}"
