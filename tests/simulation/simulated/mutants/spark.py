"""Faults in Spark's reads and streams, and where the simulation drives a stream as Spark does."""

from dataclasses import replace
from typing import Any

from remote.read.plan import Span
from simulated import streams
from simulated.mutants.registry import mutant
from simulated.splits import Query, Spark
from spark_jobs import live_tail
from spark_jobs.source import partitions, pinning, rows
from spark_jobs.source.partitions import Split
from spark_jobs.source.stream import plan as stream_plan
from spark_jobs.source.stream import reader


@mutant
def plan_splits_without_pins() -> None:
    create = pinning.pins.create

    def created(
        store: Any, path: Any, owner: Any, version: Any, start: Any, end: Any, lasts_ms: Any, clock: Any, ids: Any
    ) -> Any:
        if owner == "reader":
            return create(store, path, owner, version, start, end, lasts_ms, clock, ids)
        return pinning.Pin(ids.new_id(), owner, version, start, end, clock.now_ms(), clock.now_ms() + lasts_ms)

    pinning.pins.create = created


@mutant
def pin_what_retention_has_given_up() -> None:
    pinning._is_given_up = lambda store, read: False


@mutant
def drop_the_last_offset_of_a_split_that_is_cut() -> None:
    def cut(split: Split, sizes: Any) -> Any:
        start, sizes = split.span.start, [*sizes]
        for size in sizes:
            end = start + size - (len(sizes) > 1 and size > 1)
            yield Split(split.manifest, replace(split.span, start=start, end=end))
            start += size

    partitions._divided = cut


@mutant
def give_batches_at_the_boundary_to_both_splits() -> None:
    def cut(split: Split, sizes: Any) -> Any:
        start = split.span.start
        for size in sizes:
            yield Split(split.manifest, replace(split.span, start=max(start - 1, split.span.start), end=start + size))
            start += size

    partitions._divided = cut


@mutant
def read_overlaps_in_two_splits() -> None:
    def every(manifest: Any, entries: Any, start: int, end: int, **options: Any) -> Any:
        return tuple(Span(e, max(start, e.base_offset), min(end, e.end_offset)) for e in entries)

    partitions.fetch_plan = every


@mutant
def show_records_of_aborted_transactions_in_splits() -> None:
    rows_of = rows._rows
    rows._rows = lambda log, split, columns, read_committed: rows_of(log, split, columns, False)


@mutant
def count_the_rows_of_a_twin_too() -> None:
    takes = Spark._takes

    def both(self: Spark, actor: Any, query: Query, number: int, found: Any) -> None:
        if number in query.rows and len(query.rows) < len(query.tasks):
            query.rows[number] = [*query.rows[number], *found]
        else:
            takes(self, actor, query, number, found)

    Spark._takes = both  # type: ignore[method-assign]


@mutant
def end_the_rows_of_a_split_where_its_segment_is_deleted() -> None:
    read_split = rows.read_split

    def lenient(*args: Any, **options: Any) -> Any:
        return read_split(*args, **{**options, "fail_on_data_loss": False})

    streams.run_task.__globals__["read_split"] = lenient


@mutant
def commit_a_batch_before_the_sink_has_it() -> None:
    put = streams._Logs.put

    def commits_first(self: Any, log: str, number: int, body: bytes, **options: Any) -> None:
        if log == "sink":
            put(self, "commits", number, b"")
        if log != "commits":
            put(self, log, number, body, **options)

    streams._Logs.put = commits_first  # type: ignore[method-assign]


@mutant
def begin_a_stream_again_where_it_would_begin_now() -> None:
    reader.decode_start = lambda start, end: reader.decode(start)


@mutant
def pass_over_what_retention_has_deleted_before_a_stream() -> None:
    ranges = reader.ranges
    reader.ranges = lambda *given, fail_on_data_loss: ranges(*given, fail_on_data_loss=False)


@mutant
def take_a_topic_that_is_made_again_for_the_first_one() -> None:
    decode = reader.decode

    def of_any(encoded: Any) -> Any:
        return {replace(path, topic_id="T" * 22): offset for path, offset in decode(encoded).items()}

    newest, decode_start = reader.newest, reader.decode_start
    reader.decode = of_any
    reader.decode_start = lambda start, end: {replace(p, topic_id="T" * 22): o for p, o in decode_start(start, end).items()}
    reader.newest = lambda *args: {replace(path, topic_id="T" * 22): m for path, m in newest(*args).items()}


@mutant
def end_a_stream_at_the_archive_of_its_first_question() -> None:
    newest, known = reader.newest, dict[int, Any]()

    def first(store: Any, *args: Any) -> Any:
        return known.setdefault(id(store), newest(store, *args))

    reader.newest = first


@mutant
def go_on_with_a_stream_from_the_end_that_was_planned_and_not_read() -> None:
    ends = stream_plan.ends
    reader.ends = lambda manifests, start, stop_at: {p: o + 1 for p, o in ends(manifests, start, stop_at).items()}


@mutant
def take_a_tail_over_where_the_log_ends() -> None:
    live_tail.take_over = lambda topic, manifests, *, lenient: {n: end for n, (_, end) in topic.offsets.items()}


@mutant
def resolve_the_boundary_of_a_tail_at_each_start() -> None:
    live_tail.kept = lambda store, topics, resolve: resolve()
