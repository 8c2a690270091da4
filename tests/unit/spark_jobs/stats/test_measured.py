"""Splits counted: equal to what Kafka's own classes read in the golden logs, and the same however the log is cut."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from golden_logs import broker_logs, expected_batches, expected_records, legacy_logs, legacy_partitions, live
from hypothesis import given, settings
from hypothesis import strategies as st
from logs_to_archive import cut_finer, offload_all, roll

from local_log.errors import Corrupt
from local_log.formats.record import Codec
from remote.store.folder.store import FolderStore
from remote.store.open import open_store
from spark_jobs.source.options import parse
from spark_jobs.source.partitions import Split, plan_splits
from spark_jobs.stats.measured import measure
from spark_jobs.stats.sums import HOUR_MS, PartitionSums, merged

Row = dict[str, Any]
Expected = Callable[..., list[Row]]

TOPICS = [
    "g-appendtime", "g-big", "g-codec-gzip", "g-codec-lz4", "g-codec-none", "g-codec-snappy", "g-codec-zstd", "g-compacted",
    "g-compacted-txn", "g-epochs", "g-mixed", "g-tiny", "g-trimmed", "g-txn",
]  # fmt: skip


def splits_of(archive: str, topic: str) -> tuple[Split, ...]:
    return plan_splits(open_store(archive), parse({"archive": archive, "subscribe": topic}))


def sums_of(archive: str, topic: str, *, with_records: bool = True) -> PartitionSums:
    store = open_store(archive)
    return merged(measure(store, split, with_records=with_records) for split in splits_of(archive, topic))


def hour(timestamp_ms: int) -> int | None:
    return None if timestamp_ms < 0 else timestamp_ms - timestamp_ms % HOUR_MS


def milliseconds(row: Row) -> int:
    return round(row["timestamp"].timestamp() * 1000)


def archived_batches(topic: str) -> list[Row]:
    """What Kafka's classes read in the headers of the archived batches."""
    start, end = live(f"{topic}-0")["earliest"][0], 2744 if topic == "g-txn" else 1 << 62
    return [b for b in expected_batches(f"{topic}-0") if start <= b["last_offset"] < end]


def by_hour(sums: PartitionSums, field: str) -> dict[int | None, Any]:
    return {h: value for h, of in sums.hours.items() if (value := getattr(of, field))}


@pytest.mark.parametrize("topic", TOPICS)
def test_batches_are_those_of_kafkas_dump(archive: str, topic: str) -> None:
    sums, dumped = sums_of(archive, topic), archived_batches(topic)
    data = [b for b in dumped if not b["control"]]
    stored, batches = Counter[int | None](), Counter[int | None]()
    for b in data:
        stored[hour(b["max_timestamp"])] += b["size"]
        batches[hour(b["max_timestamp"])] += 1
    assert by_hour(sums, "stored_bytes") == stored
    assert by_hour(sums, "batches") == batches
    assert sums.total.codecs == Counter(Codec[b["codec"]] for b in data)
    assert sums.total.producers == {b["producer_id"] for b in data} - {-1}
    assert sums.of.control_records == sum(b["count"] for b in dumped if b["control"])


@pytest.mark.parametrize("topic", TOPICS)
def test_records_are_those_of_kafkas_dump(archive: str, expected: Expected, topic: str) -> None:
    sums, rows = sums_of(archive, topic), expected(topic)
    sizes = [len(r["key"] or b"") + len(r["value"] or b"") for r in rows]
    total = sums.total
    assert by_hour(sums, "records") == Counter(hour(milliseconds(r)) for r in rows)
    assert (total.records, total.record_bytes) == (len(rows), sum(sizes))
    assert (total.record_bytes_min, total.record_bytes_max) == (min(sizes, default=None), max(sizes, default=0))
    assert total.null_keys == sum(r["key"] is None for r in rows)
    assert total.null_values == sum(r["value"] is None for r in rows)
    end = 2744 if topic == "g-txn" else live(f"{topic}-0")["latest"][0]
    assert sums.of.offsets == end - live(f"{topic}-0")["earliest"][0]
    assert sums.missing_offsets == sums.of.offsets - len(rows) - sums.of.control_records
    assert (sums.missing_offsets > 0) == topic.startswith("g-compacted")


