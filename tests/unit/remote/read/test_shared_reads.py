"""Readers of archived logs that share a cache: the log's own batches, each byte requested and each checksum checked once."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import pytest
from archive_fakes import CallNumber, CountingIds, Door, FailsBefore, MemoryStore, SleptClock
from archived_worlds import World
from encodings_to_try import ENCODED, KEYS, transforms
from hypothesis import given, settings
from hypothesis import strategies as st
from made_archive import batch_of, made
from pools import InstantPool, LazyPool, ShuffledPool

from local_log.errors import Corrupt, OffsetOutOfRange, Unavailable
from remote.archive import manifests
from remote.manifest.model import Limits
from remote.manifest.store import ManifestWriter
from remote.read.checked_windows import CheckedWindow, NoRoom, NotThere
from remote.read.context import ReadContext
from remote.read.log import ArchivedLog
from remote.read.shared_reads import Found, SharedReads
from remote.read.window_cache import CachedSegment, WindowCache
from remote.store.api import ObjectStore
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.unwrapped_once import UnwrappedOnce


class Unwrapping:
    """A key ring that counts how often it is asked for a data key."""

    current = KEYS.current

    def __init__(self) -> None:
        self.unwrapped = 0

    def wrap(self, key_id: str, data_key: bytes) -> bytes:
        return KEYS.wrap(key_id, data_key)

    def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
        self.unwrapped += 1
        return KEYS.unwrap(key_id, wrapped)


SEGMENTS = [[range(n, n + 3) for n in range(first, first + 30, 3)] for first in (0, 30, 60)]
"""Three segments of ten batches of 3 KB."""
ALL = b"".join(batch_of(n, range(n, n + 3)) for n in range(0, 90, 3))
BATCH = len(ALL) // 30


def shared(bytes_max: int = 1 << 20, pool: LazyPool | None = None, window: int = 16_384, chunk: int = 4_096) -> SharedReads:
    return SharedReads(WindowCache(bytes_max, pool, window, chunk), ahead_bytes_max=40_000)


def opened(store: ObjectStore, reading: ReadContext | None = None) -> ArchivedLog:
    return ArchivedLog(store, next(iter(manifests(store, "made"))), reading=reading or ReadContext())


def followed(reads: SharedReads, log: ArchivedLog, size: int, offset: int = 0) -> Iterator[Found]:
    """What a consumer gets until the log's end."""
    while offset < log.end_offset:
        found = reads.read(log.manifest.path, log, (offset, log.end_offset), size, one_at_least=True)
        yield found
        assert found.next_offset > offset or (found.is_over and not found.parts)
        if found.is_over:
            return
        offset = found.next_offset


def bytes_of(found: Found) -> bytes:
    data = b"".join(found.parts)
    assert len(data) == found.size
    return data


def requested(door: Door) -> Counter[tuple[str, int]]:
    """How often each byte of the segments' logs was requested."""
    ranges = [call[1:] for call in door.calls if call[0] == "get_range" and call[1].endswith(".log")]
    return Counter((key, at) for key, start, end in ranges for at in range(start, end, 64))


@pytest.fixture(scope="module")
def store() -> MemoryStore:
    found = MemoryStore()
    made(found, SEGMENTS)
    return found


