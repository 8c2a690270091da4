"""`tiering restore`: archived partitions as a log directory that a broker starts on."""

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import click

from local_log.errors import LogError, NotFound, listed
from local_log.formats.primitives import INT32_MAX
from tiering.command import quantities
from tiering.command.completion import folders
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import (
    Number,
    archive_option,
    by_topic,
    dry_run_option,
    keys_option,
    named,
    output_option,
    tell_unmatched,
    topics_option,
)
from tiering.command.output import Row, emit, say, warn
from tiering.machine import open_archive_store, writable_disk

if TYPE_CHECKING:
    from remote import archive
    from remote.manifest.model import Manifest
    from remote.read.context import ReadContext
    from remote.read.log import ArchivedLog
    from remote.segment_bytes import SegmentBytes
    from remote.store.api import ObjectStore
    from tiering.restore.plan import RestorePlan, RestoreStep
    from tiering.restore.run import RestoreResult
    from tiering.restore.target import RestoreTarget

Failure = LogError
NOTHING = "it was deleted there, or had no inactive segment so far"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering restore`."""

    archive_url: str
    folder: str
    topics: tuple[str, ...]
    until_offset: int | None
    until_ms: int | None
    topic_ids: dict[str, str]
    from_ids: dict[str, str]
    cluster_id: str | None
    node_id: int | None
    keys_address: str | None
    dry_run: bool
    output: str


@click.command("restore")
@archive_option(required=True)
@click.option(
    "--to", "folder", required=True, callback=named, shell_complete=folders, metavar="DIR", help="The log directory to write."
)
@topics_option()
@click.option("--until-offset", type=Number(), metavar="N", help="Restore only records before offset N, in each partition.")
@click.option(
    "--until-timestamp",
    "until_ms",
    type=quantities.time(),
    metavar="TIME",
    help="Restore only records before the first one at or after TIME: ms since 1970, 2026-11-20T10:00Z or -2h.",
)
@click.option(
    "--topic-id",
    "topic_ids",
    multiple=True,
    callback=by_topic,
    metavar="TOPIC=ID",
    help="The topic's id in the target cluster; may be given several times. Default: the archived id.",
)
@click.option(
    "--from-topic-id",
    "from_ids",
    multiple=True,
    callback=by_topic,
    metavar="TOPIC=ID",
    help="If several archived topics have had this name, the one with this id; may be given several times.",
)
@click.option("--cluster-id", callback=named, metavar="ID", help="Write meta.properties for this cluster; needs --node-id.")
@click.option("--node-id", type=Number(0, INT32_MAX), metavar="ID", help="The broker's id in meta.properties.")
@keys_option()
@dry_run_option
@output_option()
@reports_errors
def command(**given: Any) -> Exit | None:
    """Write archived partitions as a log directory, DIR, that a Kafka broker starts on.

    Segments, indexes and snapshots are the archived ones, byte for byte and verified; they are rebuilt, at a batch boundary,
    only if replicas' segments overlap or a limit cuts one. Partitions of which nothing is archived come without records. An
    interrupted restore continues when it is run again; until it is complete, no broker starts on DIR. Other files in DIR stay.
    Topics of which nothing is archived, such as deleted ones, are reported; a --topic that matches only those is a failure.

    A broker keeps a partition only if its cluster has a topic with the id in partition.metadata: restore into the original
    cluster, or create the topic in the new one, stop the broker, and pass the new id with --topic-id. Set the topic's
    retention.ms and retention.bytes first: a broker deletes older records immediately. meta.properties (see kafka-storage
    format) is written only with --cluster-id and --node-id.

    Transactions that are undecided at a limit stay open until they are aborted (kafka-transactions abort).

    \b
    Examples:
      tiering restore --archive s3://bucket/kafka --to /var/lib/kafka
      tiering restore --archive s3://bucket/kafka --to /var/lib/kafka --topic orders --until-timestamp 1767225600000
    """
    from tiering.restore.target import UNFINISHED, open_target
    from tiering.wiring import open_reading

    options = Options(**given)
    _refuse_contradictions(options)
    reading = open_reading(None, 0, None, options.keys_address)
    store = _opened(options, path := options.folder.rstrip("/") or "/")
    plans, failures = _plans(store, reading, options)
    if options.dry_run:
        emit((_row(plan, step) for plan in plans for step in plan.steps()), options.output)
        return exit_code_of_all(failures, partly=bool(plans))
    with open_target(writable_disk(), path) as target:
        if options.cluster_id is not None and options.node_id is not None:
            target.write_properties(options.cluster_id, options.node_id)
        staged, errors = _run(plans, reading.source(store), target, options.output)
        unfinished = f"{path}/{UNFINISHED}"
        if target.disk.exists(unfinished):
            say(f"tiering: {unfinished} contains an incomplete restore; run the same command again, or remove it to abandon it")
    return exit_code_of_all([*failures, *errors], partly=staged)


def _opened(options: Options, path: str) -> "ObjectStore":
    """The archive's store. Raises BadParameter if the archive and the folder are inside each other."""
    from remote import archive
    from tiering.log_dirs import log_dir
    from tiering.wiring import shares_a_folder

    store = open_archive_store(options.archive_url, options.keys_address)
    archive.open_archive(store)
    if shares_a_folder(log_dir(path), store):
        raise click.BadParameter(f"{store.url} and {path} are inside each other; give a folder outside", param_hint="--to")
    return store


def _refuse_contradictions(options: Options) -> None:
    if options.until_offset is not None and options.until_ms is not None:
        raise click.UsageError("give --until-offset or --until-timestamp, not both")
    if (options.cluster_id is None) != (options.node_id is None):
        raise click.UsageError("give both --cluster-id and --node-id, or neither")


def _wanted(store: "ObjectStore", topics: tuple[str, ...], from_ids: dict[str, str]) -> "Iterator[archive.ArchivedTopic]":
    from remote import archive

    wanted = archive.matching_topics(store, topics)
    tell_unmatched(topics, wanted, store.url)
    tell_unmatched(from_ids, wanted, store.url, "--from-topic-id")
    if not wanted:
        raise NotFound(f"the archive {store.url} holds no topic yet: offload to it first")
    for name in wanted:
        topic = archive.find_topic(store, name, from_ids.get(name))
        if name in from_ids:
            archive.require_partitions(store, topic)
        if topic.warning is not None:
            warn(topic.warning)
        yield topic


def _plans(store: "ObjectStore", reading: "ReadContext", options: Options) -> "tuple[list[RestorePlan], list[Failure]]":
    from remote.manifest.entries import Entries
    from remote.manifest.model import Manifest
    from remote.read.log import ArchivedLog
    from tiering.restore.plan import plan_restore

    plans: list[RestorePlan] = []
    failures: list[Failure] = []
    topics = [*_wanted(store, options.topics, options.from_ids)]
    there = {topic.name for topic in topics if topic.partitions}
    if not there:
        raise NotFound(f"nothing of {listed(topic.name for topic in topics)} is in the archive {store.url}: {NOTHING}")
    for topic in topics:
        if topic.name not in there:
            missing = NotFound(f"nothing of {topic.name} is in the archive {store.url}: {NOTHING}")
            failures.append(missing) if _is_asked_for(topic.name, options.topics, there) else say(f"tiering: {missing}")
        for manifest in topic.partitions.values():
            if not isinstance(manifest, Manifest):
                failures.append(manifest)
                continue
            try:
                limit = options.until_offset
                if options.until_ms is not None:
                    limit = _offset_at(ArchivedLog(store, manifest, reading=reading), options.until_ms)
                plans.append(plan_restore(Entries.of(store, manifest), limit, options.topic_ids))
            except LogError as e:
                failures.append(e)
        plans += [plan_restore(Entries.of(store, manifest), None, options.topic_ids) for manifest in _empty(store, topic)]
    for failure in failures:
        say(f"tiering: {failure}")
    return plans, failures


def _is_asked_for(name: str, globs: tuple[str, ...], there: set[str]) -> bool:
    """Whether one of the globs matches this topic, of which nothing is there, and none of those that are."""
    return any(fnmatchcase(name, glob) and not any(fnmatchcase(other, glob) for other in there) for glob in globs)


def _empty(store: "ObjectStore", topic: "archive.ArchivedTopic") -> "Iterator[Manifest]":
    """The partitions of an archived topic of which nothing was copied: without them it would have fewer, and keys and groups
    would be looked for in others."""
    from remote.archive import partition_paths_of
    from remote.manifest.losses import has_nothing_for_readers
    from remote.manifest.store import load_newest

    for path in partition_paths_of(store, topic.name, topic.topic_id) if topic.partitions else ():
        stored = load_newest(store, path) if path.partition not in topic.partitions else None
        if stored is not None and has_nothing_for_readers(stored.manifest) and not stored.manifest.is_deleted:
            yield stored.manifest


def _offset_at(log: "ArchivedLog", until_ms: int) -> int | None:
    found = log.offset_for_time(until_ms, log.log_start_offset, log.end_offset, fail_on_data_loss=False)
    return None if found is None else found.offset


def _run(plans: "list[RestorePlan]", source: "SegmentBytes", target: "RestoreTarget", output: str) -> tuple[bool, list[Failure]]:
    from remote.segment.stitch import Link
    from tiering.command.progress import Work, shown
    from tiering.restore.run import restore

    results: list[RestoreResult] = []
    brought = Work(sum(plan.manifest.log_bytes for plan in plans))
    with shown("restore", lambda: brought.of_bytes, lambda: brought.done_bytes):

        def work() -> "Iterator[RestoreResult]":
            for done in restore(plans, source, target):
                if isinstance(done.step, Link):
                    brought.did(done.step.entry.log_size)
                if done.error is not None or done.staged is not None:
                    results.append(done)
                _tell(done)
                yield done

        _print(work(), output)
    errors = [done.error for done in results if done.error is not None]
    return any(done.staged for done in results), errors


def _print(work: "Iterator[RestoreResult]", output: str) -> None:
    """Prints the result of each step. The restore is completed also if the output is closed."""
    try:
        emit((_row_of(done) for done in work), output)
    except OSError:
        for _ in work:
            pass
        raise


def _tell(done: "RestoreResult") -> None:
    if done.error is not None:
        say(f"tiering: {done.error}")
    if done.ongoing:
        say(
            f"tiering: {done.plan.partition}: {done.ongoing} transactions are undecided at the end of the log; abort them "
            "(kafka-transactions abort), or nobody reads committed records behind their start"
        )


def _row(plan: "RestorePlan", step: "RestoreStep | None") -> Row:
    from remote.segment.stitch import DivergedSegment, Link, MissingOffsets

    row: dict[str, Any] = {"topic": plan.partition.topic, "partition": plan.partition.partition}
    match step:
        case Link(entry, start, end):
            action = "whole" if step.is_whole else "cut"
            return row | {"segment": start, "end_offset": end, "action": action, "bytes": entry.log_size, "reason": None}
        case MissingOffsets(start, end, reason):
            return row | {"segment": start, "end_offset": end, "action": "missing", "bytes": None, "reason": reason}
        case DivergedSegment(entry, offset):
            reason = f"its leader epoch at offset {offset} is not that of the log's lineage"
            span = {"segment": entry.base_offset, "end_offset": entry.end_offset}
            return row | span | {"action": "left out", "bytes": entry.log_size, "reason": reason}
    return row | {"segment": None, "end_offset": None, "action": None, "bytes": None, "reason": None}


def _row_of(done: "RestoreResult") -> Row:
    row = {**_row(done.plan, done.step), "downloaded": None}
    if done.staged is not None:
        row |= {"action": "complete", "segment": done.staged.log_start_offset, "end_offset": done.staged.log_end_offset}
    if done.placed is not None:
        row |= {"downloaded": done.placed.bytes, "end_offset": done.placed.end_offset}
    if done.error is not None:
        row |= {"action": "failed", "reason": str(done.error)}
    return row
