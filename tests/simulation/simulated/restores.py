"""A restore onto an empty disk, and the log that a broker finds there."""

from typing import NamedTuple

from local_log.engine.config import LogConfig
from local_log.engine.memory_records import batch_at, memory_batches
from local_log.engine.unified_log import open_log
from remote.manifest.entries import Entries
from remote.manifest.model import Manifest
from remote.store.api import ObjectReader
from simulated.disks import QuietDisk
from simulated.readers import decoded
from tiering.restore.plan import plan_restore
from tiering.restore.run import restore
from tiering.restore.target import open_target

RESTORED = "/restored"
SMALL = LogConfig(segment_index_bytes=1200, remote_storage_enable=True)


class Restored(NamedTuple):
    """The batches from the archive's log start offset on, by base offset, and where the log starts and ends.

    `markers` are those after the archive's end: they end transactions whose own markers were not archived.
    """

    batches: dict[int, bytes]
    markers: dict[int, bytes]
    start: int
    end: int


def restored(store: ObjectReader, manifest: Manifest, now_ms: int) -> Restored:
    """All that a version has. Raises what the restore says."""
    disk = QuietDisk()
    disk.now_ms = now_ms
    with open_target(disk, RESTORED) as target:
        plan = plan_restore(Entries.of(store, manifest), None, {})
        errors = [done.error for done in restore([plan], decoded(store), target, 1) if done.error]
    if errors:
        raise errors[0]
    log = open_log(disk, f"{RESTORED}/{plan.partition}", SMALL, lambda: now_ms, lambda: 0.5)
    found: dict[int, bytes] = {}
    for segment in log.local.segments:
        data = disk.read(segment.log_file, 0, segment.size)
        batches = {b.base_offset: data[b.position : b.position + b.size] for b in memory_batches(data)}
        found |= {base: body for base, body in batches.items() if batch_at(body, 0).last_offset >= manifest.log_start_offset}
    archived = {base: body for base, body in found.items() if base < manifest.end_offset}
    markers = {base: body for base, body in found.items() if base >= manifest.end_offset}
    return Restored(archived, markers, manifest.log_start_offset, log.log_end_offset)