READS = st.tuples(st.floats(0, 0.99), st.floats(0, 1), st.sampled_from([0, 1, 5_000, 100_000, 1 << 30]))
"""Where a read begins in a log, how much of the rest it may have, and in answers of which size."""


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(["g-mixed-0", "g-codec-lz4-0", "g-trimmed-0", "g-compacted-0", "g-txn-0"]),
    chunk=st.sampled_from([512, 4_096, 65_536]),
    chunks=st.sampled_from([1, 4]),
    bytes_max=st.sampled_from([1 << 16, 1 << 24]),
    seed=st.none() | st.integers(0, 9),
    asked=st.lists(READS, min_size=1, max_size=4),
)
def test_any_readers_get_the_logs_own_batches(
    finer: World, name: str, chunk: int, chunks: int, bytes_max: int, seed: int | None, asked: list[tuple[float, float, int]]
) -> None:
    pool = None if seed is None else ShuffledPool(seed)
    log, reads = finer.archived(name), shared(bytes_max, pool, chunks * chunk, chunk)
    for begin, length, size in asked:
        start = log.log_start_offset + int(begin * (log.end_offset - log.log_start_offset))
        end = start + 1 + int(length * (log.end_offset - start - 1))
        want = [
            bytes(memoryview(found.buffer)[int(at) : int(stop)])
            for found in log.chunks(start, end)
            for at, stop in zip(found.batches.positions, found.batches.end, strict=True)
        ]
        got, offset, is_over = list[bytes](), start, False
        with suppress(NoRoom):  # the small cache has not for all batches
            while not is_over and len(got) < 5:
                found = reads.read(name, log, (offset, end), size, one_at_least=True)
                assert found.size <= max(size, *map(len, want), 0)
                got.append(bytes_of(found))
                offset, is_over = found.next_offset, found.is_over
            assert is_over or all(got)
        assert b"".join(want).startswith(b"".join(got))
        assert not is_over or b"".join(got) == b"".join(want)
        with suppress(NoRoom, NotThere):
            again = bytes_of(reads.read(name, log, (start, end), size, one_at_least=True, waits=False))
            assert again == got[0] or bytes_max < 1 << 24


@pytest.mark.parametrize("readers", [2, 10])
@pytest.mark.parametrize("encoding", ["", *ENCODED])
def test_each_byte_is_requested_once_for_all_readers(encoding: str, readers: int) -> None:
    inner = MemoryStore()
    made(inner, SEGMENTS, transforms=transforms(encoding, 8_192))
    ring, door = Unwrapping(), Door(inner)
    keys = UnwrappedOnce(ring)
    reading = ReadContext(lambda store: DecodedBytes(store, keys))
    reads = shared()
    consumers = [followed(reads, opened(door, reading), 4_000 + 500 * number) for number in range(readers)]
    got = [b""] * readers
    while any(consumers):
        for number, consumer in enumerate(consumers):
            found = next(consumer, None) if consumer is not None else None
            got[number] += bytes_of(found) if found is not None else b""
            consumers[number] = consumer if found is not None else None
    assert got == [ALL] * readers
    assert set(requested(door).values()) == {1}
    assert ring.unwrapped == (3 if "aes" in encoding else 0)


def test_a_first_read_requests_what_it_wants_and_the_next_ones_ahead_also_of_other_segments(store: MemoryStore) -> None:
    door, pool = Door(store), LazyPool()
    reads, log = shared(pool=pool), opened(door)
    consumer = followed(reads, log, 10_000)
    next(consumer)
    assert [call[2:] for call in door.calls if call[0] == "get_range"] == [(0, 16_384)]
    assert pool.asked == []
    got = next(consumer).size
    assert 6_000 < got <= 10_000
    for later in pool.asked:
        later.run()
    ahead = [call[1:] for call in door.calls if call[0] == "get_range"][1:]
    assert {key.rpartition("/")[2][:20] for key, *_ in ahead} == {"0" * 20, f"{30:020d}"}
    before = len(door.calls)
    for _ in range(3):  # in memory, up to 40,000 bytes after the second read
        next(consumer)
    assert [call for call in door.calls[before:] if call[0] == "get_range"] == []
    assert set(requested(door).values()) == {1}


@pytest.mark.parametrize(("others", "least", "most"), [(200_000, 25_000, 41_000), (300_000, 8_000, 21_000)])
def test_a_reader_is_read_ahead_half_as_far_where_a_quarter_of_the_cache_is_ahead_of_readers(
    store: MemoryStore, others: int, least: int, most: int
) -> None:
    reads = shared(pool=LazyPool())
    reads.cache.ahead(CachedSegment("of another log", 1 << 20, lambda start, end: bytes(end - start), 4_096), 0, others, 1)
    consumer = followed(reads, opened(store), 10_000)
    first = next(consumer)
    before = reads.cache.used
    second = next(consumer)
    in_windows = 16_384 - first.size - second.size
    assert least < in_windows + reads.cache.used - before < most + 4_096


