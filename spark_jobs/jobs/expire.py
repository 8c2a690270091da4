"""`tiering expire` of an archive with many partitions, spread over Spark's executors: the same rows, the same exit codes.

    python -m spark_jobs.jobs.expire --archive s3://bucket/prefix -c retention.ms=31536000000 --archive-alone --yes

The driver lists the partitions. Tasks load the manifests of a slice of them, plan, and execute the plans.
"""

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

import click

from local_log.errors import LogError
from remote import archive
from remote.clock import stopwatch
from remote.keys import PartitionPath
from remote.parallel import in_order
from remote.store.api import ObjectStore
from spark_jobs.common.arguments import master_option
from spark_jobs.common.attempts import Failed
from spark_jobs.common.mounted import SharedLogDir
from spark_jobs.common.outcome import ending, say_errors
from spark_jobs.common.slices import Executors, sliced
from spark_jobs.expire.task import AskedBrokers, Cells, ExpiredSlice, ExpireSpec, expire_slice, refused
from tiering.cluster import BrokerRetention, Cluster
from tiering.command.config_option import with_config
from tiering.command.exit_codes import Exit, exit_code_of_all
from tiering.command.expire_options import ExpireOptions, expire_options
from tiering.command.options import ask, options_as
from tiering.command.output import Row, counted, emit, say
from tiering.log_dirs import log_dir
from tiering.machine import open_archive_store
from tiering.retention.policy import LOCAL, Given, read_given
from tiering.retention.run import COLUMNS

LIST_THREADS: Final = 16
"""Listings of topics at a time."""

Paths = Sequence[PartitionPath]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpireArguments(ExpireOptions):
    """The options of this job."""

    master: str | None


@with_config
@click.command("expire")
@expire_options()
@master_option
@options_as(ExpireArguments)
def main(arguments: ExpireArguments) -> None:
    """Expire archived segments by retention.ms and retention.bytes, as tiering expire does, on Spark's executors.

    The driver and every executor must see --log-dir, and an archive in a folder, at the same path. Only the driver reads
    --metadata-log-dir. For one partition's log start offset and for a log directory that no broker uses, run tiering expire.
    """
    ending("expire", lambda: _expire(arguments))


def _expire(arguments: ExpireArguments) -> None:
    _refuse_local_limits(arguments)
    arguments.refuse_contradictions()
    given = arguments.retention(is_start_given=arguments.follow_log_start_offset)
    store = open_archive_store(arguments.archive_url, arguments.keys_address)
    paths = _paths(store, arguments.names(store))
    spec = _spec(arguments, given, paths)
    if arguments.dry_run or not arguments.is_agreed:
        code = _run(arguments, spec, paths, is_dry_run=True)
        if arguments.dry_run:
            sys.exit(code or Exit.done)
        ask(f"Delete this from {store.url} for good?")
    sys.exit(_run(arguments, spec, paths, is_dry_run=False) or Exit.done)


def _refuse_local_limits(arguments: ExpireArguments) -> None:
    """Raises UsageError for limits of a local log: this job only reads one."""
    with suppress(LogError):  # which `retention` reports
        if any(one.name in LOCAL for one in read_given(arguments.settings)):
            raise click.UsageError(
                f"{' and '.join(LOCAL)} are for tiering expire --own-log-dir; this job deletes nothing locally"
            )


def _paths(store: ObjectStore, names: Iterable[str]) -> list[PartitionPath]:
    with in_order(lambda name: [*archive.partition_paths(store, name)], names, LIST_THREADS) as listed:
        return [path for of_topic in listed for path in of_topic]


def _spec(arguments: ExpireArguments, given: tuple[Given, ...], paths: Paths) -> ExpireSpec:
    shared = None
    if arguments.counted_log_dir is not None:
        source = log_dir(arguments.counted_log_dir)
        shared = SharedLogDir.of(source, source.partitions())
    brokers = AskedBrokers(_asked(arguments.cluster(), {(path.topic, path.topic_id) for path in paths}))
    return ExpireSpec(
        arguments.archive_url,
        arguments.keys_address,
        given,
        shared,
        arguments.archive_alone,
        arguments.follow_log_start_offset,
        brokers,
    )


def _asked(cluster: Cluster, topics: Iterable[tuple[str, str]]) -> dict[tuple[str, str], BrokerRetention | LogError]:
    """What the brokers say of each topic that they know. Who leads which partition is left out: no task asks for it."""
    answers: dict[tuple[str, str], BrokerRetention | LogError] = {}
    for topic in topics if cluster.dirs else ():
        try:
            found = cluster.retention(*topic)
        except LogError as e:
            answers[topic] = e
        else:
            if found is not None:
                answers[topic] = replace(found, leaders={})
    return answers


def _run(arguments: ExpireArguments, spec: ExpireSpec, paths: Paths, *, is_dry_run: bool) -> Exit | None:
    """Has tasks plan, or also execute, and prints what comes of it. Gives the exit code of `tiering expire`."""
    started = stopwatch()
    outcomes: list[ExpiredSlice | Failed] = []
    slices: list[Paths] = []
    if paths:
        executors = Executors.of("expire", arguments.master)
        slices = sliced(paths, executors.cores)
        outcomes = executors.run(slices, partial(expire_slice, spec, is_dry_run))
    emit(_rows(slices, outcomes), arguments.output)
    errors = [e for of_slice, outcome in zip(slices, outcomes, strict=True) for e in _errors(of_slice, outcome)]
    plans = sum(outcome.plans for outcome in outcomes if not isinstance(outcome, Failed))
    with suppress(OSError):
        say_errors("expire", errors)
        done = f"{counted(plans, 'partition')} {'planned' if is_dry_run else 'done'}"
        say(f"expire: {done}, {len(errors)} refused, of {len(paths)}; {stopwatch() - started:.1f} s")
    return exit_code_of_all(errors, partly=plans > 0)


def _rows(slices: Iterable[Paths], outcomes: Iterable[ExpiredSlice | Failed]) -> Iterator[Row]:
    for paths, outcome in zip(slices, outcomes, strict=True):
        cells: Iterable[Cells] = (refused(path, outcome.error) for path in paths) if isinstance(outcome, Failed) else outcome.rows
        for one in cells:
            yield dict(zip(COLUMNS, one, strict=True))


def _errors(paths: Paths, outcome: ExpiredSlice | Failed) -> Sequence[Exception]:
    """The errors of a slice; that of one that failed as a whole is of each of its partitions."""
    return [outcome.error] * len(paths) if isinstance(outcome, Failed) else outcome.errors


if __name__ == "__main__":
    main()
