"""The rows of a split, as executors make them: Arrow in Spark's types, with the bytes that Kafka's own classes read."""

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from shutil import copytree
from typing import Any

import pyarrow as pa
import pytest
from golden_logs import expected_batches, expected_records, legacy_logs, legacy_partitions, live, record_digest
from logs_to_archive import offload_all

from local_log.errors import Corrupt
from remote.store.folder.store import FolderStore
from remote.store.open import open_store
from spark_jobs.source.options import parse
from spark_jobs.source.partitions import plan_splits
from spark_jobs.source.rows import FIELDS, _timestamps, read_split

Row = dict[str, Any]
Expected = Callable[..., list[Row]]

TOPICS = [
    "g-appendtime", "g-big", "g-codec-gzip", "g-codec-lz4", "g-codec-none", "g-codec-snappy", "g-codec-zstd", "g-compacted",
    "g-compacted-txn", "g-epochs", "g-mixed", "g-tiny", "g-trimmed", "g-txn",
]  # fmt: skip
SMALL_READS = 4096


def batches(archive: str, topic: str, columns: tuple[str, ...] = tuple(FIELDS), **options: str) -> list[pa.RecordBatch]:
    store = open_store(archive)
    asked = parse({"archive": archive, "subscribe": topic, **options})
    return [
        batch
        for split in plan_splits(store, asked)
        for batch in read_split(store, split, columns, read_committed=asked.read_committed, first_bytes=SMALL_READS)
    ]


def rows(archive: str, topic: str, columns: tuple[str, ...] = tuple(FIELDS), **options: str) -> list[Row]:
    return [row for batch in batches(archive, topic, columns, **options) for row in batch.to_pylist()]


@pytest.mark.parametrize("topic", TOPICS)
@pytest.mark.slow
def test_rows_are_the_golden_records(archive: str, expected: Expected, topic: str) -> None:
    assert rows(archive, topic) == expected(topic)


@pytest.mark.parametrize("topic", ["g-txn", "g-compacted-txn", "g-codec-none"])
def test_committed_rows_are_those_that_kafka_gave_a_committed_reader(archive: str, expected: Expected, topic: str) -> None:
    committed = set(live(f"{topic}-0")["read_committed_offsets"])
    found = rows(archive, topic, **{"kafka.isolation.level": "read_committed"})
    assert found == expected(topic, only=committed)
    assert (len(found) < len(expected(topic))) == (topic == "g-txn")


@pytest.mark.parametrize("parts", [2, 50])
def test_division_changes_no_row_of_transactions(archive: str, expected: Expected, parts: int) -> None:
    """A part's aborted transactions may start before it and end behind it."""
    committed = set(live("g-txn-0")["read_committed_offsets"])
    divided = {"minPartitions": str(parts)}
    assert rows(archive, "g-txn", **divided) == expected("g-txn")
    found = rows(archive, "g-txn", **divided, **{"kafka.isolation.level": "read_committed"})
    assert found == expected("g-txn", only=committed)


@pytest.mark.parametrize(("start", "end"), [(1, 2), (5, 1000), (1650, 1660), (2499, 2500)])
def test_bounds_inside_batches_cut_them_headers_and_all(archive: str, expected: Expected, start: int, end: int) -> None:
    bounds = {"startingOffsets": start, "endingOffsets": end}
    options = {name: json.dumps({"g-codec-none": {"0": offset}}) for name, offset in bounds.items()}
    found = rows(archive, "g-codec-none", **options)
    assert found == expected("g-codec-none", start, end)
    assert [row["offset"] for row in found] == list(range(start, end))


def test_compaction_leaves_gaps_and_not_one_row_more(archive: str, expected: Expected) -> None:
    found = [row["offset"] for row in rows(archive, "g-compacted")]
    assert found == [row["offset"] for row in expected("g-compacted")]
    assert len(found) == live("g-compacted-0")["read_uncommitted_count"]
    assert max(found) - min(found) > len(found)


def test_append_time_is_the_brokers_and_says_so(archive: str) -> None:
    assert {row["timestampType"] for row in rows(archive, "g-appendtime")} == {1}
    assert {row["timestampType"] for row in rows(archive, "g-codec-none")} == {0}


def test_older_messages_are_rows_as_sparks_kafka_source_makes_them(tmp_path: Path) -> None:
    """Magic 0 has no timestamps: -1 of type -1, which is the last millisecond before 1970."""
    folder, store = legacy_logs(tmp_path / "logs"), FolderStore(str(tmp_path / "archive"))
    offload_all(folder, store)
    for name in legacy_partitions():
        found = rows(str(tmp_path / "archive"), name.removesuffix("-0"))
        digests = []
        for row in found:
            ms = round(row["timestamp"].timestamp() * 1000)
            headers = [[text(h["key"].encode()), text(h["value"])] for h in row["headers"] or ()]
            fields = {"key": text(row["key"]), "value": text(row["value"]), "headers": headers}
            digests.append(record_digest({"offset": row["offset"], "timestamp": ms, "sequence": -1, "control": False, **fields}))
        assert tuple(digests) == expected_records(name)
        assert {row["timestampType"] for row in found} == {line["timestamp_type"] for line in expected_batches(name)}


def text(data: bytes | None) -> str | None:
    return None if data is None else b64encode(data).decode()


def test_keys_values_and_headers_tell_null_from_empty(archive: str) -> None:
    found = rows(archive, "g-codec-none")
    for column in ("key", "value"):
        assert {None, b""} < {row[column] for row in found}
    values = {header["value"] for row in found for header in row["headers"] or ()}
    assert {None, b""} < values
    assert None in [row["headers"] for row in found]
    assert [] not in [row["headers"] for row in found]


@pytest.mark.parametrize(
    "columns", [("offset",), ("value", "key"), ("timestamp", "offset"), ("headers",), ("topic", "partition"), tuple(FIELDS)]
)
def test_batches_have_the_columns_asked_for_in_that_order_and_sparks_types(archive: str, columns: tuple[str, ...]) -> None:
    found = batches(archive, "g-mixed", columns)
    assert found
    assert all(batch.schema == pa.schema([(name, FIELDS[name]) for name in columns]) for batch in found)
    assert sum(batch.num_rows for batch in found) == 2319


def test_a_flipped_bit_is_named_with_its_object(archive: str, tmp_path: Path) -> None:
    damaged = copytree(archive, tmp_path / "archive")
    segment = sorted(damaged.glob("g-codec-lz4/*/0/segments/*.log"))[1]
    body = bytearray(segment.read_bytes())
    body[len(body) // 2] ^= 1
    segment.write_bytes(body)
    with pytest.raises(Corrupt) as stopped:
        rows(str(damaged), "g-codec-lz4", ("offset",))
    assert stopped.value.file == str(segment.relative_to(damaged))
    assert 0 < stopped.value.position < len(body)


@pytest.mark.parametrize(
    ("milliseconds", "microseconds"),
    [(-1, -1000), (1_700_000_000_123, 1_700_000_000_123_000), (1_700_000_000_123_456_789, (2**63 - 1) // 1000 * 1000)],
)
def test_a_time_beyond_those_of_spark_shows_as_the_last_one(milliseconds: int, microseconds: int) -> None:
    column = _timestamps(pa.array([0, milliseconds], pa.int64()))
    assert column.type == FIELDS["timestamp"]
    assert column.cast(pa.int64()).to_pylist() == [0, microseconds]


def test_no_records_have_no_times() -> None:
    assert len(_timestamps(pa.array([], pa.int64()))) == 0
