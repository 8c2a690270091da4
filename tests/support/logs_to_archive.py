"""Log directories to archive: offloaded, copied, cut finer, shortened as retention does, and read without any index."""

import shutil
import struct
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
from archive_fakes import CountingIds, FixedClock
from golden_logs import broker_logs, live, partitions

from local_log.formats.indexes.transaction import AbortedTxn, read_txn_index, write_txn_index
from local_log.formats.record_batch.batch_v2 import Batches, scan
from local_log.formats.record_batch.columns import decode, per_record
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from local_log.os_disk import OsDisk
from remote import archive
from remote.keys import PartitionPath
from remote.manifest.model import LIMITS, Limits
from remote.segment.upload import NO_TRANSFORMS
from remote.store.api import ObjectStore
from remote.transforms.encoder import Transforms
from tiering.offload.copy import Done, OffloadRun, offload
from tiering.offload.due import plan


def local_logs(folder: Path) -> dict[str, LogReader]:
    """The logs of a log directory by the names of their folders."""
    return {str(log.partition): log for log in LogDir(OsDisk(), str(folder)).logs()}


def path_of(log: LogReader) -> PartitionPath:
    """Where a log lies in an archive."""
    return PartitionPath(log.partition.topic, log.topic_id, log.partition.partition)


def offload_all(
    folder: Path,
    store: ObjectStore,
    *,
    clock: FixedClock | None = None,
    ids: CountingIds | None = None,
    source: str = "source",
    only: str | None = None,
    transforms: Transforms = NO_TRANSFORMS,
    limits: Limits = LIMITS,
) -> list[Done]:
    """Offloads a log directory, or `only` one partition of it, as the command does, and gives what became of each segment."""
    clock, ids = clock or FixedClock(), ids or CountingIds()
    archive.create_archive(store, clock, ids)
    logs = [log for name, log in local_logs(folder).items() if only in (None, name)]
    run = OffloadRun(store, clock, ids, source, lambda _: None, transforms, limits)
    return [done for log in logs for done in offload(plan(log, store), run)]


def copy_of(folder: Path, into: Path) -> Path:
    """A log directory to change at will."""
    return Path(shutil.copytree(folder, into))


_INDEX_INTERVAL_BYTES = 4096
_SEGMENT_SUFFIXES = (".log", ".index", ".timeindex", ".txnindex")


