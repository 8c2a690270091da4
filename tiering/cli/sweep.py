"""`tiering sweep`: deletes objects that no manifest names."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from local_log.errors import LogError, Unavailable
from tiering.command.exit_codes import Exit, exit_code_of_all, reports_errors
from tiering.command.options import (
    archive_option,
    ask,
    dry_run_option,
    keys_option,
    output_option,
    tell_unmatched,
    topics_option,
    waiting_option,
    yes_option,
)
from tiering.command.output import Row, emit, say
from tiering.delays import GRACE_MS
from tiering.machine import CLOCK, IDS, open_archive_store

if TYPE_CHECKING:
    from remote.store.api import ObjectStore
    from tiering.sweep import collect as sweep
    from tiering.sweep.plan import Garbage


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `tiering sweep`."""

    archive_url: str
    keys_address: str | None
    topics: tuple[str, ...]
    grace_ms: int
    dry_run: bool
    is_agreed: bool
    output: str


@click.command("sweep")
@archive_option(required=True)
@keys_option()
@topics_option()
@waiting_option("--grace-ms", GRACE_MS, "Delete only objects that are older than this, by the store's clock.")
@dry_run_option
@yes_option
@output_option()
@reports_errors
def command(**given: Any) -> Exit | None:
    """Delete leftovers of failed copies and lost commits, superseded versions of manifests, and expired pins.

    Records of writes from Spark are deleted as well, except for writes with a writeId: that id may be used again at any time,
    and must find that the write was committed.

    Objects that a manifest refers to or that a reader's pin covers are kept. Before it deletes orphaned objects, it claims the
    partition: a running offload of this partition stops, and must be run again. A dry run writes nothing, so it uses this
    machine's clock for ages.

    \b
    Examples:
      tiering sweep --archive s3://bucket/kafka --dry-run
      tiering sweep --archive s3://bucket/kafka --yes
    """
    from remote import archive

    options = Options(**given)
    work = _Work(open_archive_store(options.archive_url, options.keys_address), options.topics, options.grace_ms)
    archive.open_archive(work.store) if options.dry_run else archive.open_to_write(work.store, IDS)
    names = archive.matching_topics(work.store, options.topics)
    tell_unmatched(options.topics, names, work.store.url)
    if options.dry_run or not options.is_agreed:
        emit(work.planned(names), options.output)
        if options.dry_run:
            return work.exit_code()
        ask(f"Delete this from {work.store.url} for good?")
        work.errors.clear()
    emit(work.done(names), options.output)
    return work.exit_code()


class _Work:
    """What is to be swept, and what went wrong with it."""

    def __init__(self, store: "ObjectStore", topics: tuple[str, ...], grace_ms: int) -> None:
        self.store, self.topics, self.grace_ms = store, topics, grace_ms
        self.clock, self.ids = CLOCK, IDS
        self.errors: list[Exception] = []
        self.partitions = 0

    def exit_code(self) -> Exit | None:
        """Tells a script what to do."""
        return exit_code_of_all(self.errors, partly=len(self.errors) < self.partitions)

    def planned(self, names: tuple[str, ...]) -> Iterator[Row]:
        """A row for each object that would go."""
        from tiering.sweep import collect as sweep

        now_ms = self.clock.now_ms()
        for due in self._plans(names, now_ms):
            yield from (_row(piece, now_ms) for piece in due.all)
        for records in self._writes(names, now_ms):
            yield from (_row(piece, now_ms) for piece in records)
        if not self.topics:
            yield from (_row(piece, now_ms) for piece in sweep.strays(self.store, now_ms, self.grace_ms))

    def done(self, names: tuple[str, ...]) -> Iterator[Row]:
        """The same, each when it is gone."""
        from remote.store.store_time import store_now_ms
        from tiering.retention.expire import DELETES_MAX
        from tiering.sweep import collect as sweep
        from tiering.sweep import writes as sweep_writes

        now_ms = store_now_ms(self.store, self.ids)
        for due in self._plans(names, now_ms):
            try:
                for piece in sweep.sweep(due, self.store, self.clock, self.ids, now_ms, threads=DELETES_MAX):
                    yield _row(piece, now_ms)
            except LogError as e:
                self._failed(e)
                if isinstance(e, Unavailable):
                    return  # the others would wait for the same store
        for records in self._writes(names, now_ms):
            yield from (_row(piece, now_ms) for piece in sweep_writes.sweep(records, self.store))
        if not self.topics:
            for piece in sweep.strays(self.store, now_ms, self.grace_ms):
                sweep.sweep_stray(self.store, piece)
                yield _row(piece, now_ms)

    def _plans(self, names: tuple[str, ...], now_ms: int) -> "Iterator[sweep.SweepPlan]":
        from tiering.retention.run import paths_of
        from tiering.sweep import collect as sweep

        for path in paths_of(self.store, names):
            self.partitions += 1
            try:
                due = sweep.plan(self.store, path, now_ms, self.grace_ms)
            except Unavailable:
                raise
            except LogError as e:
                self._failed(e)
                continue
            for damaged in due.damaged_pins:
                self._failed(damaged)
            yield due

    def _writes(self, names: tuple[str, ...], now_ms: int) -> "Iterator[tuple[Garbage, ...]]":
        from tiering.sweep import writes as sweep_writes

        for topic, topic_id in sweep_writes.topic_ids(self.store, names):
            try:
                yield sweep_writes.plan(self.store, topic, topic_id, now_ms, self.grace_ms)
            except Unavailable:
                raise
            except LogError as e:
                self._failed(e)

    def _failed(self, error: Exception) -> None:
        say(f"tiering: {error}")
        self.errors.append(error)


def _row(piece: "Garbage", now_ms: int) -> Row:
    age_ms = None if piece.made_ms is None else now_ms - piece.made_ms
    return {"what": piece.kind, "key": piece.key, "bytes": piece.size, "age_ms": age_ms}
