"""Archives of made records, large enough that it shows what is read of them and small enough for a test."""

from collections.abc import Iterable
from functools import partial

from archive_fakes import CountingIds, SleptClock
from hand_made import batch, record

from local_log.formats.checkpoints import EpochEntry
from remote.archive import create_archive
from remote.manifest.model import never_archived
from remote.manifest.store import claim
from remote.manifest.transitions import segment_copied
from remote.segment.check import LogSegmentData
from remote.segment.repair import checked_copy
from remote.segment.upload import NO_TRANSFORMS, copy_segment
from remote.store.api import ObjectStore
from remote.transforms.encoder import Transforms

TOPIC_ID = "A" * 22
VALUE = bytes(1_000)
LINEAGE = (EpochEntry(0, 0),)


def batch_of(base_offset: int, times: Iterable[int]) -> bytes:
    """A batch of records of 1 KB with these timestamps, in this order."""
    times = tuple(times)
    records = [record(i, timestamp_delta=t - times[0], value=VALUE) for i, t in enumerate(times)]
    return batch(*records, base_offset=base_offset, base_timestamp=times[0], max_timestamp=max(times))


def made(
    store: ObjectStore,
    segments: Iterable[Iterable[Iterable[int]]],
    topic: str = "made",
    partition: int = 0,
    *,
    topic_id: str = TOPIC_ID,
    first_ms: int = 0,
    tick_ms: int = 0,
    transforms: Transforms = NO_TRANSFORMS,
) -> None:
    """Archives a partition: for each of its segments, the timestamps of each of its batches.

    Version 1 claims it, each other has one segment more; the clock starts `first_ms` later than that of the fakes and goes on by
    `tick_ms` for each segment.
    """
    clock, ids = SleptClock(), CountingIds(f"{partition:04x}" if topic_id == TOPIC_ID else f"{partition:03x}f")
    clock.sleep(first_ms / 1000)
    create_archive(store, clock, ids)
    none_yet = never_archived(topic, topic_id, partition, 0)
    writer = claim(store, none_yet, clock, ids, "tests")
    offset = 0
    for batches in segments:
        start, body = offset, []
        for times in map(tuple, batches):
            body.append(batch_of(offset, times))
            offset += len(times)
        clock.sleep(tick_ms / 1000)
        log = b"".join(body)
        entry = copy_segment(store, writer.path, checked_copy(_segment(start, offset, log)), clock, ids, transforms)
        writer.commit(none_yet, partial(segment_copied, entry=entry, lineage=LINEAGE, gap_reason="tests", now_ms=0))


def _segment(base_offset: int, end_offset: int, log: bytes) -> LogSegmentData:
    """Without indexes: the uploader makes them."""
    return LogSegmentData(
        path=f"{base_offset:020d}.log",
        base_offset=base_offset,
        end_offset=end_offset,
        size=len(log),
        read=lambda start, end: log[start:end],
        offset_index=None,
        time_index=None,
        txn_index=None,
        producer_snapshot=None,
        lineage=LINEAGE,
    )
