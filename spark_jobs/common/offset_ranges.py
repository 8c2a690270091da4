"""Offset ranges by topic and partition: what a run reads, resolved once and passed to every retry of it.

{"orders": {"0": [0, 1200], "1": [17, 980]}}
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from local_log.errors import NotFound
from remote import archive
from remote.manifest.numbers import whole
from remote.store.api import ObjectStore
from spark_jobs.errors import OptionError
from spark_jobs.source.ranges import NO_IDS, THREADS, Range, chosen

OffsetRanges = dict[str, dict[int, tuple[int, int]]]
"""Offsets `[start, end)` by topic and partition."""

FORM = 'offsets by topic and partition, such as {"orders": {"0": [0, 1200]}}'


def of_ranges(ranges: Iterable[Range]) -> OffsetRanges:
    """The offsets of ranges that were resolved."""
    found: OffsetRanges = {}
    for r in ranges:
        found.setdefault(r.manifest.topic, {})[r.manifest.partition] = (r.start, max(r.start, r.end))
    return found


def parse(text: str) -> OffsetRanges:
    """Offset ranges as a job prints them. Raises OptionError."""
    try:
        parsed: Any = json.loads(text)
    except (ValueError, RecursionError) as e:
        raise OptionError(f"the offsets are not JSON ({e}); expected {FORM}") from e
    if not isinstance(parsed, dict) or not all(isinstance(partitions, dict) for partitions in parsed.values()):
        raise OptionError(f"expected {FORM}")
    return {
        topic: {_number(p): _bounds(topic, p, bounds) for p, bounds in partitions.items()} for topic, partitions in parsed.items()
    }


def ranges_of(store: ObjectStore, offsets: OffsetRanges, topic_ids: Mapping[str, str] = NO_IDS) -> tuple[Range, ...]:
    """The ranges with their manifests, in order. Raises NotFound for a partition that the archive does not have."""
    archive.open_archive(store)
    ranges = []
    for topic, partitions in sorted(offsets.items()):
        found = archive.require_partitions(store, chosen(store, topic, topic_ids, THREADS))
        manifests = {m.partition: m for m in found.manifests}
        for number, (start, end) in sorted(partitions.items()):
            manifest = manifests.get(number)
            if manifest is None:
                raise NotFound(f"partition {topic}-{number} is not in the archive {store.url}")
            ranges.append(Range(manifest, start, end))
    return tuple(ranges)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise OptionError(f"{text!r} is no partition; expected {FORM}")
    return _bounded(int(text), "partition")


def _bounds(topic: str, partition: str, bounds: Any) -> tuple[int, int]:
    if not (
        isinstance(bounds, list) and len(bounds) == 2 and all(type(b) is int for b in bounds) and 0 <= bounds[0] <= bounds[1]
    ):
        raise OptionError(f"{topic}-{partition} has {bounds!r}: give its first offset and the one after its last; {FORM}")
    return _bounded(bounds[0], "offset"), _bounded(bounds[1], "offset")


def _bounded(number: int, name: str) -> int:
    try:
        return whole(number, name)
    except ValueError as e:
        raise OptionError(f"{e}; expected {FORM}") from e
