"""`tiering delete-topic`: deletes a topic from the archive, by its id."""

import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import (
    archive_option,
    ask,
    dry_run_option,
    is_given,
    keys_option,
    named,
    output_option,
    topic_option,
    waiting_option,
    yes_option,
)
from tiering.command.output import Row, emit, say
from tiering.delays import DELETE_DELAY_MS
from tiering.machine import CLOCK, IDS, open_archive_store

if TYPE_CHECKING:
    from remote.manifest.model import Manifest
    from remote.store.api import ObjectStore

WRITER = "delete-topic"


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering delete-topic`."""

    archive_url: str
    keys_address: str | None
    topic: str
    topic_id: str | None
    delay_ms: int
    dry_run: bool
    is_agreed: bool
    output: str


@click.command("delete-topic")
@archive_option(required=True)
@keys_option()
@topic_option()
@click.option("--topic-id", callback=named, metavar="ID", help="The topic's id; required if several topics have had this name.")
@waiting_option("--delay-ms", DELETE_DELAY_MS, "How long objects are kept for readers.")
@dry_run_option
@yes_option
@output_option()
@reports_errors
def command(**given: Any) -> Exit | None:
    """Delete a topic from the archive: immediately for readers and writers, and its objects after a delay.

    It deletes the topic with this id. A late offload of it is rejected; an offload of a new topic with the same name is not.
    After the delay run it again with --topic-id, as it prints, or run `tiering expire`; `tiering sweep` deletes the rest. Once
    a second topic has had the name, --topic-id is required.

    \b
    Examples:
      tiering delete-topic --archive s3://bucket/kafka --topic orders --dry-run
      tiering delete-topic --archive s3://bucket/kafka --topic orders --yes
    """
    from remote import archive
    from tiering.retention import delete_topic

    options = Options(**given)
    store = open_archive_store(options.archive_url, options.keys_address)
    archive.open_archive(store) if options.dry_run else archive.open_to_write(store, IDS)
    found = delete_topic.partitions(store, options.topic, options.topic_id)
    if options.dry_run:
        emit(_planned(store, found, options.delay_ms), options.output)
        return None
    if not options.is_agreed:
        emit(_planned(store, found, options.delay_ms), options.output)
        ask(f"Delete topic {options.topic} ({found[0].topic_id}) from {store.url} for good?")
    errors: list[Exception] = []
    emit(_done(store, found, options.delay_ms, errors), options.output)
    if any(not m.is_deleted for m in found):
        say(f"tiering: after the delay, delete the objects of topic {options.topic}: {_again(options, found[0].topic_id)}")
    return exit_code_of_all(errors, partly=len(errors) < len(found))


def _again(options: Options, topic_id: str) -> str:
    """The command that deletes the objects after the delay: of this topic, whatever has its name then."""
    words = ["tiering", "delete-topic", "--archive", options.archive_url, "--topic", options.topic, "--topic-id", topic_id]
    if options.keys_address is not None and is_given("keys_address"):
        words += ["--keys", options.keys_address]
    if is_given("delay_ms"):
        words += ["--delay-ms", str(options.delay_ms)]
    return shlex.join([*words, "--yes"])


def _planned(store: "ObjectStore", found: "Iterable[Manifest]", delay_ms: int) -> Iterator[Row]:
    """A row for what each partition has to read, or, once it is deleted, for what becomes of its objects."""
    from tiering.retention import expire as retention
    from tiering.retention.plan import Policy
    from tiering.retention.run import row, rows_of

    now_ms = CLOCK.now_ms()
    for m in found:
        if m.is_deleted:
            yield from rows_of(m.path, retention.plan(m, store, Policy(delete_delay_ms=delay_ms), now_ms))
        else:
            yield row(m.path, "expire", m.log_start_offset, m.end_offset, m.segment_count, m.log_bytes, "the topic is deleted")


def _done(store: "ObjectStore", found: "Iterable[Manifest]", delay_ms: int, errors: list[Exception]) -> Iterator[Row]:
    """The same rows, each when it is done."""
    from remote.store.store_time import StoreRun
    from tiering.retention import delete_topic
    from tiering.retention import expire as retention
    from tiering.retention.plan import Policy
    from tiering.retention.run import row

    run = StoreRun(store, CLOCK, IDS)
    for m in found:
        rows = [*_planned(store, [m], delay_ms)]
        if m.is_deleted:
            due = retention.plan(m, store, Policy(delete_delay_ms=delay_ms), run.now_ms())
            done = retention.Expired(0, m.log_start_offset)
            if not due.is_empty:
                done = retention.expire(due, run, WRITER, threads=retention.DELETES_MAX)
        else:
            done = delete_topic.delete_partition(m, run, WRITER)
        if done.error is None:
            yield from rows
            continue
        say(f"tiering: {done.error}")
        errors.append(done.error)
        yield row(m.path, "refused", None, None, 0, 0, str(done.error))
