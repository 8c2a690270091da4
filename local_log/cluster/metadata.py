"""Reads a KRaft cluster's topics from the metadata log that every broker and controller keeps.

`read_cluster_image(disk, log_dir)` gives the ClusterImage of the folder `__cluster_metadata-0` in a log directory, None if there
is no such folder. A broker has it in the first of its `log.dirs`, or in `metadata.log.dir`; a cluster that uses ZooKeeper has
none. The broker may be running: nothing is written, and the folder is listed again when the broker deletes a file meanwhile.

It reads the newest snapshot (`<end offset>-<epoch>.checkpoint`), then the log after it up to the last whole batch. A broker does
not persist how far its metadata is committed, so a new leader may still truncate the last records, a few milliseconds' worth.
At worst the image then has a change of a topic's settings that was requested but failed.
"""

from collections.abc import Iterator
from typing import Any

from local_log.cluster.image import ClusterImage, ImageBuilder
from local_log.disk import Disk
from local_log.errors import Corrupt, NotFound
from local_log.formats.chunks import Chunk, read_chunks
from local_log.formats.control import SNAPSHOT_FOOTER, SNAPSHOT_HEADER, read_control_type
from local_log.formats.filenames import CLUSTER_METADATA_TOPIC, TopicPartition, parse_metadata_snapshot
from local_log.formats.metadata_records import read_metadata_record
from local_log.formats.record_batch.projection import Projection
from local_log.log_reader import open_log

_PARTITION = TopicPartition(CLUSTER_METADATA_TOPIC, 0)
_LISTINGS_MAX = 5
_KEYS = Projection(value=False, headers=False)
_VALUES = Projection(key=False, headers=False)


def read_cluster_image(disk: Disk, log_dir: str) -> ClusterImage | None:
    """The cluster's topics by the metadata in a log directory, None if it has none.

    Raises Corrupt and Unreadable; NotFound if the broker deleted listed files again and again.
    """
    folder = f"{log_dir}/{_PARTITION}"
    for _ in range(_LISTINGS_MAX - 1):
        try:
            return _read(disk, folder) if disk.is_folder(folder) else None
        except NotFound:
            continue  # the broker has written a newer snapshot and deleted this one
    return _read(disk, folder)


def _read(disk: Disk, folder: str) -> ClusterImage:
    builder, end = ImageBuilder(), 0
    snapshots = {found: name for name in disk.names(folder) if (found := parse_metadata_snapshot(name)) is not None}
    if snapshots:
        newest = max(snapshots)
        end = newest[0]
        _replay_snapshot(disk, f"{folder}/{snapshots[newest]}", builder)
    log = open_log(disk, folder, _PARTITION)
    if log.log_start_offset > end:
        raise Corrupt(
            f"the metadata log starts at offset {log.log_start_offset} and its newest snapshot ends at {end}; have its broker "
            "fetch it anew",
            file=folder,
        )
    if log.log_end_offset > end:
        for chunk in log.chunks(end, log.log_end_offset):
            _replay(chunk.where(chunk.batches.last_offset >= end), builder)
        end = log.log_end_offset
    return builder.image(end)


def _replay_snapshot(disk: Disk, file: str, builder: ImageBuilder) -> None:
    """Raises Corrupt if the snapshot has no header or no footer record."""
    types: list[int] = []
    at, size = 0, disk.size(file)
    for chunk in read_chunks(lambda a, b: disk.read_large(file, a, b), file, 0, size):
        types += _control_types(chunk)
        _replay(chunk, builder)
        at = chunk.end
    if at != size or types[:1] != [SNAPSHOT_HEADER] or types[-1:] != [SNAPSHOT_FOOTER]:
        raise Corrupt("not a whole snapshot of the metadata; delete it while its broker is stopped", file=file, position=at)


def _replay(chunk: Chunk, builder: ImageBuilder) -> None:
    for offset, value in _records(chunk.where(~chunk.batches.is_control), _VALUES, "value"):
        try:
            record = read_metadata_record(value or b"")
            if record is not None:
                builder.replay(record)
        except Corrupt as e:
            raise Corrupt(f"the record of offset {offset}: {e.problem}", file=chunk.file, position=chunk.position) from e


def _control_types(chunk: Chunk) -> list[int]:
    keys = _records(chunk.where(chunk.batches.is_control), _KEYS, "key")
    return [read_control_type(key or b"") for _, key in keys]


def _records(chunk: Chunk, want: Projection, column: str) -> Iterator[tuple[int, Any]]:
    for _, records in chunk.records(want):
        yield from zip(records.column("offset").to_pylist(), records.column(column).to_pylist(), strict=True)
