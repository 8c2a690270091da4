"""Rows to segments: what is written is what is read, wherever batches, segments and tasks begin and end."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from written_rows import NOW_MS, SPARKS, Rows, as_stored, batch, new_archive, shape, stored

from local_log.errors import Invalid
from local_log.formats.producer_snapshot import read_producer_snapshot
from local_log.formats.record import Codec
from remote import archive
from remote.keys import PartitionPath
from remote.manifest.segment_entry import PRODUCER_SNAPSHOT
from remote.scrub.budget import RequestBudget
from remote.scrub.finding import Kind
from remote.scrub.scrub import scrub
from remote.scrub.settings import ScrubSettings
from remote.segment_bytes import StoredBytes
from spark_jobs.errors import OptionError
from spark_jobs.sink.columns import ROWS, check_columns, row_bytes, rows_of
from spark_jobs.sink.partitioner import STICKY_ROWS, Partitioner, divided
from spark_jobs.sink.placement import Move, placement
from spark_jobs.sink.task import Part, TaskSettings, write_rows

PARTITIONS = 3
COLUMNS = ("timestamp", "key", "value", "headers")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

times = st.none() | st.integers(0, 4_000_000_000_000_000).map(lambda us: EPOCH + timedelta(microseconds=us))
headers = st.none() | st.lists(
    st.fixed_dictionaries({"key": st.text(max_size=4), "value": st.none() | st.binary(max_size=4)}), max_size=2
)
rows = st.fixed_dictionaries(
    {
        "key": st.none() | st.binary(max_size=6),
        "value": st.none() | st.binary(max_size=60),
        "headers": headers,
        "partition": st.none() | st.integers(0, PARTITIONS - 1),
        "timestamp": times,
    }
)
tasks = st.lists(st.lists(st.lists(rows, max_size=12), max_size=3), min_size=1, max_size=4)


def plain(count: int, **fields: Any) -> list[dict[str, Any]]:
    row = {"key": None, "value": b"v", "headers": None, "partition": None, "timestamp": None}
    return [{**row, "value": b"value-%d" % i, **fields} for i in range(count)]


def at(ms: float) -> datetime:
    return EPOCH + timedelta(milliseconds=ms)


@settings(max_examples=60, deadline=None)
@given(tasks, st.sampled_from([*Codec]), st.integers(20, 400), st.integers(100, 3_000))
@pytest.mark.slow
def test_rows_come_back_as_records_in_the_order_of_tasks_and_rows(
    given_tasks: Any, codec: Codec, batch_bytes: int, segment_bytes: int
) -> None:
    store = new_archive()
    writing = Rows(store, partitions=PARTITIONS, of=shape(codec, batch_bytes, segment_bytes))
    done = writing.run(*[[batch(of) for of in batches] for batches in given_tasks])
    found = stored(store)
    assert sum(r.end - r.start for r in done.ranges) == sum(map(len, found.values()))
    expected: dict[int, list[Any]] = {number: [] for number in range(PARTITIONS)}
    for task, batches in enumerate(given_tasks):
        for row in (row for of in batches for row in of):
            expected[where(row, task)].append(as_stored(row))
    assert {n: [{name: r[name] for name in COLUMNS} for r in records] for n, records in found.items()} == expected


def where(row: Any, task: int) -> int:
    """The partition of a row among fewer than a turn's."""
    if row["partition"] is not None:
        return int(row["partition"])
    return int(Partitioner("t", PARTITIONS, task).numbers(pa.array([row["key"]], pa.binary()), None)[0])


@pytest.mark.parametrize("codec", [*Codec])
def test_a_deep_scrub_finds_nothing_in_what_was_written(codec: Codec) -> None:
    store = new_archive()
    every = batch(plain(300, key=b"k", headers=[{"key": "h", "value": b"x"}]) + plain(300))
    Rows(store, "one", PARTITIONS, shape(codec)).run([every], [every, every], [every])
    Rows(store, "two", None, shape(codec)).run([every], [every])
    found = scrub(RequestBudget(store, None), StoredBytes, ScrubSettings(True, 1.0, 0), NOW_MS)
    assert {f.kind for f in found} == {Kind.fresh_orphan}  # what was moved, for the sweep


