"""Tells segments that retention has deleted during a read from segments that are damaged."""

from local_log.errors import BadRange, Corrupt, NotFound
from remote.manifest.entries import Entries
from remote.manifest.store import load_newest
from remote.store.api import ObjectStore
from spark_jobs.source.partitions import Split


class DeletedDuringRead(NotFound):
    """Offsets `[start, end)` of `partition` were there when the read was planned, with manifest `version`, and are deleted.

    `log_start_offset` is where the archive starts now, None where the topic was deleted.
    """

    def __init__(self, partition: str, start: int, end: int, version: int, log_start_offset: int | None) -> None:
        super().__init__(partition, start, end, version, log_start_offset)
        self.partition = partition
        self.start = start
        self.end = end
        self.version = version
        self.log_start_offset = log_start_offset

    def __str__(self) -> str:
        now = "the topic was deleted" if self.log_start_offset is None else f"it starts at offset {self.log_start_offset} now"
        if self.log_start_offset is not None and self.log_start_offset <= self.start:
            now = "compacted segments have replaced those that had them"
        return (
            f"{self.partition}: retention has deleted offsets [{self.start}, {self.end}), which were there when the read was "
            f"planned (manifest {self.version}): {now}. Run the query again for what there is; where the reader may put pins "
            "(option pinHours) or retention waits longer it does not happen; failOnDataLoss=false does without them"
        )


def deleted_during_read(store: ObjectStore, split: Split, error: Corrupt) -> DeletedDuringRead | None:
    """The error for a segment that retention has deleted since the read was planned; None if the segment is damaged.

    Retention also deletes segments that compacted ones have replaced. Raises Unavailable, and Corrupt or Newer where the newest
    manifest, or a page of it, cannot be read.
    """
    if not isinstance(error.__cause__, NotFound | BadRange):
        return None
    newest = load_newest(store, split.manifest.path)
    manifest = None if newest is None or newest.manifest.is_deleted else newest.manifest
    entry = split.span.entry
    if manifest is not None and manifest.log_start_offset < entry.end_offset and Entries.of(store, manifest).holds(entry):
        return None
    name = f"{split.topic}-{split.partition}"
    start = None if manifest is None else manifest.log_start_offset
    return DeletedDuringRead(name, split.span.start, split.span.end, split.manifest.version, start)
