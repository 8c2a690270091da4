"""The three indexes of a segment: they keep the same promises, so they share the tests of them."""

import itertools
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_logs import expected_batches
from hand_made import decoded
from hypothesis import given, settings
from hypothesis import strategies as st

from local_log.errors import Corrupt
from local_log.formats.filenames import parse_offset_file
from local_log.formats.indexes import offset as offset_index
from local_log.formats.indexes import time as time_index
from local_log.formats.indexes import transaction as txn_index
from local_log.formats.indexes.offset import read_offset_index
from local_log.formats.indexes.time import read_time_index
from local_log.formats.indexes.transaction import AbortedTxn, read_txn_index, write_txn_index
from local_log.formats.record_batch.batch_v2 import scan
from local_log.formats.record_batch.projection import Projection

BASE = 1_000


def offset_entries(data: bytes) -> list[tuple[int, int]]:
    index = read_offset_index(data, BASE)
    return list(zip(index.offsets.tolist(), index.positions.tolist(), strict=True))


def time_entries(data: bytes) -> list[tuple[int, int]]:
    index = read_time_index(data, BASE)
    return list(zip(index.timestamps.tolist(), index.offsets.tolist(), strict=True))


KINDS: dict[str, tuple[Callable[[bytes], Any], int, bytes, list[Any]]] = {
    ".index": (offset_entries, 8, struct.pack(">iiii", 5, 4_096, 9, 8_192), [(BASE + 5, 4_096), (BASE + 9, 8_192)]),
    ".timeindex": (time_entries, 12, struct.pack(">qiqi", 7_000, 5, 7_001, 9), [(7_000, BASE + 5), (7_001, BASE + 9)]),
    ".txnindex": (
        lambda data: list(read_txn_index(data)),
        34,
        struct.pack(">hqqqqhqqqq", 0, 4, 10, 20, 8, 0, 5, 11, 25, 9),
        [AbortedTxn(10, 20, 4, 8), AbortedTxn(11, 25, 5, 9)],
    ),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
preallocated = pytest.mark.parametrize("kind", [".index", ".timeindex"])


def golden_files(broker: Path, kind: str) -> list[Path]:
    return sorted(broker.glob(f"*/*{kind}"))


@every_kind
def test_entries_are_read_in_order(kind: str) -> None:
    read, _, data, entries = KINDS[kind]
    assert read(data) == entries
    assert read(bytearray(data)) == entries
    assert read(memoryview(data)) == entries


@every_kind
def test_an_empty_file_is_an_index_without_entries(kind: str) -> None:
    assert KINDS[kind][0](b"") == []


@every_kind
def test_an_index_cut_inside_an_entry_is_corrupt_and_elsewhere_shorter(kind: str) -> None:
    read, size, data, entries = KINDS[kind]
    for cut in range(len(data)):
        if cut % size == 0:
            assert read(data[:cut]) == entries[: cut // size]
            continue
        with pytest.raises(Corrupt, match="truncated") as caught:
            read(data[:cut])
        assert caught.value.position == cut - cut % size


@every_kind
def test_golden_indexes_cut_at_every_byte_are_corrupt_or_shorter(broker: Path, kind: str) -> None:
    read, size, _, _ = KINDS[kind]
    largest = max(golden_files(broker, kind), key=lambda file: file.stat().st_size).read_bytes()[: 60 * size]
    whole = read(largest)
    for cut in range(len(largest)):
        try:
            assert read(largest[:cut]) == whole[: cut // size]
        except Corrupt:
            assert cut % size


@every_kind
@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_any_bytes_are_an_index_or_corrupt(kind: str, data: st.DataObject) -> None:
    read, size, _, _ = KINDS[kind]
    content = data.draw(
        st.one_of(st.binary(max_size=5 * size), st.integers(0, 4).flatmap(lambda n: st.binary(min_size=n * size)))
    )
    position = 0
    try:
        assert len(read(content)) <= len(content) // size
    except Corrupt as e:
        position = e.position
    assert 0 <= position <= len(content)


@preallocated
@pytest.mark.parametrize("zeros", [1, 7, 1_310_720])
def test_the_zeros_of_a_preallocated_file_are_no_entries(kind: str, zeros: int) -> None:
    read, size, data, entries = KINDS[kind]
    assert read(data + bytes(size * zeros)) == entries
    assert read(bytes(size * zeros)) == []


@preallocated
def test_the_first_entry_may_be_all_zeros(kind: str) -> None:
    read, size, data, entries = KINDS[kind]
    assert read(bytes(size) + data + bytes(3 * size)) == [(0, BASE) if kind == ".timeindex" else (BASE, 0), *entries]


@preallocated
def test_zeros_between_entries_are_corrupt(kind: str) -> None:
    read, size, data, _ = KINDS[kind]
    with pytest.raises(Corrupt, match="does not grow") as caught:
        read(data + bytes(size) + data)
    assert caught.value.position == 2 * size


@preallocated
def test_entries_that_fall_or_stand_still_are_corrupt_where_they_do(kind: str) -> None:
    read, size, data, _ = KINDS[kind]
    first, second = data[:size], data[size:]
    for bad in (second + first, first + first):
        with pytest.raises(Corrupt, match="does not grow") as caught:
            read(bad)
        assert caught.value.position == size


def test_a_time_index_may_repeat_the_offset_of_its_last_entry() -> None:
    assert time_entries(struct.pack(">qiqi", 7_000, 5, 7_001, 5)) == [(7_000, BASE + 5), (7_001, BASE + 5)]


def test_negative_offsets_and_positions_are_corrupt() -> None:
    for bad in (struct.pack(">ii", -1, 10), struct.pack(">ii", 1, -10)):
        with pytest.raises(Corrupt):
            read_offset_index(bad, BASE)


def test_golden_offset_indexes_point_at_or_before_the_batch_of_every_offset(broker: Path, partition: str) -> None:
    for file in (broker / partition).glob("*.index"):
        base = parse_offset_file(file.name)[0]
        index = read_offset_index(file.read_bytes(), base)
        assert len(index.offsets) == file.stat().st_size // offset_index.ENTRY.itemsize
        batches = [line for line in expected_batches(partition) if line["segment"] == f"{base:020d}.log"]
        assert set(index.positions.tolist()) <= {line["position"] for line in batches}
        for line in batches:
            for offset in (line["base_offset"], line["last_offset"]):
                assert index.lookup(offset) <= line["position"]
        # Nor do they point much too early: Kafka adds an entry every 4096 bytes or at the next batch.
        for line, after in itertools.pairwise(batches):
            assert line["position"] - index.lookup(after["base_offset"]) <= 4_096 + 2 * max(b["size"] for b in batches)


def test_golden_time_indexes_never_lead_past_a_record_as_late(broker: Path, partition: str) -> None:
    for file in (broker / partition).glob("*.timeindex"):
        base = parse_offset_file(file.name)[0]
        index = read_time_index(file.read_bytes(), base)
        assert len(index.offsets) == file.stat().st_size // time_index.ENTRY.itemsize
        buffer = file.with_suffix(".log").read_bytes()
        records = decoded(buffer, scan(buffer)[0], Projection(key=False, value=False, headers=False))
        offsets, times = records.column("offset").to_numpy(), records.column("timestamp").to_numpy()
        asked = {t + d for t in (*index.timestamps.tolist(), *times[::50].tolist()) for d in (-1, 0, 1)}
        for timestamp in asked:
            late = offsets[times >= timestamp]
            assert len(late) == 0 or index.lookup(timestamp, base) <= late[0]


def test_golden_transaction_indexes_are_written_as_they_were_read(broker: Path) -> None:
    files = golden_files(broker, ".txnindex")
    assert sum(file.stat().st_size for file in files) > 0
    for file in files:
        aborted = read_txn_index(file.read_bytes())
        assert len(aborted) == file.stat().st_size // txn_index.ENTRY.size
        assert write_txn_index(aborted) == file.read_bytes()


def test_golden_aborted_transactions_end_at_a_marker_of_their_producer(broker: Path) -> None:
    lines = expected_batches("g-txn-0")
    markers = {(line["last_offset"], line["producer_id"]) for line in lines if line["control"]}
    starts = {(line["base_offset"], line["producer_id"]) for line in lines if line["transactional"] and not line["control"]}
    for file in golden_files(broker, ".txnindex"):
        for txn in read_txn_index(file.read_bytes()):
            assert (txn.last_offset, txn.producer_id) in markers
            assert (txn.first_offset, txn.producer_id) in starts
            assert txn.last_stable_offset <= txn.last_offset + 1


int64 = st.integers(0, 2**63 - 1)


@given(st.lists(st.builds(lambda a, b, p, s: AbortedTxn(min(a, b), max(a, b), p, s), int64, int64, int64, int64), max_size=5))
def test_aborted_transactions_are_read_as_they_were_written(aborted: list[AbortedTxn]) -> None:
    assert read_txn_index(write_txn_index(aborted)) == tuple(aborted)


@pytest.mark.parametrize("kind", [".index", ".timeindex"])
def test_a_preallocated_file_that_is_cut_off_while_it_is_read_may_end_within_an_entry(kind: str) -> None:
    read, size, data, entries = KINDS[kind]
    for over in range(1, size):
        assert read(data + bytes(size + over)) == entries
        with pytest.raises(Corrupt, match="truncated"):
            read(data + bytes(over))  # nothing says that these are preallocated zeros
        with pytest.raises(Corrupt, match="truncated"):
            read(data + bytes(size) + b"\1" * over)


@pytest.mark.parametrize(("version", "first", "last"), [(1, 10, 20), (-1, 10, 20), (0, 21, 20)])
def test_a_transaction_of_another_version_or_backwards_is_corrupt(version: int, first: int, last: int) -> None:
    entry = struct.Struct(">hqqqq")
    with pytest.raises(Corrupt) as caught:
        read_txn_index(entry.pack(0, 1, 2, 3, 4) + entry.pack(version, 1, first, last, 9))
    assert caught.value.position == entry.size


columns_of_two = st.lists(
    st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1)), max_size=30, unique_by=(lambda e: e[0], lambda e: e[1])
).map(lambda entries: list(zip(sorted(e[0] for e in entries), sorted(e[1] for e in entries), strict=True)))


@given(entries=columns_of_two, near=st.integers(-2, 2), at=st.integers(0, 30))
def test_looking_up_an_offset_gives_what_a_walk_over_the_entries_gives(entries: list, near: int, at: int) -> None:
    index = read_offset_index(b"".join(struct.pack(">ii", *entry) for entry in entries), BASE)
    offset = (entries[at][0] if at < len(entries) else at) + near + BASE
    assert index.lookup(offset) == max((position for start, position in entries if start + BASE <= offset), default=0)


@given(entries=columns_of_two, near=st.integers(-2, 2), at=st.integers(0, 30))
def test_looking_up_a_timestamp_gives_what_a_walk_over_the_entries_gives(entries: list, near: int, at: int) -> None:
    index = read_time_index(b"".join(struct.pack(">qi", *entry) for entry in entries), BASE)
    timestamp = (entries[at][0] if at < len(entries) else at) + near
    assert index.lookup(timestamp, BASE) == max((offset + BASE for time, offset in entries if time < timestamp), default=BASE)
