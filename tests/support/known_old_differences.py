"""How our answers to clients from before 0.11 may differ from those of a broker of 3.9, each with a request that shows it."""

from compared_answers import Compared, Difference
from known_difference import KnownDifference, fails_inside
from odd_logs import TRIMMED_AT

from local_log.formats.batches import decode, scan
from local_log.formats.record_batch.projection import EVERYTHING
from tiering.endpoint.protocol.api_keys import FETCH, LIST_OFFSETS
from tiering.endpoint.protocol.errors import ErrorCode
from tiering.endpoint.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from tiering.endpoint.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

_ONE_SINCE = 3


def _one_at_least(of: Compared, found: Difference) -> bool:
    """A broker answers the first versions with nothing where the first batch is larger than what is asked for."""
    if of.api is not FETCH or of.version >= _ONE_SINCE or not found.within or not found.path.startswith("responses.partitions."):
        return False
    theirs, ours = found.within[-1]
    return not theirs.error_code and not any(theirs.records) and (any(ours.records) or bool(ours.error_code))


def _converted(of: Compared, found: Difference) -> bool:
    if found.path != "responses.partitions.records" or not found.theirs or not found.ours:
        return False
    theirs, ours = _records(found.theirs), _records(found.ours)
    return theirs[: len(ours)] == ours or ours[: len(theirs)] == theirs


def _records(data: bytes) -> list[tuple[object, ...]]:
    """What a client reads in messages; a last one that is cut is none."""
    batches, _ = scan(data)
    columns = ("offset", "timestamp", "key", "value")
    return [tuple(row[name] for name in columns) for _, part in decode(data, batches, EVERYTHING) for row in part.to_pylist()]


def _trimmed(of: Compared, found: Difference) -> bool:
    if not found.path.endswith("old_style_offsets"):
        return False
    theirs, ours = ([offset for offset in offsets if offset != TRIMMED_AT] for offsets in (found.theirs, found.ours))
    return theirs[: len(ours)] == ours or ours[: len(theirs)] == theirs


def _no_records(of: Compared, found: Difference) -> bool:
    is_refused = bool(found.within) and getattr(found.within[-1][0], "error_code", 0) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return is_refused and found.path == "responses.partitions.records" and found.theirs is None and found.ours == b""


def _fetch(topic: str, size: int) -> FetchRequest:
    return FetchRequest(topics=(FetchTopic(topic, partitions=(FetchPartition(0, partition_max_bytes=size),)),))


_ALL = ListOffsetsPartition(0, timestamp=-1, max_num_offsets=1000)
_NEGATIVE = ListOffsetsPartition(0, timestamp=-1, max_num_offsets=-1)
KNOWN_OLD_DIFFERENCES = (
    KnownDifference(
        "Fetch 0 to 2: a first batch that is larger than what is asked for",
        "The begin of a larger message, by which clients know that they have to ask for more. A broker may send nothing.",
        _one_at_least,
        ((FETCH, 1, _fetch("g-codec-none", 1)),),
    ),
    KnownDifference(
        "Fetch 0 to 3: the records of a partition that is compressed by zstd, with the error",
        "None at all, as with other errors; a broker sends null, which not all clients take.",
        _no_records,
        ((FETCH, 3, _fetch("g-codec-zstd", 100)),),
    ),
    KnownDifference(
        "Fetch 0 to 3: the bytes of converted messages",
        "The same messages, compressed by another library, and as many as fit; a broker's last one may be cut.",
        _converted,
        ((FETCH, 1, _fetch("g-codec-lz4", 20_000)),),
    ),
    KnownDifference(
        "ListOffsets 0: segments that end below the log start offset",
        "An archive does not have them. In a log directory they may still be, and each counts as one at the log start offset.",
        _trimmed,
        ((LIST_OFFSETS, 0, ListOffsetsRequest(-1, topics=(ListOffsetsTopic("g-trimmed", (_ALL,)),))),),
    ),
    KnownDifference(
        "All: requests that a broker answers with UNKNOWN_SERVER_ERROR",
        "What makes it fail, as a number below 0, is taken for 0 here.",
        fails_inside,
        ((LIST_OFFSETS, 0, ListOffsetsRequest(-1, topics=(ListOffsetsTopic("g-tiny", (_NEGATIVE,)),))),),
    ),
)
