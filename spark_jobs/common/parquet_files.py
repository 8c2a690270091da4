"""The rows of a split as Parquet files, one for each folder that they belong in. Loaded by executors."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_jobs.common.layout import By, parts
from spark_jobs.common.staged_file import StagedFile

FILE_BYTES = 128_000_000
"""About what a file has, unless the user has set another size: what readers of Parquet make one task of."""
ROW_GROUP_BYTES = 64 << 20
HELD_BYTES_MAX = 256 << 20
"""What waits for a full row group, of all folders together; the fullest is written when there is more."""
PAGE_BYTES = 128 << 10
"""Of a column before it is compressed: what a core still has in its cache then."""
OPEN_FILES_MAX = 64
_REPEATING = ["partition", "timestampType"]
"""Dictionaries over keys and values, which hardly repeat, would take a quarter of the time for nothing."""
_UNORDERED = {"value", "headers"}
"""Nobody asks for the least and the greatest of these."""


@dataclass
class _Folder:
    batches: list[pa.RecordBatch] = field(default_factory=list)
    bytes: int = 0
    files: int = 0
    file: Any = None
    writer: Any = None


class ParquetFiles:
    """Writes rows to files that `place(folder, number)` gives a path for, by folder and from 0; `rows` are those by path.

    A file that has `file_bytes` is closed, and its folder's next rows begin another one.
    """

    def __init__(  # six parameters: what all files have in common
        self, schema: Any, topic: str, by: By, compression: str, place: Callable[[str, int], str], file_bytes: int = FILE_BYTES
    ) -> None:
        self._schema = schema
        self._file_bytes = file_bytes
        self._group_bytes = min(ROW_GROUP_BYTES, file_bytes)
        self._topic = topic
        self._by = by
        self._compression = compression
        self._place = place
        self._folders: dict[str, _Folder] = {}
        self._open: dict[str, str] = {}  # folders in the order of their last row groups, with the paths of their files
        self._held_bytes = 0
        self.rows: dict[str, int] = {}

    def write_all(self, batches: Iterable[pa.RecordBatch]) -> None:
        """Writes all rows, and closes the files, also when something goes wrong."""
        try:
            for batch in batches:
                for name, part in parts(batch, self._topic, self._by):
                    self._take(name, part)
            for name in self._folders:
                self._write_group(name)
        finally:
            for name in list(self._open):
                self._close(name)

    def _take(self, name: str, part: pa.RecordBatch) -> None:
        folder, size = self._folders.setdefault(name, _Folder()), part.nbytes
        folder.batches.append(part)
        folder.bytes += size
        self._held_bytes += size
        if folder.bytes >= self._group_bytes:
            self._write_group(name)
        while self._held_bytes > HELD_BYTES_MAX:
            self._write_group(max(self._folders, key=lambda n: self._folders[n].bytes))

    def _write_group(self, name: str) -> None:
        folder = self._folders[name]
        if not folder.batches:
            return
        if folder.writer is None:
            if len(self._open) == OPEN_FILES_MAX:
                self._close(next(iter(self._open)))
            path = self._place(name, folder.files)
            folder.file = StagedFile(path)
            folder.writer = pq.ParquetWriter(
                folder.file,
                self._schema,
                compression=self._compression,
                data_page_size=PAGE_BYTES,
                use_dictionary=_REPEATING,
                write_statistics=[name for name in self._schema.names if name not in _UNORDERED],
            )
            folder.files += 1
        else:
            path = self._open.pop(name)
        self._open[name] = path
        table = pa.Table.from_batches(folder.batches, self._schema)
        folder.writer.write_table(table, row_group_size=table.num_rows)
        self.rows[path] = self.rows.get(path, 0) + table.num_rows
        self._held_bytes -= folder.bytes
        folder.batches, folder.bytes = [], 0
        if folder.file.tell() >= self._file_bytes:
            self._close(name)

    def _close(self, name: str) -> None:
        del self._open[name]
        folder = self._folders[name]
        with folder.file:
            folder.writer.close()
        folder.writer = folder.file = None
