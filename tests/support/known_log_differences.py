"""How answers to Fetch and ListOffsets may differ from a broker's: where batches are cut, and what of tiers is told."""

from typing import Any

from compared_answers import Compared, Difference
from known_difference import KnownDifference, fetched

from local_log.formats.batches import scan
from local_log.formats.list_offsets import EARLIEST_LOCAL, EARLIEST_PENDING_UPLOAD, LATEST_TIERED
from local_log.formats.primitives import INT32_MAX
from tiering.endpoint.protocol.api_keys import (
    FETCH,
    LIST_OFFSETS,
)
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

_OF_TIERS = (EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING_UPLOAD)


def _later_segments(of: Compared, found: Difference) -> bool:
    if not found.path.startswith("topics.partitions.") or of.api is not LIST_OFFSETS:
        return False
    theirs, ours = found.within[-1]
    return bool(theirs.offset == -1 < ours.offset and not theirs.error_code)


def _tiers(of: Compared, found: Difference) -> bool:
    if of.api is not LIST_OFFSETS or not found.path.startswith("topics.partitions."):
        return False
    place = found.within[-2][0].name, found.within[-1][0].partition_index
    asked = ((topic.name, one.partition_index, one.timestamp) for topic in of.request.topics for one in topic.partitions)
    return any((name, number) == place and timestamp in _OF_TIERS for name, number, timestamp in asked)


def _stable_offset(of: Compared, found: Difference) -> bool:
    if not found.path.endswith("last_stable_offset") or of.request.isolation_level:
        return False
    theirs, ours = found.within[-1]
    return bool(found.theirs < found.ours == ours.high_watermark == theirs.high_watermark)


def _whole_batches(of: Compared, found: Difference) -> bool:
    if not found.path.startswith("responses.partitions.") or found.theirs is None or found.ours is None:
        return False
    if found.path.endswith("aborted_transactions"):
        theirs, ours = found.within[-1]
        one, other = set(found.theirs), set(found.ours)
        return list(theirs.records) != list(ours.records) and (one <= other or other <= one)
    if not found.path.endswith("records"):
        return False
    return _is_cut(found.theirs, found.ours, of.bases, is_first=_is_first(of, found))


def _is_cut(theirs: bytes, ours: bytes, bases: frozenset[int], *, is_first: bool) -> bool:
    shorter = min(len(theirs), len(ours))
    if theirs[:shorter] != ours[:shorter] or not is_first:
        return theirs[:shorter] == ours[:shorter]
    if len(theirs) > len(ours):
        return scan(theirs)[1] == len(ours)
    _, next_batch = scan(ours[len(theirs) :]), scan(ours, len(theirs))[0]
    return int(next_batch.base_offset[0]) in bases or _starts_segment(next_batch, bases)


def _starts_segment(batches: Any, bases: frozenset[int]) -> bool:
    """A compacted segment may begin with a gap."""
    first = int(batches.base_offset[0])
    return any(first - 1000 < base <= first for base in bases)


def _is_first(of: Compared, found: Difference) -> bool:
    """Whether the partitions before have equal records, so that both had the same room left."""
    pairs = zip(fetched(of.theirs), fetched(of.ours), strict=False)
    unequal = next(theirs for theirs, ours in pairs if b"".join(theirs.records or ()) != b"".join(ours.records or ()))
    return unequal is found.within[-1][0]


def _fetch(topic: str, **fields: Any) -> FetchRequest:
    one = FetchPartition(0, **{"partition_max_bytes": INT32_MAX} | fields)
    return FetchRequest(topics=(FetchTopic(topic, partitions=(one,)),))


def _offset(*topics: str, timestamp: int) -> ListOffsetsRequest:
    asked = (ListOffsetsPartition(0, timestamp=timestamp),)
    return ListOffsetsRequest(-1, topics=tuple(ListOffsetsTopic(topic, asked) for topic in topics))


LOG_DIFFERENCES = (
    KnownDifference(
        "ListOffsets: by a time that only an emptied batch of its segment has",
        "The first record of a later segment that is as late. A broker looks into one local segment, and finds none.",
        _later_segments,
        ((LIST_OFFSETS, 11, _offset("g-compacted", timestamp=1_700_000_028_749)),),
    ),
    KnownDifference(
        "ListOffsets: the earliest local, the latest tiered offset and the earliest one that is not uploaded",
        "Those of the archive. A broker knows of its own tiered storage only.",
        _tiers,
        ((LIST_OFFSETS, 11, _offset("g-txn", timestamp=EARLIEST_LOCAL)),),
    ),
    KnownDifference(
        "Fetch: last stable offset",
        "Told to consumers that read committed records only; others, which do not use it, are told the high watermark.",
        _stable_offset,
        ((FETCH, 11, _fetch("g-txn")),),
    ),
    KnownDifference(
        "Fetch: bytes, and the aborted transactions among them",
        "As many whole batches as fit, of several segments. A broker ends at the end of a segment, or within a batch.",
        _whole_batches,
        ((FETCH, 11, _fetch("g-codec-none")),),
    ),
)
