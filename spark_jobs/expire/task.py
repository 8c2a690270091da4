"""A task of the job expire: retention of a slice of an archive's partitions, as `tiering expire` does it. Loaded by executors.

A task that runs twice, at once or after it was killed, does no harm: the log start offset only moves forward by conditional puts
of the manifest, and objects are deleted after it has given them up.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from local_log.errors import LogError, Unavailable
from local_log.formats.filenames import TopicPartition
from remote.keys import PartitionPath
from remote.store.api import ObjectStore
from spark_jobs.common.mounted import SharedLogDir, check_archive
from tiering.cluster import BrokerRetention
from tiering.machine import CLOCK, IDS, open_archive_store
from tiering.retention.plan import RetentionPlan
from tiering.retention.policy import Given
from tiering.retention.run import LocalTier, Planned, Retention, row, rows_of

LOAD_THREADS: Final = 8
"""A store answers many requests at a time: these load the manifests of a slice. Of a folder one thread is the fastest."""

Cells = tuple[Any, ...]
"""The values of a row of `tiering.retention.run.row`, in its order."""


@dataclass(frozen=True, slots=True)
class AskedBrokers:
    """What brokers say of topics, by name and id, as the driver has asked it, or the error that it met."""

    answers: Mapping[tuple[str, str], BrokerRetention | LogError]

    def retention(self, topic: str, topic_id: str) -> BrokerRetention | None:
        """See `tiering.cluster.Cluster.retention`."""
        found = self.answers.get((topic, topic_id))
        if isinstance(found, LogError):
            raise found
        return found


@dataclass(frozen=True, slots=True)
class ExpireSpec:
    """What all tasks of an expiry share; see `Retention`."""

    archive_url: str
    keys_address: str | None
    given: tuple[Given, ...]
    source: SharedLogDir | None
    is_archive_alone: bool
    follows: bool
    brokers: AskedBrokers


@dataclass(frozen=True, slots=True)
class ExpiredSlice:
    """Rows, the errors that the refused ones name, and how many partitions were planned or done."""

    rows: tuple[Cells, ...]
    errors: tuple[LogError, ...]
    plans: int


def expire_slice(spec: ExpireSpec, is_dry_run: bool, paths: Sequence[PartitionPath]) -> ExpiredSlice:
    """Plans these partitions, and executes the plans unless it is a dry run. Every error of a partition is in a row.

    Raises NotFound where this executor does not see the log directory or the archive; what is wrong with its checkpoint files,
    the keys or the store.
    """
    local = _local(spec.source, paths) if spec.source is not None else None
    store = open_archive_store(spec.archive_url, spec.keys_address)
    check_archive(store, is_dry_run=is_dry_run)
    retention = Retention(store, CLOCK, IDS, spec.given, local, spec.is_archive_alone, follows=spec.follows, cluster=spec.brokers)
    threads = 1 if store.url.startswith("file://") else LOAD_THREADS
    work = (retention.planned_of if is_dry_run else retention.done_of)(paths, threads=threads)
    rows: list[Cells] = []
    errors: list[LogError] = []
    plans = 0
    for path, due in _each(work, paths, store):
        if isinstance(due, RetentionPlan):
            plans += 1
            rows += (tuple(one.values()) for one in rows_of(path, due))
        else:
            errors.append(due)
            rows.append(refused(path, due))
    return ExpiredSlice(tuple(rows), tuple(errors), plans)


def refused(path: PartitionPath, error: Exception) -> Cells:
    """The row of a partition that could not be planned or done."""
    return tuple(row(path, "refused", None, None, 0, 0, str(error)).values())


def _local(source: SharedLogDir, paths: Iterable[PartitionPath]) -> LocalTier:
    found = source.open().found_of(sorted({TopicPartition(path.topic, path.partition) for path in paths}))
    return LocalTier(source.path, {log.partition: log for log in found})


def _each(work: Iterator[Planned], paths: Sequence[PartitionPath], store: ObjectStore) -> Iterator[Planned]:
    """What `work` gives; where the store stops answering, those behind are skipped, and said to be."""
    at = 0
    problem: Unavailable | None = None
    try:
        for path, due in work:
            yield path, due
            at = paths.index(path, at) + 1
            problem = due if isinstance(due, Unavailable) else None
    except Unavailable as e:
        yield paths[at], e
        at, problem = at + 1, e
    if problem is not None:
        for path in paths[at:]:
            yield path, Unavailable(f"{path} was skipped: {store.url} did not respond for others; run the job again")