def test_segments_are_as_a_broker_would_have_rolled_them() -> None:
    store = new_archive()
    Rows(store, of=shape(segment_bytes=3_000)).run([batch(plain(400))])
    (manifest,) = archive.manifests(store, "rows")
    assert len(manifest.entries) == 3
    assert all(1_500 < e.log_size <= 3_000 for e in manifest.entries[:-1])
    for e in manifest.entries:
        assert [(x.epoch, x.start_offset) for x in e.leader_epochs] == [(0, e.base_offset)]
        snapshot = e.aux_ranges[PRODUCER_SNAPSHOT]
        body = store.objects[manifest.path.segment(e.aux_name)]
        assert read_producer_snapshot(body[snapshot.start : snapshot.end]) == ()
        assert {"time_index", "leader_epoch_checkpoint"} <= e.aux_ranges.keys()
    assert [(x.epoch, x.start_offset) for x in manifest.leader_epochs] == [(0, 0)]


def test_rows_of_one_task_to_a_partition_are_uploaded_once_and_those_of_others_are_moved_together() -> None:
    store = new_archive()
    writing = Rows(store, partitions=2, of=shape(segment_bytes=100_000))
    apart = [batch(plain(50, partition=number)) for number in range(2)]
    writing.run(*[[of] for of in apart])
    assert writing.moves == []
    again = Rows(store, "two", of=shape(segment_bytes=100_000))
    again.run([apart[0]], [apart[0]], [apart[0], apart[1]])
    assert [(m.base_offset, m.end_offset, len(m.entries)) for m in again.moves] == [(100, 200, 2)]
    assert [len(records) for records in stored(store).values()] == [200, 100]


def test_a_task_that_is_run_twice_counts_once() -> None:
    store = new_archive()
    writing = Rows(store, partitions=2)
    first, twin = (writing.task(0, [batch(plain(40))]) for _ in range(2))
    assert {e.segment_id for part in first.parts for e in part.entries}.isdisjoint(
        e.segment_id for part in twin.parts for e in part.entries
    )
    writing.commit([twin, writing.task(1, [batch(plain(2, partition=1))])])
    assert sum(map(len, stored(store).values())) == 42


def test_a_retried_task_sends_every_row_where_it_went_before() -> None:
    store = new_archive()
    writing = Rows(store, partitions=PARTITIONS)
    every = [batch(plain(STICKY_ROWS)), batch(plain(30, key=b"k")), batch(plain(STICKY_ROWS))]
    first, again = (writing.task(7, every) for _ in range(2))

    def counts(task: Any) -> dict[PartitionPath, list[tuple[int, int, int]]]:
        return {p.path: [(e.base_offset, e.end_offset, e.log_crc32c) for e in p.entries] for p in task.parts}

    assert counts(first) == counts(again)


def test_rows_without_a_key_take_turns_and_tasks_begin_with_different_partitions() -> None:
    keys = pa.nulls(3 * STICKY_ROWS, pa.binary())
    numbers = [Partitioner("t", PARTITIONS, task).numbers(keys, None) for task in range(2)]
    assert np.bincount(numbers[0]).tolist() == [STICKY_ROWS] * 3
    assert [n[0] for n in numbers] == [0, 1]


def test_a_partition_that_is_not_there_is_refused_by_name() -> None:
    writing = Rows(new_archive(), partitions=PARTITIONS)
    with pytest.raises(Invalid, match=r"Invalid partition given with record: 3 is not in the range \[0...3\) of topic rows"):
        writing.task(0, [batch(plain(1, partition=3))])


def test_a_record_larger_than_a_batch_has_one_of_its_own() -> None:
    store = new_archive()
    Rows(store, of=shape(batch_bytes=100)).run([batch([*plain(3), *plain(1, value=b"x" * 900), *plain(3)])])
    assert [len(r["value"]) for r in stored(store)[0]] == [7, 7, 7, 900, 7, 7, 7]


@pytest.mark.parametrize(("time", "ms"), [(at(12), 12), (at(12.999), 12), (at(-1), -1), (at(-0.5), -1), (None, NOW_MS)])
def test_times_are_cut_to_milliseconds(time: datetime | None, ms: int) -> None:
    assert rows_of(batch(plain(1, timestamp=time)), NOW_MS).column("timestamp").to_pylist() == [ms]


def test_a_time_before_1970_is_refused_as_kafka_does() -> None:
    with pytest.raises(Invalid, match=r"Invalid timestamp: -2\. Timestamp should always be non-negative or null"):
        rows_of(batch(plain(1, timestamp=at(-2))), NOW_MS)


