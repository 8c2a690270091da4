"""A log directory with the archive that all of it was offloaded to, and how that is read."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from golden_logs import partitions
from logs_to_archive import all_records, local_logs, offload_all, path_of

from local_log.formats.visible_records import record_batches
from local_log.log_reader import LogReader
from remote.manifest.store import load_newest
from remote.read.log import ArchivedLog
from remote.store.api import ObjectStore
from remote.store.folder.store import FolderStore

ARCHIVED = tuple(name for name in partitions() if name not in ("g-empty-0", "g-tiny-0"))
"""The partitions that have an inactive segment when they are cut finer."""


@dataclass(frozen=True)
class World:
    """A log directory and the archive that all of it was offloaded to."""

    folder: Path
    store: FolderStore
    logs: dict[str, LogReader]
    records: dict[str, pa.Table]

    def archived(self, partition: str, store: ObjectStore | None = None) -> ArchivedLog:
        return opened(store or self.store, self.logs[partition])


def offloaded(folder: Path, into: Path, names: tuple[str, ...]) -> World:
    """A log directory after its offload to a folder, with the records of these partitions."""
    store = FolderStore(str(into))
    offload_all(folder, store)
    logs = local_logs(folder)
    return World(folder, store, logs, {name: all_records(logs[name]) for name in names})


def opened(store: ObjectStore, log: LogReader) -> ArchivedLog:
    newest = load_newest(store, path_of(log))
    assert newest is not None
    return ArchivedLog(store, newest.manifest)


def read(log: ArchivedLog, start: int, end: int, *, committed: bool = False) -> Iterator[pa.RecordBatch]:
    return record_batches(log.chunks(start, end), start, end, log.aborted(start, end) if committed else ())
