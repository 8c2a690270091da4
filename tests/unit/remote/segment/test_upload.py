"""One segment's way into the archive: what is stored, verified before anyone may name it, and what a failure leaves."""

import struct
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import (
    Corrupts,
    CountingIds,
    FailsBefore,
    FixedClock,
    KeepsNoChecksum,
    LosesAnswer,
    MemoryStore,
    Nth,
    SleptClock,
    verbs,
)
from crc32c import crc32c
from made_manifests import PATH
from segments_to_copy import PARTITIONS, copy, flipped, with_body

from local_log.errors import Corrupt, NotFound, Unavailable, Unknown
from local_log.formats.checkpoints import EpochEntry, read_epochs
from local_log.formats.indexes.time import read_time_index
from local_log.formats.indexes.transaction import AbortedTxn, read_txn_index
from local_log.formats.record_batch.batch_v2 import Batches, scan
from remote.keys import segment_name
from remote.manifest.segment_entry import (
    ABORTED_LATER,
    LEADER_EPOCH_CHECKPOINT,
    LEAST_TIME_INDEX,
    OFFSET_INDEX,
    PRODUCER_SNAPSHOT,
    TIME_INDEX,
    TRANSACTION_INDEX,
)
from remote.segment.check import LogSegmentData, check_log
from remote.segment.repair import checked_copy
from remote.segment.upload import PART_BYTES, copy_segment, verify
from remote.store.api import ObjectStore
from remote.store.retrying import Retrying

# what is stored


def aborted_later(segment: LogSegmentData) -> tuple[AbortedTxn, ...]:
    return segment.aborted_later(check_log(segment).open_transactions)


@pytest.mark.parametrize("partition", PARTITIONS)
def test_the_objects_hold_the_segments_files_byte_for_byte(inactive: dict[str, list[LogSegmentData]], partition: str) -> None:
    assert inactive[partition]
    for one in inactive[partition]:
        store = MemoryStore()
        entry = copy(store, one)
        log, aux = store.objects[PATH.segment(entry.log_name)], store.objects[PATH.segment(entry.aux_name)]
        assert log == Path(one.path).read_bytes()
        parts = {name: aux[r.start : r.end] for name, r in entry.aux_ranges.items()}
        files = {
            OFFSET_INDEX: one.offset_index.body,
            TIME_INDEX: one.time_index.body,
            TRANSACTION_INDEX: one.txn_index.body if one.txn_index else b"",
            PRODUCER_SNAPSHOT: one.producer_snapshot.body if one.producer_snapshot else b"",
        }
        assert {name: parts.pop(name, b"") for name in files} == files
        assert read_epochs(parts.pop(LEADER_EPOCH_CHECKPOINT)) == one.lineage
        assert read_txn_index(parts.pop(ABORTED_LATER, b"")) == aborted_later(one)
        assert read_time_index(parts.pop(LEAST_TIME_INDEX), one.base_offset).timestamps[0] == entry.min_timestamp_ms
        assert parts == {}
        assert sum(r.end - r.start for r in entry.aux_ranges.values()) == len(aux)


def test_the_entry_says_what_is_in_the_objects(segment: LogSegmentData, body: bytes, batches: Batches) -> None:
    store = MemoryStore()
    entry = copy(store, segment)
    aux = store.objects[PATH.segment(entry.aux_name)]
    assert (entry.base_offset, entry.end_offset, entry.last_offset) == (102, 2683, 2682)
    assert (entry.log_size, entry.log_crc32c) == (len(body), crc32c(body))
    assert (entry.aux_size, entry.aux_crc32c) == (len(aux), crc32c(aux))
    assert entry.max_timestamp_ms == int(batches.max_timestamp.max())
    assert entry.record_count == int(batches.count.sum()) == 2683 - 102
    assert entry.leader_epochs == (EpochEntry(0, 102),)
    assert (entry.encoding, entry.copied_at_ms, entry.txn_index_empty) == ("identity", FixedClock().now_ms(), False)
    assert entry.segment_id == CountingIds().new_id()
    assert entry.log_name == segment_name(102, 0, entry.segment_id, ".log")
    assert entry.aux_name == segment_name(102, 0, entry.segment_id, ".aux")


