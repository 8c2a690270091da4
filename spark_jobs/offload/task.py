"""A task of the job offload: a slice of a log directory's partitions, copied as `tiering offload` does. Loaded by executors.

A task that runs twice, at once or after it was killed, does no harm: each segment is committed by a conditional put of its
partition's manifest, and the second task finds it archived.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from local_log.formats.filenames import TopicPartition
from spark_jobs.common.mounted import SharedLogDir, check_archive
from spark_jobs.offload.rows import OffloadRow, rows_of
from tiering.log_dirs import cluster_of
from tiering.losses.gone_logs import GoneLog, former_logs
from tiering.losses.seen_logs import SeenLog
from tiering.machine import CLOCK, IDS, open_archive_store
from tiering.offload.compacted_topics import ReplacedTopics
from tiering.offload.plan import Action
from tiering.offload.run import OffloadLogs
from tiering.wiring import transforms

DELETED = "its broker has deleted or moved it since the log directory was listed"


@dataclass(frozen=True, slots=True)
class OffloadSpec:
    """What all tasks of an offload share. `encrypt_with` is the address of the keys, None for no encryption.

    `bytes_per_second` limits each of the slices that run at the same time. `is_archive_missing`: in a dry run, there may be none.
    `replace_compacted` are the topics of which what was compacted is archived again, by the metadata in `metadata_dirs`.
    `assumes_clean_elections` is as in OffloadRun.
    """

    source: SharedLogDir
    archive_url: str
    keys_address: str | None
    compress: bool
    encrypt_with: str | None
    chunk_bytes: int
    bytes_per_second: int | None
    threads: int
    is_dry_run: bool
    copies_nothing: bool
    is_archive_missing: bool = False
    replace_compacted: tuple[str, ...] = ()
    metadata_dirs: tuple[str, ...] = ()
    assumes_clean_elections: bool = False


@dataclass(frozen=True, slots=True)
class OffloadItem:
    """A partition, what an earlier offload saw of it, and whether it has disappeared since."""

    partition: TopicPartition
    known: SeenLog | None = None
    gone: GoneLog | None = None


@dataclass(frozen=True, slots=True)
class OffloadedSlice:
    """What a task did, and what of it the next offload is to remember."""

    rows: tuple[OffloadRow, ...]
    changes: Mapping[TopicPartition, SeenLog | None]


def offload_slice(spec: OffloadSpec, items: Sequence[OffloadItem]) -> OffloadedSlice:
    """Offloads these partitions. Every error of a partition is in a row.

    Raises NotFound where this executor does not see the log directory or the archive; what is wrong with its checkpoint files,
    the keys or the store.
    """
    source = spec.source.open()
    store = open_archive_store(spec.archive_url, spec.keys_address, bytes_per_second=spec.bytes_per_second)
    if not spec.is_archive_missing:
        check_archive(store, is_dry_run=spec.is_dry_run)
    how = transforms(compress=spec.compress, encrypt_with=spec.encrypt_with, chunk_bytes=spec.chunk_bytes)
    known = {item.partition: item.known for item in items if item.known is not None}
    offload = OffloadLogs(
        store, CLOCK, IDS, spec.source.id, lambda _: None, how, spec.is_dry_run, spec.copies_nothing, known,
        ReplacedTopics(spec.replace_compacted, cluster_of(spec.metadata_dirs)),
        assumes_clean_elections=spec.assumes_clean_elections,
    )  # fmt: skip
    wanted = [item.partition for item in items if item.gone is None]
    logs = source.found_of(wanted)
    gone = (*(item.gone for item in items if item.gone is not None), *former_logs(known, logs))
    rows = tuple(rows_of(chain(offload.run(gone, spec.threads), offload.run(logs, spec.threads))))
    there = {log.partition for log in logs}
    deleted = tuple(OffloadRow(p, Action.skipped, 0, 0, DELETED) for p in wanted if p not in there)
    return OffloadedSlice((*rows, *deleted), offload.changes)
