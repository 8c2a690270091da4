"""Small splits that a task reads one after the other: pure.

A segment is a split, or several. A topic that is written slowly, or rolled by the hour, has many of some KB, and each would cost
a task, which takes Spark longer to start than the segment to be read. So neighbours are packed, up to a size worth a task.
"""

from collections.abc import Iterator, Sequence
from math import inf

from spark_jobs.source.options import ReadOptions
from spark_jobs.source.partitions import Split

PACK_BYTES = 4 << 20
OPEN_BYTES = 16 << 10
"""What a segment counts beside its own bytes, since it takes a request: so that a pack has no more than 256 of them."""

Pack = tuple[Split, ...]


def packed(splits: Sequence[Split], options: ReadOptions) -> Iterator[Pack]:
    """The splits, in their order, in packs of neighbours of one partition.

    A pack has no more bytes than `bytesPerSplit` asks of a split, and no more records than `maxRecordsPerPartition`; there are no
    fewer packs than `minPartitions`, where there are as many splits.
    """
    parts_min, records_max = options.min_partitions, options.max_records_per_partition or inf
    if parts_min is not None and len(splits) <= parts_min:
        yield from ((split,) for split in splits)
        return
    share = sum(map(_weight, splits)) / parts_min if parts_min else inf
    weight_max = min(PACK_BYTES, options.bytes_per_split, share)
    pack: list[Split] = []
    weight = records = 0
    for split in splits:
        weight, records = weight + _weight(split), records + _records(split)
        is_next = pack and pack[-1].manifest.path == split.manifest.path
        if pack and (not is_next or weight > weight_max or records > records_max):
            yield tuple(pack)
            pack, weight, records = [], _weight(split), _records(split)
        pack.append(split)
    if pack:
        yield tuple(pack)


def _weight(split: Split) -> int:
    return split.bytes + OPEN_BYTES


def _records(split: Split) -> int:
    return split.span.end - split.span.start