def test_readers_of_the_same_place_and_of_newer_manifests_go_on_with_what_others_have_read(store: MemoryStore) -> None:
    door = Door(store)
    reads = shared()
    first = [*followed(reads, opened(door), 5_000)]
    before = len(door.calls)
    log = opened(door)  # as it is loaded anew
    offset, again = 0, list[bytes]()
    while offset < log.end_offset:
        found = reads.read(log.manifest.path, log, (offset, log.end_offset), 5_000, one_at_least=True, waits=False)
        again.append(bytes_of(found))
        offset = found.next_offset
    assert again == [bytes_of(found) for found in first]
    assert [call for call in door.calls[before:] if call[0] == "get_range"] == []


def test_a_reader_that_goes_on_keeps_to_the_end_that_it_gives_and_to_the_start_that_the_log_has_now(store: MemoryStore) -> None:
    reads, log = shared(window=65_536), opened(store)
    assert bytes_of(reads.read("made", log, (0, 90), 2 * BATCH, one_at_least=True)) == ALL[: 2 * BATCH]
    assert bytes_of(reads.read("made", log, (6, 90), BATCH, one_at_least=False)) == batch_of(6, range(6, 9))
    found = reads.read("made", log, (9, 12), 2 * BATCH, one_at_least=True)
    assert (bytes_of(found), found.is_over) == (batch_of(9, range(9, 12)), True)
    newer = ArchivedLog(store, replace(log.manifest, log_start_offset=20, put_id="of a later version"))
    with pytest.raises(OffsetOutOfRange):
        reads.read("made", newer, (12, 90), BATCH, one_at_least=True)


