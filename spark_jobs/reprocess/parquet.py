"""Rows of any DataFrame as Parquet files of one run: staged by tasks, made to count by one put, then published.

    run=<run id>/part-<task>.parquet                                     the files
    _tiering/reprocess/<run id>/commit.json                              which files the run has; the first one put stays
    _tiering/reprocess/<run id>/<writer>/part-<task>.<attempt>.parquet   a file that an attempt of a driver's task wrote

A run that is run again finds its commit, and publishes what a driver that died has left. Of two at once one commits.
"""

from collections.abc import Callable
from dataclasses import asdict

from pyspark.sql import DataFrame

from local_log.errors import NotFound
from remote.clock import RandomIds
from remote.store.api import ObjectStore
from spark_jobs.common.target import Target
from spark_jobs.reprocess.stage import FORMAT, Committed, ReprocessedSource, Run, decode


def write(rows: Callable[[], DataFrame], target: Target, run_id: str, compression: str) -> tuple[Committed, bool]:
    """Writes what `rows` gives, once a run: gives the files, and whether somebody else had committed them.

    Raises Unavailable, Corrupt, BadAddress where the target cannot be committed to, and Spark's errors.
    """
    run, store = Run(target.url, run_id, RandomIds().new_id(), compression), target.store
    committed, leftovers = _found(store, run), run.folder
    if committed is None:
        frame = rows()
        frame.sparkSession.dataSource.register(ReprocessedSource)
        frame.write.format(FORMAT).options(**asdict(run)).mode("append").save()
        committed, leftovers = decode(store.get(run.commit_key), run.commit_key), f"{run.staging}/"
    for file in committed.files:
        target.publish(file.staged, file.name)
    _delete_below(store, leftovers, run.commit_key)
    return committed, committed.writer != run.writer


def _found(store: ObjectStore, run: Run) -> Committed | None:
    try:
        return decode(store.get(run.commit_key), run.commit_key)
    except NotFound:
        return None


def _delete_below(store: ObjectStore, prefix: str, commit: str) -> None:
    """What attempts have left that are in no commit. What a twin still writes goes, too: its run is done already."""
    for meta in tuple(store.list(prefix)):
        if meta.key != commit:
            store.delete(meta.key)