def varint_bytes(value: int) -> int:
    zigzag = value << 1 if value >= 0 else ~(value << 1)
    return max(1, -(-zigzag.bit_length() // 7))


def encoded_bytes(row: Row, offset_delta: int, timestamp_delta: int) -> int:
    """What a record takes in an uncompressed batch, by the table of fields in Kafka's DefaultRecord."""

    def field(value: bytes | None) -> int:
        return varint_bytes(-1) if value is None else varint_bytes(len(value)) + len(value)

    headers = row["headers"] or []
    size = 1 + varint_bytes(timestamp_delta) + varint_bytes(offset_delta) + field(row["key"]) + field(row["value"])
    size += varint_bytes(len(headers)) + sum(field(h["key"].encode()) + field(h["value"]) for h in headers)
    return varint_bytes(size) + size


@pytest.mark.parametrize("topic", [t for t in TOPICS if t.startswith("g-codec")])
def test_decoded_bytes_are_those_of_the_same_batches_without_a_codec(archive: str, expected: Expected, topic: str) -> None:
    rows = {r["offset"]: r for r in expected(topic)}
    size = 0
    for batch in archived_batches(topic):
        records = [rows[o] for o in range(batch["base_offset"], batch["last_offset"] + 1)]
        base = milliseconds(records[0])
        size += 61 + sum(encoded_bytes(r, r["offset"] - batch["base_offset"], milliseconds(r) - base) for r in records)
    total = sums_of(archive, topic).total
    assert total.decoded_bytes == size
    assert (total.decoded_bytes > total.stored_bytes) == (topic != "g-codec-none")


@pytest.mark.parametrize("topic", [t for t in TOPICS if t != "g-trimmed"])
def test_headers_alone_give_the_same_but_for_what_only_records_tell(archive: str, topic: str) -> None:
    whole, headers = sums_of(archive, topic).total, sums_of(archive, topic, with_records=False).total
    of_records = dict.fromkeys(("decoded_bytes", "null_keys", "null_values", "record_bytes", "record_bytes_max"), 0)
    assert headers == replace(whole, **of_records, record_bytes_min=None)


def test_headers_alone_count_all_records_of_a_batch_that_the_start_of_the_log_cuts(archive: str) -> None:
    whole, headers = (sums_of(archive, "g-trimmed", with_records=with_records) for with_records in (True, False))
    start = live("g-trimmed-0")["earliest"][0]
    [cut] = [b for b in archived_batches("g-trimmed") if b["base_offset"] < start]
    assert headers.total.records - whole.total.records == start - cut["base_offset"]


@pytest.fixture(scope="module")
def legacy(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("legacy")
    logs = legacy_logs(folder / "logs")
    for name in legacy_partitions():
        roll(logs, name)
    offload_all(logs, FolderStore(str(folder / "archive")))
    return str(folder / "archive")


@pytest.mark.parametrize("partition", legacy_partitions())
def test_messages_of_magic_0_and_1_count_as_batches(legacy: str, partition: str) -> None:
    topic = partition.removesuffix("-0")
    sums, splits = sums_of(legacy, topic), splits_of(legacy, topic)
    end = max(split.span.end for split in splits)
    dumped = [b for b in expected_batches(partition) if b["last_offset"] < end]
    assert (sums.total.batches, sums.total.stored_bytes) == (len(dumped), sum(b["size"] for b in dumped))
    assert sums.total.codecs == Counter(Codec[b["codec"]] for b in dumped)
    assert sums.of.offsets == end - splits[0].span.start
    assert sums.total.records == len(expected_records(partition)) - sum(b["count"] for b in dumped if b["control"])
    assert (None in sums.hours) == any(b["max_timestamp"] < 0 for b in dumped)
    if all(b["codec"] == "none" for b in dumped):
        assert sums.total.decoded_bytes == sums.total.stored_bytes
    assert sums_of(legacy, topic, with_records=False).total.records == sums.total.records


@pytest.fixture(scope="module")
def finer(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Logs of many segments, with transactions, and one with holes that compaction has left."""
    folder = tmp_path_factory.mktemp("finer")
    logs = broker_logs(folder / "logs", "g-txn-0", "g-compacted-0", "g-codec-zstd-0")
    cut_finer(logs / "g-txn-0", 14)
    for partition in ("g-compacted-0", "g-codec-zstd-0"):
        roll(logs, partition)
    offload_all(logs, FolderStore(str(folder / "archive")))
    return str(folder / "archive")


@settings(max_examples=15, deadline=None)
@given(topic=st.sampled_from(["g-txn", "g-compacted", "g-codec-zstd"]), data=st.data())
def test_a_log_that_is_cut_in_any_way_has_the_same_sums(finer: str, topic: str, data: st.DataObject) -> None:
    store, whole = open_store(finer), splits_of(finer, topic)
    parts: list[Split] = []
    for split in whole:
        start, end = split.span.start, split.span.end
        borders = sorted({start, end, *data.draw(st.sets(st.integers(start, end), max_size=3))})
        for at, until in pairwise(borders):
            parts.append(replace(split, span=replace(split.span, start=at, end=until)))
    for with_records in (True, False):
        of_parts = merged(measure(store, part, with_records=with_records) for part in data.draw(st.permutations(parts)))
        assert of_parts == merged(measure(store, split, with_records=with_records) for split in whole)


def test_a_damaged_batch_is_corrupt_by_its_place(archive: str, tmp_path: Path) -> None:
    damaged = Path(copytree(archive, tmp_path / "damaged"))
    log = max(damaged.glob("g-codec-lz4/*/0/segments/*.log"))
    body = bytearray(log.read_bytes())
    body[5000] ^= 1
    log.write_bytes(body)
    with pytest.raises(Corrupt) as raised:
        sums_of(str(damaged), "g-codec-lz4")
    assert raised.value.file == str(log.relative_to(damaged))
