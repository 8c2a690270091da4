"""Restores of whole archives onto any disk, and what must hold of a log directory that came out of one."""

from collections.abc import Mapping
from pathlib import Path

from local_log.disk import Disk, WritableDisk
from local_log.formats.checkpoints import read_offsets
from local_log.log_dir import LogDir
from local_log.os_disk import OsWritableDisk
from remote import archive
from remote.manifest.entries import Entries
from remote.segment_bytes import StoredBytes
from remote.store.api import ObjectStore
from tiering.restore.plan import RestorePlan, plan_restore
from tiering.restore.run import RestoreResult, restore
from tiering.restore.target import UNFINISHED, open_target


def plans(store: ObjectStore, until_offset: int | None = None, topic_ids: Mapping[str, str] | None = None) -> list[RestorePlan]:
    manifests = [m for topic in archive.topics(store) for m in archive.newest_manifests(store, topic)]
    return [plan_restore(Entries.of(store, m), until_offset, topic_ids or {}) for m in manifests]


def run(
    store: ObjectStore, path: str, disk: WritableDisk | None = None, *, until_offset: int | None = None, threads: int = 1
) -> list[RestoreResult]:
    """Restores all of an archive into the directory at `path`."""
    with open_target(disk or OsWritableDisk(), path) as target:
        return list(restore(plans(store, until_offset), StoredBytes(store), target, threads))


def run_soundly(store: ObjectStore, path: str, disk: WritableDisk | None = None, **more: int) -> list[RestoreResult]:
    """The same, and nothing may go wrong."""
    results = run(store, path, disk, **more)
    assert [done.error for done in results if done.error] == []
    assert not (disk or OsWritableDisk()).exists(f"{path}/{UNFINISHED}")
    return results


def downloaded(results: list[RestoreResult]) -> int:
    """Bytes that were downloaded."""
    return sum(done.placed.bytes for done in results if done.placed)


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(f.relative_to(folder)): f.read_bytes() for f in sorted(folder.rglob("*")) if f.is_file()}


def checkpoint(disk: Disk, path: str, name: str) -> dict[str, int]:
    """What an offset checkpoint of a directory says."""
    return {str(p): offset for p, offset in read_offsets(disk.read(f"{path}/{name}")).items()}


def offsets(disk: Disk, path: str) -> dict[str, tuple[int, int, int]]:
    """Log start, last stable and log end offset of every log in a directory, as we read it."""
    logs = LogDir(disk, path).logs()
    return {str(log.partition): (log.log_start_offset, log.last_stable_offset, log.log_end_offset) for log in logs}
