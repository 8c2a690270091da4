"""The offsets of a stream: how its checkpoint has them, and how far the next batch may go. Pure.

    {"orders": {"0": 123, "1": 45}, "orders@PnJ1xkWtQ5aqcyLsLZ9iLA": {}}

The next offset to read of each partition, as Spark's Kafka source has them, which takes such a text as its `startingOffsets`.
With each topic stands its id, in the place of a topic without partitions, since no topic has an "@" in its name: a topic that is
deleted and made anew under its name is another one, and its offsets say nothing of the first one's.

    {"orders": {"0": 123}, "orders@PnJ1xkWtQ5aqcyLsLZ9iLA": {}, "@orders@PnJ1xkWtQ5aqcyLsLZ9iLA-0=100": {}}

Spark (4.3) stores where a micro-batch ends, and takes the end of the one before it for its start. The first one has none before
it, so Spark asks for the initial offsets again when it plans the batch, and once more after each restart before it is committed;
by then `latest`, `earliest` or a time may be another offset. So the end of the first micro-batch says where it begins, too. What
`initialOffset` gives is marked, so that the first micro-batch is known.

    {"orders": {"0": 123}, "orders@PnJ1xkWtQ5aqcyLsLZ9iLA": {}, "@orders@PnJ1xkWtQ5aqcyLsLZ9iLA-0~1700000000000": {}}

Where the archive had another history of a partition and gave it up, the offsets say when it last did, as far as was known when
they were planned. If it does so again, the next micro-batch can tell.
"""

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from local_log.errors import Invalid
from remote.keys import PartitionPath
from remote.manifest.numbers import whole
from spark_jobs.errors import OptionError

StreamOffsets = Mapping[PartitionPath, int]
"""The next offset of each partition."""

Histories = Mapping[PartitionPath, int]
"""When the archive last gave up a history of each partition, in ms; without those of which it has had one only."""

_OFFSET_MAX = 2**63 - 1
_INITIAL = "@initial"
_BEGIN = re.compile(r"@([^@]+)@([^@]+)-([0-9]{1,10})=([0-9]{1,19})")
_HISTORY = re.compile(r"@([^@]+)@([^@]+)-([0-9]{1,10})~([0-9]{1,19})")


def encode(offsets: StreamOffsets) -> dict[str, dict[str, int]]:
    """The offsets as JSON. Always in the same order, since Spark compares texts to see whether there is anything new."""
    encoded: dict[str, dict[str, int]] = {}
    for path in sorted(offsets, key=lambda p: (p.topic, p.partition)):
        encoded.setdefault(path.topic, {})[str(path.partition)] = offsets[path]
    ids = sorted({f"{path.topic}@{path.topic_id}" for path in offsets})
    return encoded | {name: {} for name in ids}


def decode(encoded: Mapping[str, Any]) -> StreamOffsets:
    """The offsets of what `encode` gave. Raises OptionError for a checkpoint that was not written by this source."""
    ids = {topic: topic_id for topic, at, topic_id in (name.partition("@") for name in encoded) if topic and at}
    topics = {name: partitions for name, partitions in encoded.items() if "@" not in name}
    foreign = sorted(topics.keys() - ids.keys())
    if foreign:
        raise OptionError(
            f"the checkpoint has no id of topic {foreign[0]}: another source has written it; use a new checkpoint "
            "for this query, and pass the offsets as startingOffsets"
        )
    try:
        return {
            PartitionPath(t, ids[t], whole(int(number), "partition")): whole(offset, "offset")
            for t, numbers in topics.items()
            for number, offset in numbers.items()
        }
    except (ValueError, TypeError, AttributeError, Invalid) as e:
        raise OptionError(f"the checkpoint has no offsets of partitions: {e}; restore it from a copy, or begin anew") from e


def encode_initial(offsets: StreamOffsets, histories: Histories) -> dict[str, dict[str, int]]:
    """The offsets where a query begins, as `latestOffset` recognizes them."""
    return encode(offsets) | {_INITIAL: {}} | _named(histories, offsets, "~")


def encode_end(start: Mapping[str, Any], until: StreamOffsets, histories: Histories) -> dict[str, Any]:
    """The end of a micro-batch that begins at `start`: the same text where there is nothing new, but for the first one."""
    begun, before = decode(start), _numbers(_HISTORY, start)
    if _INITIAL in start:
        known = {**histories, **dict.fromkeys(begun, 0), **before}
        return encode(until) | _named(begun, begun, "=") | _named(known, until, "~")
    return dict(start) if until == begun else encode(until) | _named({**before, **histories}, until, "~")


def decode_start(start: Mapping[str, Any], end: Mapping[str, Any]) -> StreamOffsets:
    """Where a micro-batch begins: at its `start`, or for the first one at what its end has kept of that."""
    return _numbers(_BEGIN, end) or decode(start)


def decode_histories(start: Mapping[str, Any], end: Mapping[str, Any]) -> Histories:
    """What was known where a micro-batch begins, which for the first one its end has kept, too."""
    return _numbers(_HISTORY, end if _INITIAL in start else start)


def _named(numbers: Mapping[PartitionPath, int], of: Iterable[PartitionPath], sign: str) -> dict[str, dict[str, int]]:
    """The numbers of those partitions, in the place of topics without partitions; a history at 0 is none."""
    paths = (p for p in sorted(of) if p in numbers and (sign == "=" or numbers[p]))
    return {f"@{p.topic}@{p.topic_id}-{p.partition}{sign}{numbers[p]}": {} for p in paths}


def _numbers(form: re.Pattern[str], encoded: Mapping[str, Any]) -> dict[PartitionPath, int]:
    found = (form.fullmatch(name) for name in encoded)
    return {PartitionPath(m[1], m[2], int(m[3])): int(m[4]) for m in found if m}


def rate_limited(limit: int, start: StreamOffsets, until: StreamOffsets) -> StreamOffsets:
    """At most about `limit` offsets above `start`, shared among the partitions by what each has, as Spark's Kafka source does.

    A share below 1 counts as 1, so that no partition starves; others are rounded down. `start` has all partitions of `until`.
    """
    sizes = {path: end - start[path] for path, end in until.items() if end > start[path]}
    total = float(sum(sizes.values()))
    return dict(until) | {p: min(until[p], start[p] + _share(limit, size / total)) for p, size in sizes.items()}


def _share(limit: int, part: float) -> int:
    share = limit * part
    return min(math.ceil(share) if share < 1 else math.floor(share), _OFFSET_MAX)