def cut_finer(folder: Path, segments: int) -> None:
    """Cuts the log in a partition's folder into about so many segments, with the indexes that a broker would have written.

    Batches stay as they are, and so do the snapshots: few of the new segments have one.
    """
    logs = sorted(folder.glob("*.log"))
    body = b"".join(file.read_bytes() for file in logs)
    aborted = [t for file in sorted(folder.glob("*.txnindex")) for t in read_txn_index(file.read_bytes())]
    first_base = int(logs[0].stem)
    batches, _ = scan(body)
    if not len(batches):
        return
    for suffix in _SEGMENT_SUFFIXES:
        for file in folder.glob(f"*{suffix}"):
            file.unlink()
    per_segment = max(1, -(-len(batches) // segments))
    runs = [batches[at : at + per_segment] for at in range(0, len(batches), per_segment)]
    for number, run in enumerate(runs):
        base = int(run.base_offset[0]) if number else first_base
        _write_segment(folder / f"{base:020d}", base, run, body, aborted)


def _write_segment(stem: Path, base: int, run: Batches, body: bytes, aborted: Iterable[AbortedTxn]) -> None:
    start = int(run.positions[0])
    index, times = bytearray(), bytearray()
    since_entry, latest, written = 0, (-1, -1), -1
    for position, size, last, timestamp in zip(
        run.positions.tolist(), run.size.tolist(), run.last_offset.tolist(), run.max_timestamp.tolist(), strict=True
    ):
        if timestamp > latest[0]:
            latest = (timestamp, last)
        if since_entry > _INDEX_INTERVAL_BYTES:
            index += struct.pack(">ii", last - base, position - start)
            if latest[0] > written:
                times += struct.pack(">qi", latest[0], latest[1] - base)
                written = latest[0]
            since_entry = 0
        since_entry += size
    if latest[0] > written:
        times += struct.pack(">qi", latest[0], latest[1] - base)
    own = [t for t in aborted if base <= t.last_offset < run.next_offset]
    stem.with_suffix(".log").write_bytes(body[start : int(run.end[-1])])
    stem.with_suffix(".index").write_bytes(index)
    stem.with_suffix(".timeindex").write_bytes(times)
    if own:
        stem.with_suffix(".txnindex").write_bytes(write_txn_index(own))


def finer_logs(folder: Path, segments: int = 12) -> Path:
    """The golden log directory, unpacked into `folder` and all of it cut finer: every partition then has much to archive."""
    broker_logs(folder)
    for name in partitions():
        cut_finer(folder / name, segments)
    return folder


def due(folder: Path, partition: str) -> list[tuple[int, int]]:
    """The segments that an offload of a golden partition takes: inactive, and wholly below the last stable offset."""
    bases = sorted(int(file.stem) for file in (folder / partition).glob("*.log"))
    return [(base, end) for base, end in pairwise(bases) if end <= live(partition)["last_stable_offset"]]


def roll(folder: Path, partition: str, end: int | None = None) -> None:
    """Starts a new segment, as a broker does; the producer snapshot for it is there already. A golden one's end is known."""
    end = live(partition)["latest"][0] if end is None else end
    for suffix in (".log", ".index", ".timeindex"):
        (folder / partition / f"{end:020d}{suffix}").touch()


def drop_segments_below(folder: Path, partition: str, offset: int) -> None:
    """What a broker's local retention leaves: no segment that ends at or below `offset`, and checkpoints that say so."""
    bases = sorted(int(file.stem) for file in (folder / partition).glob("*.log"))
    start = max(base for base in bases if base <= offset)
    for file in (folder / partition).iterdir():
        if file.stem.isdigit() and int(file.stem) < start:
            file.unlink()
    set_checkpoint(folder / "log-start-offset-checkpoint", partition, start)


def set_checkpoint(file: Path, partition: str, offset: int) -> None:
    """Sets a partition's line of an offset checkpoint."""
    topic, _, number = partition.rpartition("-")
    lines = [line for line in file.read_text().splitlines()[2:] if line.split()[:2] != [topic, number]]
    lines.append(f"{topic} {number} {offset}")
    file.write_text("\n".join(["0", str(len(lines)), *lines, ""]))


def all_records(log: LogReader) -> pa.Table:
    """Every record of a local log, control records too (column `control`), decoded without any index."""
    tables = []
    for segment in log.segments:
        body = segment.read(".log") or b""
        batches, _ = scan(body)
        for group, records in decode(body, batches):
            columns = {"control": group.is_control, "leader_epoch": group.header["partition_leader_epoch"]}
            table = pa.Table.from_batches([records])
            for name, column in columns.items():
                table = table.append_column(name, pa.array(per_record(group, column)))
            tables.append(table)
    # A copy: each decoded batch refers to a buffer for the largest that it could have become, 1.5 GB for all golden logs.
    return pa.concat_tables(tables).combine_chunks()


def for_applications(records: pa.Table, start_offset: int, end_offset: int) -> pa.Table:
    """What an application sees of `all_records` in `[start_offset, end_offset)`, read_uncommitted."""
    offsets = records.column("offset").to_numpy()
    seen = ~records.column("control").to_numpy() & (offsets >= start_offset) & (offsets < end_offset)
    return records.filter(pa.array(seen)).drop_columns(["control", "leader_epoch"]).combine_chunks()


def table_of(batches: Iterable[pa.RecordBatch], like: pa.Table) -> pa.Table:
    """Record batches as one table, an empty one like `like` for none."""
    return pa.Table.from_batches(list(batches), like.schema).combine_chunks()


def offsets_of(batches: Iterable[pa.RecordBatch]) -> list[int]:
    """The offsets of records, in the order in which they came."""
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]
