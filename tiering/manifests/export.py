"""All entries of manifests as one Parquet file."""

from collections.abc import Iterable, Iterator
from io import RawIOBase
from itertools import chain, islice
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from local_log.disk import WritableDisk, parent_of
from remote.manifest import pages
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.manifest.segment_entry import SegmentEntry, SegmentState

_ROWS_PER_GROUP = 8_192
_PARTITION_COLUMNS = (
    pa.field("topic", pa.string()),
    pa.field("topic_id", pa.string()),
    pa.field("partition", pa.int64()),
    pa.field("version", pa.int64()),
    pa.field("state", pa.string()),
)

_EntryInState = tuple[SegmentEntry, SegmentState]


class _SequentialFile(RawIOBase):
    """A file on a `WritableDisk` that is written sequentially."""

    def __init__(self, disk: WritableDisk, file: str) -> None:
        super().__init__()
        self.disk, self.file, self.position = disk, file, 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.disk.write(self.file, self.position, bytes(data))
        self.position += len(data)
        return len(data)


def export(partitions: Iterable[Entries], disk: WritableDisk, target: str) -> int:
    """Writes all entries of these partitions to one Parquet file, including expired ones; returns their number.

    The columns are topic, topic_id, partition, version and state, then the fields of an entry. The file is renamed into place
    when it is complete.
    """
    schema = pa.schema([*_PARTITION_COLUMNS, *pages.ENTRY_SCHEMA])
    part, written = f"{target}.part", 0
    disk.delete(part)
    try:
        with pq.ParquetWriter(_SequentialFile(disk, part), schema, compression="zstd") as writer:
            for entries in partitions:
                for rows in _blocks(entries):
                    writer.write_table(_table(entries.manifest, rows, schema))
                    written += len(rows)
        disk.sync(part)
        disk.rename(part, target)
    except BaseException:
        disk.delete(part)
        raise
    disk.sync_folder(parent_of(target))
    return written


def _blocks(entries: Entries) -> Iterator[list[_EntryInState]]:
    deleting = ((e, SegmentState.delete_started) for d in entries.manifest.deleting for e in entries.deleting(d))
    rows = chain(deleting, ((e, SegmentState.copy_finished) for e in entries))
    while block := [*islice(rows, _ROWS_PER_GROUP)]:
        yield block


def _table(manifest: Manifest, rows: list[_EntryInState], schema: Any) -> Any:
    of_all = (manifest.topic, manifest.topic_id, manifest.partition, manifest.version)
    known = [pa.array([value] * len(rows), f.type) for value, f in zip(of_all, _PARTITION_COLUMNS, strict=False)]
    states = pa.array([state.value for _, state in rows], pa.string())
    entries = pages.table(pages.ENTRY_SCHEMA, [entry for entry, _ in rows])
    return pa.Table.from_arrays([*known, states, *entries.columns], schema=schema)