def test_a_read_goes_on_where_others_ended_in_the_window_that_they_were_lent(store: MemoryStore) -> None:
    door = Door(store)
    reads, log = SharedReads(WindowCache(1 << 20, InstantPool(), 8_192, 4_096), ahead_bytes_max=40_000), opened(door)
    consumer = followed(reads, log, 2 * BATCH)
    assert lent_after(reads, log, next(consumer)) is None, "it is not read ahead"
    lent = None
    while lent is None or len(lent.nexts) < 2:
        lent = lent_after(reads, log, next(consumer))
    assert list(lent.starts) == [n // 3 * BATCH for n in lent.bases]
    assert list(lent.ends - lent.starts) == [BATCH] * len(lent.bases)
    assert list(lent.nexts) == [n + 3 for n in lent.bases]
    on, off = int(lent.nexts[1]), int(lent.nexts[0]) + 1
    before = len(door.calls)
    assert reads.read(log.manifest.path, log, (on, 90), BATCH, one_at_least=True, waits=False).next_offset == on + 3
    with pytest.raises(NotThere):
        reads.read(log.manifest.path, log, (off, 90), BATCH, one_at_least=True, waits=False)
    assert len([call for call in door.calls[before:] if call[0] == "get_range" and call[1].endswith(".log")]) > 0, "ahead"


def lent_after(reads: SharedReads, log: ArchivedLog, found: Found) -> CheckedWindow | None:
    return reads.lend(log.manifest.path, log, (found.next_offset, 90))


def test_what_is_not_in_memory_is_waited_for_only_by_those_who_may(store: MemoryStore) -> None:
    reads, log = shared(), opened(store)
    for offset in (0, 14):
        with pytest.raises(NotThere):
            reads.read("made", log, (offset, 90), 100, one_at_least=True, waits=False)
    assert bytes_of(reads.read("made", log, (14, 90), 100, one_at_least=True)) == batch_of(12, range(12, 15))
    with pytest.raises(OffsetOutOfRange):
        reads.read("made", log, (91, 92), 100, one_at_least=True)


def test_who_may_not_wait_reads_no_page_of_a_manifest_and_needs_none_that_was_read() -> None:
    store = MemoryStore()
    made(store, SEGMENTS)
    path, manifest = opened(store).manifest.path, opened(store).manifest
    limits = Limits(inline_max=1, page_entries=1, fan_out=8)
    writer = ManifestWriter(store, path, SleptClock(), CountingIds("f"), "writer", manifest.writer_epoch, limits)
    assert len(writer.commit(manifest, lambda as_it_is: as_it_is).pages) == 2
    door = Door(store)
    reads, log = SharedReads(WindowCache(1 << 20, None, 16_384, 4_096)), opened(door)

    def read(offset: int, *, waits: bool) -> Found:
        return reads.read("made", log, (offset, 90), 10 * BATCH, one_at_least=True, waits=waits)

    with pytest.raises(NotThere):
        read(0, waits=False)
    assert not [call for call in door.calls if call[0] == "get" and "/pages/" in call[1]]
    assert b"".join(bytes_of(read(offset, waits=True)) for offset in (0, 30, 60)) == ALL
    before = len(door.calls)
    assert b"".join(bytes_of(read(offset, waits=False)) for offset in (0, 30, 60)) == ALL
    assert door.calls[before:] == []


@pytest.mark.parametrize("order", [1, -1])
def test_what_was_requested_ahead_is_checked_by_who_brings_it_in_any_order(store: MemoryStore, order: int) -> None:
    pool = LazyPool()
    reads, log = shared(pool=pool, window=8_192), opened(store)
    consumer = followed(reads, log, 8_000)
    offset = [next(consumer).next_offset for _ in range(2)][-1]
    for later in pool.asked[::order]:
        later.run()
    got = [
        reads.read(log.manifest.path, log, (at, 90), BATCH, one_at_least=True, waits=False)
        for at in range(offset, offset + 12, 3)
    ]
    assert b"".join(map(bytes_of, got)) == ALL[offset // 3 * BATCH :][: 4 * BATCH]


def test_what_came_before_its_begin_was_known_is_checked_once_a_reader_has_come_near(store: MemoryStore) -> None:
    pool = LazyPool()
    reads, log = shared(pool=pool, window=8_192), opened(store)
    consumer = followed(reads, log, 8_000)
    for _ in range(2):
        next(consumer)
    behind = pool.asked[-1]
    behind.run()  # and the window before is not there
    for _ in pool.asked[:-1]:
        offset = next(consumer).next_offset
    for later in pool.asked:
        if later is not behind:
            later.run()
    after = reads.read(log.manifest.path, log, (offset, 90), 8_000, one_at_least=True, waits=False)
    assert ALL[offset // 3 * BATCH :].startswith(bytes_of(after))


def test_damage_in_what_was_requested_ahead_is_told_to_the_reader_who_comes_to_it(store: MemoryStore) -> None:
    other, pool = MemoryStore(), LazyPool()
    other.objects.update(store.objects)
    key = next(key for key in sorted(other.objects) if key.endswith(".log"))
    whole, at = other.objects[key], 6 * BATCH + 200
    other.objects[key] = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    reads, log = shared(pool=pool, window=8_192), opened(other)
    consumer, got = followed(reads, log, 5_000), b""
    while len(got) < 6 * BATCH:
        got += bytes_of(next(consumer))
        for later in pool.asked:
            later.run()
    with pytest.raises(Corrupt) as raised:
        next(consumer)
    assert (got, raised.value.file) == (ALL[: 6 * BATCH], key)
    other.objects[key] = whole
    assert b"".join(map(bytes_of, followed(reads, log, 5_000, 18))) == ALL[6 * BATCH :]


def test_without_room_a_reader_is_told_or_given_less(store: MemoryStore) -> None:
    log = opened(store)
    with pytest.raises(NoRoom):
        shared(0).read("made", log, (0, 90), 100, one_at_least=True)
    reads = shared(20_000)
    found = reads.read("made", log, (0, 90), 50_000, one_at_least=True)
    assert ALL.startswith(bytes_of(found))
    assert 0 < found.size <= 20_000
    with pytest.raises(NoRoom):  # an answer still has the bytes
        reads.read("made", log, (60, 90), 16_000, one_at_least=True)
    del found
    assert bytes_of(reads.read("made", log, (60, 90), 100, one_at_least=True)) == batch_of(60, range(60, 63))


@pytest.mark.parametrize("at", [30, 5 * BATCH + 200, 10 * BATCH - 1])
def test_a_damaged_batch_ends_an_answer_and_is_read_again_when_it_was_repaired(store: MemoryStore, at: int) -> None:
    other = MemoryStore()
    other.objects.update(store.objects)
    key = next(key for key in sorted(other.objects) if key.endswith(".log"))
    whole = other.objects[key]
    other.objects[key] = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    reads, log, good = shared(), opened(other), at // BATCH * 3
    if good:
        found = reads.read("made", log, (0, 90), 1 << 20, one_at_least=True)
        assert (bytes_of(found), found.next_offset, found.is_over) == (ALL[: good // 3 * BATCH], good, False)
    for _ in range(2):
        with pytest.raises(Corrupt) as raised:
            reads.read("made", log, (good, 90), 1 << 20, one_at_least=True)
    assert raised.value.file == key
    other.objects[key] = whole
    assert b"".join(map(bytes_of, followed(reads, log, 1 << 20, good))) == ALL[good // 3 * BATCH :]


def test_a_batch_whose_end_is_requested_again_is_checked_again(store: MemoryStore) -> None:
    other = MemoryStore()
    other.objects.update(store.objects)
    key = next(key for key in sorted(other.objects) if key.endswith(".log"))
    whole, reads, log = other.objects[key], shared(window=4_096), opened(other)
    assert b"".join(map(bytes_of, followed(reads, log, 1 << 20))) == ALL
    at = 4_200  # of the second batch, in the second window
    assert BATCH < 4_096 < at < 2 * BATCH
    other.objects[key] = whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]
    again = next(w for w in reads.cache._windows.values() if w.start == 4_096)
    reads.cache.forget(again)
    assert reads.cache.window(again.segment, again.start, 0) is not again
    for waits in (False, True):
        with suppress(NotThere):
            found = reads.read("made", log, (0, 90), 1 << 20, one_at_least=True, waits=waits)
            assert ALL.startswith(bytes_of(found))
    with pytest.raises(Corrupt):
        reads.read("made", log, (3, 90), 1 << 20, one_at_least=True)
    other.objects[key] = whole
    assert b"".join(map(bytes_of, followed(reads, log, 1 << 20))) == ALL


def test_an_object_that_is_cut_or_gone_is_an_error_and_kept_by_nobody(store: MemoryStore) -> None:
    other = MemoryStore()
    other.objects.update(store.objects)
    keys = [key for key in sorted(other.objects) if key.endswith(".log")]
    cut, gone = other.objects[keys[0]], other.objects.pop(keys[1])
    other.objects[keys[0]] = cut[:-5_000]
    reads, log = shared(), opened(other)
    got = b"".join(bytes_of(found) for found in [reads.read("made", log, (0, 90), 8_000, one_at_least=True)])
    assert ALL.startswith(got)
    for offset in (24, 30):
        with pytest.raises(Corrupt):
            reads.read("made", log, (offset, 90), 20_000, one_at_least=True)
    other.objects |= {keys[0]: cut, keys[1]: gone}
    assert b"".join(map(bytes_of, followed(reads, log, 20_000))) == ALL


@pytest.mark.parametrize("for_long", [False, True])
def test_a_store_that_fails_at_any_request_and_comes_back_costs_no_batch(store: MemoryStore, for_long: bool) -> None:
    for number in range(1, 12):
        failing = FailsBefore(store, Unavailable("no answer"), lambda verb, key: False)
        log, reads, got, failures = opened(failing), shared(), b"", 0
        failing.when = CallNumber(number, on=for_long)
        offset = 0
        while offset < 90:
            try:
                found = reads.read("made", log, (offset, 90), 7_000, one_at_least=True)
            except Unavailable:
                failures += 1
                failing.when = lambda verb, key: False
                continue
            got, offset = got + bytes_of(found), found.next_offset
        assert got == ALL
        assert failures <= 1
