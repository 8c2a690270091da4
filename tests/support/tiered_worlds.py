"""The golden logs in one tier or both, in every shape that archiving and local retention leave."""

from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
from archive_fakes import MemoryStore
from golden_logs import partitions
from logs_to_archive import all_records, copy_of, drop_segments_below, finer_logs, local_logs, offload_all, path_of

from local_log.formats.batches import scan
from local_log.formats.filenames import LEADER_EPOCH_CHECKPOINT
from remote.manifest.model import LIMITS, Limits
from remote.manifest.store import load_newest
from remote.read.log import ArchivedLog
from remote.segment.upload import NO_TRANSFORMS
from remote.transforms.encoder import Transforms
from tiering.read.tiered_log import TieredLog

SHAPES = ("local alone", "all in both", "archived dropped", "some archived dropped")
ARCHIVED = tuple(name for name in partitions() if name not in ("g-empty-0", "g-tiny-0"))
"""The partitions that have an inactive segment when they are cut finer."""


@dataclass(frozen=True)
class World:
    """The same logs in several shapes: a folder each, and one archive."""

    folders: dict[str, Path]
    store: MemoryStore
    records: dict[str, pa.Table]

    def log(self, shape: str, partition: str) -> TieredLog:
        local = local_logs(self.folders[shape])[partition]
        newest = None if shape == "local alone" else load_newest(self.store, path_of(local))
        return TieredLog(local, ArchivedLog(self.store, newest.manifest) if newest and not newest.manifest.only_seen else None)

    def archived(self, partition: str) -> TieredLog:
        return TieredLog(None, self.log("all in both", partition).archived)


def made(base: Path) -> World:
    """The golden logs, cut finer, in all shapes, below `base`."""
    whole = finer_logs(base / "whole")
    store = MemoryStore()
    offload_all(whole, store)
    folders = {"local alone": whole, "all in both": whole}
    for shape in ("archived dropped", "some archived dropped"):
        folders[shape] = copy_of(whole, base / shape)
    for name, log in local_logs(whole).items():
        newest = load_newest(store, path_of(log))
        if newest is None or newest.manifest.only_seen:
            continue
        archived_end = newest.manifest.end_offset
        middle = newest.manifest.entries[len(newest.manifest.entries) // 2].base_offset
        for shape, offset in (("archived dropped", archived_end), ("some archived dropped", middle)):
            drop_archived(folders[shape], name, offset)
    return World(folders, store, {name: all_records(log) for name, log in local_logs(whole).items() if name in ARCHIVED})


def drop_archived(folder: Path, name: str, offset: int) -> None:
    """What local retention leaves of a partition: no segment that ends at or below `offset`, and no epoch from before."""
    drop_segments_below(folder, name, offset)
    forget_epochs_below(folder / name / LEADER_EPOCH_CHECKPOINT, local_logs(folder)[name].log_start_offset)


def with_half_archived(folder: Path, into: Path, transforms: Transforms = NO_TRANSFORMS, limits: Limits = LIMITS) -> MemoryStore:
    """An archive of a log directory, and a copy of this that has the newer half of what is archived, and what is not."""
    store = MemoryStore()
    offload_all(folder, store, transforms=transforms, limits=limits)
    copy_of(folder, into)
    for name, log in local_logs(folder).items():
        newest = load_newest(store, path_of(log))
        if newest is not None and not newest.manifest.only_seen:
            drop_archived(into, name, newest.manifest.entries[len(newest.manifest.entries) // 2].base_offset)
    return store


def forget_epochs_below(file: Path, offset: int) -> None:
    """What a broker does to the leader epochs when the start of its local log moves."""
    pairs = [tuple(map(int, line.split())) for line in file.read_text().splitlines()[2:]]
    gone = [epoch for epoch, start in pairs if start <= offset]
    kept = [*((epoch, offset) for epoch in gone[-1:]), *(pair for pair in pairs if pair[1] > offset)]
    file.write_text("\n".join(["0", str(len(kept)), *(f"{epoch} {start}" for epoch, start in kept), ""]))


@dataclass(frozen=True)
class Batch:
    base_offset: int
    last_offset: int
    body: bytes


def batches_of(folder: Path, partition: str) -> list[Batch]:
    """Every batch in the log's files, cut by its header, with no index."""
    found = []
    for file in sorted((folder / partition).glob("*.log")):
        body, position = file.read_bytes(), 0
        while position < len(body):
            batches, stop = scan(body, position)
            columns = (batches.base_offset, batches.last_offset, batches.positions, batches.end)
            for base, last, start, end in zip(*(column.tolist() for column in columns), strict=True):
                found.append(Batch(base, last, body[start:end]))
            position = stop
    return found


def expected_fetch(batches: list[Batch], offset: int, max_bytes: int, end: int) -> tuple[bytes, int]:
    """What a fetch gives, by Kafka's rules, and where the next one starts."""
    wanted = [b for b in batches if b.last_offset >= offset and b.last_offset < end]
    fit = sum(size <= max_bytes for size in accumulate(len(b.body) for b in wanted))
    given = wanted[: max(fit, 1)]
    return b"".join(b.body for b in given), given[-1].last_offset + 1 if given else offset