@given(st.lists(rows, min_size=1, max_size=10), st.integers(0, 9))
def test_sliced_batches_are_taken_as_they_are(of: Any, skip: int) -> None:
    skip = min(skip, len(of))
    sliced = rows_of(batch(of).slice(skip), NOW_MS)
    assert sliced.schema == ROWS
    assert sliced.to_pylist() == [as_stored(row) for row in of[skip:]]
    sizes = [
        8 + len(r["key"] or b"") + len(r["value"] or b"")
        + sum(2 + len(h["key"]) + len(h["value"] or b"") for h in as_stored(r)["headers"])
        for r in of[skip:]
    ]  # fmt: skip
    assert row_bytes(sliced).tolist() == sizes


def test_a_header_without_a_key_is_refused() -> None:
    with pytest.raises(Invalid, match="a header without a key"):
        rows_of(batch(plain(1, headers=[{"key": None, "value": b"x"}])), NOW_MS)


def test_rows_are_divided_in_their_order() -> None:
    numbers = np.array([2, 0, 2, 1, 0], np.int32)
    found = {n: [r["value"] for r in part.to_pylist()] for n, part in divided(rows_of(batch(plain(5)), NOW_MS), numbers)}
    assert found == {0: [b"value-1", b"value-4"], 1: [b"value-3"], 2: [b"value-0", b"value-2"]}


def test_a_column_says_the_topic_of_each_row() -> None:
    store = new_archive()
    schema = SPARKS.append(pa.field("topic", pa.string()))
    both = batch([{**row, "topic": f"rows{i % 2}"} for i, row in enumerate(plain(20))], schema)
    writing = Rows(store, topic="rows0")
    open_ended = TaskSettings(None, 2, NOW_MS, writing.shape)
    task = write_rows([both], open_ended, 0, writing.upload)
    assert [t.name for t in task.topics] == ["rows0", "rows1"]
    assert {p.path.topic: sum(e.record_count for e in p.entries) for p in task.parts} == {"rows0": 10, "rows1": 10}
    with pytest.raises(Invalid, match=r"null topic present in the data\. Use the topic option"):
        write_rows([batch([{**plain(1)[0], "topic": None}], schema)], open_ended, 0, writing.upload)


@pytest.mark.parametrize(
    ("types", "message"),
    [
        ({"key": "binary"}, "topic option required when no 'topic' attribute is present"),
        ({"topic": "string"}, "Required attribute 'value' not found"),
        ({"topic": "int", "value": "string"}, "topic attribute unsupported type int. topic must be a.n. string"),
        ({"topic": "string", "value": "int"}, "value attribute unsupported type int. value must be a.n. string or binary"),
        ({"topic": "string", "value": "string", "partition": "bigint"}, "partition attribute unsupported type bigint"),
        ({"topic": "string", "value": "string", "headers": "map<string,string>"}, "headers attribute unsupported type"),
        ({"topic": "string", "value": "string", "timestamp": "bigint"}, "timestamp attribute unsupported type bigint"),
    ],
)
def test_columns_that_will_not_do_are_refused_in_the_words_of_sparks_kafka_sink(types: dict[str, str], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        check_columns(types, None)


def test_the_option_topic_comes_before_the_column() -> None:
    check_columns({"topic": "int", "value": "string"}, "rows")


@settings(max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3)), min_size=1, max_size=6), st.integers(0, 5))
def test_placement_gives_every_staged_segment_its_place_and_no_offset_twice(of: Any, moved_end: int) -> None:
    store = new_archive()
    writing = Rows(store, partitions=PARTITIONS, of=shape(segment_bytes=600))
    staged = [writing.task(n, [batch(plain(10 * count, partition=p))]) for n, (p, count) in enumerate(of)]
    parts: list[Part] = [part for task in staged for part in task.parts]
    now = {p.path: replace(p, end_offset=moved_end) for p in writing.topic.partitions}
    for path, steps in placement(parts, now, 600).items():
        ends = [moved_end]
        for step in steps:
            assert step.base_offset == ends[-1]
            ends.append(step.end_offset)
        placed = [e for step in steps for e in (step.entries if isinstance(step, Move) else (step,))]
        assert placed == [e for part in parts if part.path == path for e in part.entries]
        assert all(sum(e.log_size for e in s.entries) <= 600 for s in steps if isinstance(s, Move) and len(s.entries) > 1)