def test_an_entry_knows_whether_reads_of_it_need_a_transaction_index(inactive: dict[str, list[LogSegmentData]]) -> None:
    first, second, third = inactive["g-txn-0"]
    plain = inactive["g-codec-lz4-0"][0]
    assert copy(MemoryStore(), plain).txn_index_empty
    for one in (first, second, third):
        empty = one.txn_index is None and not aborted_later(one)
        assert copy(MemoryStore(), one).txn_index_empty is empty
    later = (AbortedTxn(2_700, 2_750, 1, 2_750),)
    assert not copy(MemoryStore(), replace(third, txn_index=None, aborted_later=lambda _: later)).txn_index_empty


def test_an_entry_names_the_epochs_inside_and_where_each_starts(segment: LogSegmentData, body: bytes, batches: Batches) -> None:
    changed = bytearray(body)
    rows = len(batches) // 3, len(batches) // 2
    for row, position in enumerate(batches.positions.tolist()):
        struct.pack_into(">i", changed, position + 12, 4 + 2 * sum(row >= r for r in rows))
    starts = [102, *(int(batches.base_offset[r]) for r in rows)]
    lineage = tuple(EpochEntry(4 + 2 * i, start) for i, start in enumerate(starts))
    entry = copy(MemoryStore(), replace(with_body(segment, changed), lineage=lineage))
    assert entry.leader_epochs == lineage
    assert entry.log_name == segment_name(102, 4, entry.segment_id, ".log")


def test_data_goes_up_before_aux_and_both_are_verified_and_nothing_else_happens(segment: LogSegmentData) -> None:
    store = MemoryStore()
    entry = copy(store, segment)
    log, aux = PATH.segment(entry.log_name), PATH.segment(entry.aux_name)
    assert store.calls == [("upload", log), ("upload", aux), ("head", log), ("head", aux)]


def test_each_copy_has_a_name_of_its_own(segment: LogSegmentData) -> None:
    store, ids = MemoryStore(), CountingIds()
    names = {copy_segment(store, PATH, checked_copy(segment), FixedClock(), ids).log_name for _ in range(3)}
    assert len(names) == 3
    assert len(store.objects) == 6


def test_a_segment_of_several_parts_goes_up_in_parts_of_one_size(inactive: dict[str, list[LogSegmentData]]) -> None:
    big = inactive["g-big-0"][0]
    once = bytes(big.read(0, big.size))
    found, _ = scan(once)
    span, times = found.next_offset, PART_BYTES // big.size + 2
    body = bytearray(once * times)
    for n in range(times):
        for position, base in zip(found.positions.tolist(), found.base_offset.tolist(), strict=True):
            struct.pack_into(">q", body, n * big.size + position, base + n * span)
    sizes: list[int] = []

    class Measures(MemoryStore):
        def upload(self, key: str, parts: object, *, size: int, crc32c: int) -> None:
            kept = [bytes(part) for part in parts]  # type: ignore[attr-defined]
            sizes.extend(len(part) for part in kept if key.endswith(".log"))
            super().upload(key, kept, size=size, crc32c=crc32c)

    store = Measures()
    entry = copy(KeepsNoChecksum(store), replace(with_body(big, body), end_offset=times * span))
    parts = [(start, min(start + PART_BYTES, len(body))) for start in range(0, len(body), PART_BYTES)]
    assert len(parts) > 1
    assert sizes == [end - start for start, end in parts]
    assert store.objects[PATH.segment(entry.log_name)] == body
    reads = [call[2:] for call in store.calls if call[:2] == ("get_range", PATH.segment(entry.log_name))]
    assert reads == parts


