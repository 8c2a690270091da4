"""What is missing or damaged in an archive: an error that names it, and never a shorter answer."""

from collections.abc import Callable
from pathlib import Path

import pytest
from archive_fakes import FailsBefore, MemoryStore
from archived_worlds import World, opened, read
from golden_logs import broker_logs
from logs_to_archive import cut_finer, local_logs, offload_all, offsets_of, path_of
from segments_to_copy import flipped

from local_log.errors import Corrupt, Invalid, LogError
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.visible_records import record_batches
from local_log.segment_reader import Segment
from remote.manifest.segment_entry import OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX, SegmentEntry
from remote.read.log import ArchivedLog
from remote.read.plan import MissingRange

# gaps


def damage_log(segment: Segment) -> None:
    """So that it is refused."""
    file = Path(segment.path(".log"))
    file.write_bytes(bytes(flipped(file.read_bytes(), file.stat().st_size // 2)))


def test_a_gap_is_refused_or_left_out(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path / "broker", "g-mixed-0")
    cut_finer(folder / "g-mixed-0", 6)
    log = local_logs(folder)["g-mixed-0"]
    hurt = log.segments[2]
    damage_log(hurt)
    store = MemoryStore()
    offload_all(folder, store)
    archived = opened(store, log)
    start, end = hurt.base_offset, hurt.next_base_offset
    assert end is not None
    for ask in ((start - 5, end + 5), (start + 1, end + 5), (start - 5, start + 1), (start + 1, start + 2)):
        with pytest.raises(MissingRange, match="refused"):
            list(archived.chunks(*ask))
    before = record_batches(archived.chunks(start - 5, end + 5), start - 5, end + 5)
    assert next(before).column("offset").to_pylist() == [*range(start - 5, start)]  # as far as there are any
    with pytest.raises(MissingRange):
        next(before)
    allowed = archived.chunks(start - 5, end + 5, fail_on_data_loss=False)
    assert offsets_of(record_batches(allowed, start - 5, end + 5)) == [*range(start - 5, start), *range(end, end + 5)]


def test_a_record_that_could_lie_in_a_gap_is_not_answered_by_a_later_one(tmp_path: Path) -> None:
    folder = broker_logs(tmp_path / "broker", "g-txn-0")
    cut_finer(folder / "g-txn-0", 6)
    log = local_logs(folder)["g-txn-0"]
    hurt, after = log.segments[2:4]
    wanted = int(next(hurt.chunks()).batches.max_timestamp[0])
    damage_log(hurt)
    store = MemoryStore()
    offload_all(folder, store)
    archived = opened(store, log)
    with pytest.raises(MissingRange, match="refused"):
        archived.offset_for_time(wanted, 0, archived.end_offset)
    later = archived.offset_for_time(wanted, 0, archived.end_offset, fail_on_data_loss=False)
    assert later is not None
    assert later.offset >= after.base_offset
    assert archived.offset_for_time(0, 0, archived.end_offset) is not None


# damage


@pytest.fixture(scope="module")
def memory(finer: World) -> dict[str, bytes]:
    """The archive of the partitions cut finer, to be damaged."""
    store = MemoryStore()
    offload_all(finer.folder, store)
    return store.objects


def damaged(memory: dict[str, bytes], key: str, change: Callable[[bytes], bytes] | None) -> MemoryStore:
    store = MemoryStore()
    store.objects.update(memory)
    if change is None:
        del store.objects[key]
    else:
        store.objects[key] = change(store.objects[key])
    return store


def entry_of(finer: World, partition: str, number: int) -> tuple[SegmentEntry, str, str]:
    entry = finer.archived(partition).manifest.entries[number]
    path = path_of(finer.logs[partition])
    return entry, path.segment(entry.log_name), path.segment(entry.aux_name)


def test_a_truncated_segment_is_an_error_with_a_remedy_and_never_a_shorter_answer(finer: World, memory: dict[str, bytes]) -> None:
    entry, log_key, _ = entry_of(finer, "g-txn-0", 3)
    for size in [0, 1, BATCH_HEADER_BYTES, *range(100, entry.log_size, 9_001), entry.log_size - 1]:
        store = damaged(memory, log_key, lambda body, size=size: body[:size])
        archived = finer.archived("g-txn-0", store)
        with pytest.raises(LogError):
            list(read(archived, entry.base_offset, entry.end_offset))


def test_an_object_that_the_manifest_names_and_that_is_gone_is_damage(finer: World, memory: dict[str, bytes]) -> None:
    entry, log_key, aux_key = entry_of(finer, "g-txn-0", 3)
    archived = finer.archived("g-txn-0", damaged(memory, log_key, None))
    without_aux = finer.archived("g-txn-0", damaged(memory, aux_key, None))
    asks: list[tuple[str, Callable[[], object]]] = [
        (log_key, lambda: list(read(archived, entry.base_offset, entry.end_offset))),
        (aux_key, lambda: list(without_aux.chunks(entry.base_offset + 1, entry.end_offset))),
        (aux_key, lambda: without_aux.aborted(entry.base_offset, entry.end_offset)),
    ]
    for key, ask in asks:
        with pytest.raises(Corrupt, match="the manifest names it") as raised:
            ask()
        assert raised.value.file == key


def test_a_flipped_bit_in_a_segment_is_corrupt_and_names_the_object(finer: World, memory: dict[str, bytes]) -> None:
    entry, log_key, _ = entry_of(finer, "g-codec-none-0", 1)
    for position in [8, 16, 17, 21, 57, *range(BATCH_HEADER_BYTES, entry.log_size, 6_007), entry.log_size - 1]:

        def flip(body: bytes, position: int = position) -> bytes:
            return body[:position] + bytes([body[position] ^ 4]) + body[position + 1 :]

        archived = finer.archived("g-codec-none-0", damaged(memory, log_key, flip))
        with pytest.raises(Corrupt) as raised:
            list(read(archived, entry.base_offset, entry.end_offset))
        assert raised.value.file == log_key
        assert raised.value.position <= position


@pytest.mark.parametrize("part", [OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX])
def test_a_damaged_index_is_corrupt_and_names_the_object_and_the_byte(finer: World, memory: dict[str, bytes], part: str) -> None:
    entry, _, aux_key = entry_of(finer, "g-txn-0", 1)
    where = entry.aux_ranges[part]

    def spoil(body: bytes) -> bytes:
        return body[: where.start] + b"\x7f" * (where.end - where.start) + body[where.end :]

    archived = finer.archived("g-txn-0", damaged(memory, aux_key, spoil))
    start, end = entry.base_offset + 1, entry.end_offset - 1
    ask: dict[str, Callable[[], object]] = {
        OFFSET_INDEX: lambda: list(archived.chunks(start, end)),
        TIME_INDEX: lambda: archived.offset_for_time(entry.max_timestamp_ms, start, end),
        TRANSACTION_INDEX: lambda: archived.aborted(start, end),
    }
    with pytest.raises(Corrupt) as raised:
        ask[part]()
    assert raised.value.file == aux_key
    assert where.start <= raised.value.position < where.end


@pytest.mark.parametrize("part", [OFFSET_INDEX, TIME_INDEX, TRANSACTION_INDEX])
def test_no_single_bit_of_an_index_changes_an_answer(finer: World, memory: dict[str, bytes], part: str) -> None:
    entry, _, aux_key = entry_of(finer, "g-txn-0", 1)
    where = entry.aux_ranges[part]
    start, end = entry.base_offset + 1, entry.end_offset - 1
    for bit in range(0, 8 * (where.end - where.start), 37):

        def flip(body: bytes, bit: int = bit) -> bytes:
            at = where.start + bit // 8
            return body[:at] + bytes([body[at] ^ 1 << bit % 8]) + body[at + 1 :]

        archived = finer.archived("g-txn-0", damaged(memory, aux_key, flip))
        ask: dict[str, Callable[[], object]] = {
            OFFSET_INDEX: lambda archived=archived: list(archived.chunks(start, end)),
            TIME_INDEX: lambda archived=archived: archived.offset_for_time(entry.max_timestamp_ms, start, end),
            TRANSACTION_INDEX: lambda archived=archived: archived.aborted(start, end),
        }
        with pytest.raises(Corrupt, match=part):
            ask[part]()


def test_an_object_that_the_store_does_not_give_is_not_taken_for_damaged(finer: World, memory: dict[str, bytes]) -> None:
    entry, log_key, _ = entry_of(finer, "g-txn-0", 1)
    whole = finer.archived("g-txn-0", damaged(memory, log_key, lambda body: body))
    refused = Invalid("403 InvalidObjectState: bring the object back from its cold storage class")
    store = FailsBefore(whole.store, refused, lambda verb, key: verb == "get_range" and key == log_key)
    archived = ArchivedLog(store, whole.manifest)
    with pytest.raises(Invalid, match="cold storage class"):
        list(archived.chunks(entry.base_offset, entry.end_offset))
    assert list(archived.chunks(0, entry.base_offset))
