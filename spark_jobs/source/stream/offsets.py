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
"""

import math
import re
from collections.abc import Mapping
from typing import Any

from local_log.errors import Invalid
from remote.keys import PartitionPath
from remote.manifest.numbers import whole
from spark_jobs.errors import OptionError

StreamOffsets = Mapping[PartitionPath, int]
"""The next offset of each partition."""

_OFFSET_MAX = 2**63 - 1
_INITIAL = "@initial"
_BEGIN = re.compile(r"@([^@]+)@([^@]+)-([0-9]{1,10})=([0-9]{1,19})")


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


def encode_initial(offsets: StreamOffsets) -> dict[str, dict[str, int]]:
    """The offsets where a query begins, as `latestOffset` recognizes them."""
    return encode(offsets) | {_INITIAL: {}}


def encode_end(start: Mapping[str, Any], until: StreamOffsets) -> dict[str, Any]:
    """The end of a micro-batch that begins at `start`: the same text where there is nothing new, but for the first one."""
    begun = decode(start)
    if _INITIAL in start:
        return encode(until) | {f"@{p.topic}@{p.topic_id}-{p.partition}={offset}": {} for p, offset in begun.items()}
    return dict(start) if until == begun else encode(until)


def decode_start(start: Mapping[str, Any], end: Mapping[str, Any]) -> StreamOffsets:
    """Where a micro-batch begins: at its `start`, or for the first one at what its end has kept of that."""
    kept = [found for name in end if (found := _BEGIN.fullmatch(name))]
    return {PartitionPath(m[1], m[2], int(m[3])): int(m[4]) for m in kept} if kept else decode(start)


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