def test_an_upload_that_is_refused_or_whose_answer_is_lost_is_made_again(segment: LogSegmentData) -> None:
    store = MemoryStore()
    faulty = LosesAnswer(FailsBefore(store, Unavailable("busy"), Nth("upload", 1, 4)), Nth("upload", 2, 3))
    entry = copy(Retrying(faulty, SleptClock(), lambda: 0.0), segment)
    assert store.objects[PATH.segment(entry.log_name)] == segment.read(0, segment.size)
    assert len(store.objects) == 2


# a store or a file that fails


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    "damage", [lambda b: bytes(flipped(b, len(b) // 2)), lambda b: b[:-1], lambda b: b + b"\0", lambda _: b""]
)
@pytest.mark.parametrize("keeps_checksum", [True, False])
def test_a_store_that_holds_other_bytes_than_it_was_given_is_found_out(
    segment: LogSegmentData, number: int, damage: Callable[[bytes], bytes], keeps_checksum: bool
) -> None:
    store = Corrupts(MemoryStore(), Nth("upload", number), damage)
    with pytest.raises(Corrupt) as raised:
        copy(store if keeps_checksum else KeepsNoChecksum(store), segment)
    assert raised.value.file == store.calls[number - 1][1]
    assert "put_if_absent" not in verbs(store.calls)
    assert "delete" not in verbs(store.calls)


def test_a_store_without_checksums_is_read_back_whole(segment: LogSegmentData) -> None:
    store = KeepsNoChecksum(MemoryStore())
    entry = copy(store, segment)
    log, aux = PATH.segment(entry.log_name), PATH.segment(entry.aux_name)
    assert store.calls == [
        ("upload", log),
        ("upload", aux),
        ("head", log),
        ("get_range", log, 0, entry.log_size),
        ("head", aux),
        ("get_range", aux, 0, entry.aux_size),
    ]


def test_verify_finds_every_flipped_bit() -> None:
    body = bytes(range(256))
    for position in range(0, 256, 17):
        store = MemoryStore()
        store.put_if_absent("key", bytes(flipped(body, position)))
        for door in (store, KeepsNoChecksum(store)):
            with pytest.raises(Corrupt, match="key"):
                verify(door, "key", 256, crc32c(body))


@pytest.mark.parametrize("change", [lambda b: flipped(b, 500_000), lambda b: b[:-100], lambda b: b[:10], lambda _: b""])
def test_a_file_that_changes_after_its_check_is_not_stored(
    segment: LogSegmentData, body: bytes, change: Callable[[bytes], bytes]
) -> None:
    later = bytes(change(body))
    seen = 0

    def read(start: int, end: int) -> bytes:
        nonlocal seen
        source = body if seen < len(body) else later
        part = source[start:end]
        seen += end - start
        return part

    store = MemoryStore()
    with pytest.raises(Corrupt) as raised:
        copy(store, replace(segment, read=read))
    assert store.objects == {}
    assert store.calls == [("upload", raised.value.file)]


def test_a_file_that_goes_between_check_and_upload_is_not_found(segment: LogSegmentData, body: bytes) -> None:
    seen = 0

    def read(start: int, end: int) -> bytes:
        nonlocal seen
        if seen >= len(body):
            raise NotFound("the broker has deleted it")
        seen += end - start
        return body[start:end]

    store = MemoryStore()
    with pytest.raises(NotFound):
        copy(store, replace(segment, read=read))
    assert store.objects == {}


@pytest.mark.parametrize("number", [1, 2])
def test_an_uploader_that_fails_deletes_nothing(segment: LogSegmentData, number: int) -> None:
    for make, error in ((failing, Unavailable), (losing, Unknown)):
        store = MemoryStore()
        with pytest.raises(error):
            copy(make(store, number), segment)
        assert set(verbs(store.calls)) <= {"upload"}


def failing(store: MemoryStore, number: int) -> ObjectStore:
    return FailsBefore(store, Unavailable("down"), Nth("upload", number))


def losing(store: MemoryStore, number: int) -> ObjectStore:
    return LosesAnswer(store, Nth("upload", number))
