"""Encoded segments read by ranges of their own bytes: what comes back, in how many requests, each chunk decoded how often."""

from itertools import pairwise

import pytest
from archive_fakes import MemoryStore
from encodings_to_try import ENCODED, KEYS, aux_of, log_of, stored, transforms
from hypothesis import given
from hypothesis import strategies as st
from made_manifests import PATH, entry

from local_log.errors import Invalid
from remote.lru_cache import LruCache
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.encoder import FixedSizeParts

CHUNK = 64
AUX = b"aux"

encodings = st.sampled_from(ENCODED)
sizes_around_borders = st.builds(lambda n, d: max(1, n * CHUNK + d), st.integers(0, 5), st.integers(-2, 2)) | st.integers(1, 400)


def source(size: int, seed: int) -> bytes:
    """Bytes of which zstd makes fewer, each chunk by another share."""
    return bytes((n // 7 * seed + n // CHUNK * n) % 256 for n in range(size))


@given(encodings, sizes_around_borders, st.integers(0, 9), st.data())
def test_any_range_is_that_slice_of_the_source(encoding: str, size: int, seed: int, data: st.DataObject) -> None:
    log = source(size, seed)
    store, made = stored(log, AUX, transforms(encoding, CHUNK))
    reader = DecodedBytes(store, KEYS)
    for _ in range(3):
        start = data.draw(st.integers(0, size))
        end = data.draw(st.integers(start, size))
        assert reader.log(PATH, made, start, end) == log[start:end]
    assert log_of(store, made) == log


@given(encodings, st.lists(st.integers(1, 300), min_size=1, max_size=6), st.data())
def test_any_range_of_the_aux_object_is_that_slice_of_its_parts(encoding: str, sizes: list[int], data: st.DataObject) -> None:
    ends = tuple(sum(sizes[: n + 1]) for n in range(len(sizes)))
    aux = source(ends[-1], 3)
    store, made = stored(b"log", aux, transforms(encoding, CHUNK), ends)
    start = data.draw(st.sampled_from([0, *ends]) | st.integers(0, len(aux)))
    end = data.draw(st.sampled_from([o for o in (0, *ends) if o >= start]) | st.integers(start, len(aux)))
    assert DecodedBytes(store, KEYS).aux(PATH, made, start, end) == aux[start:end]
    assert aux_of(store, made) == aux


def test_what_is_not_encoded_is_read_as_it_lies() -> None:
    made, store = entry(0, 10), MemoryStore()
    store.objects = {PATH.segment(made.log_name): bytes(range(100)), PATH.segment(made.aux_name): b"0123456789"}
    reader = DecodedBytes(store)
    assert (reader.log(PATH, made, 5, 9), reader.aux(PATH, made, 0, 3)) == (bytes(range(5, 9)), b"012")
    assert len(store.calls) == 2


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize(("start", "end"), [(-1, 3), (3, 2), (0, 1001), (1001, 1001)])
def test_a_range_outside_is_refused(encoding: str, start: int, end: int) -> None:
    store, made = stored(source(1000, 1), b"x" * 1000, transforms(encoding, CHUNK))
    reader = DecodedBytes(store, KEYS)
    for read in (reader.log, reader.aux):
        with pytest.raises(Invalid, match="1000 source bytes"):
            read(PATH, made, start, end)
    assert store.calls == []


# what it costs


def windows(size: int) -> list[tuple[int, int]]:
    """What a sequential reader asks for: spans that grow, each from a little before the last one's end."""
    edges, span = [0], 10
    while edges[-1] < size:
        edges.append(min(size, edges[-1] + span))
        span = min(span * 2, 200)
    return [(max(0, a - 5), b) for a, b in pairwise(edges)]


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_sequential_read_makes_no_more_requests_than_one_a_window_and_asks_for_no_chunk_twice(encoding: str) -> None:
    log = source(2000, 5)
    store, made = stored(log, AUX, transforms(encoding, CHUNK))
    reader = DecodedBytes(store, KEYS)
    for start, end in windows(len(log)):
        assert reader.log(PATH, made, start, end) == log[start:end]
    asked = sorted(call[2:] for call in store.calls)
    assert len(asked) <= len(windows(len(log)))
    assert [start for start, _ in asked[1:]] == [end for _, end in asked[:-1]]
    assert (asked[0][0], asked[-1][1]) == (0, made.stored_log.size)


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_range_costs_one_request_for_just_the_chunks_that_it_touches(encoding: str) -> None:
    store, made = stored(source(1000, 2), source(300, 4), transforms(encoding, CHUNK), (100, 250, 300))
    reader = DecodedBytes(store, KEYS)
    reader.aux(PATH, made, 100, 300)
    lengths = made.encoded.aux_lengths if made.encoded else ()
    assert store.calls == [("get_range", PATH.segment(made.aux_name), lengths[0], sum(lengths))]
    reader.log(PATH, made, 70, 130)
    reader.log(PATH, made, 130, 140)
    assert [call[0] for call in store.calls[1:]] == ["get_range"]


def test_several_readers_that_go_on_in_one_segment_do_not_cost_each_other_their_chunks() -> None:
    store, made = stored(source(1000, 2), AUX, transforms("aes-256-gcm", CHUNK))
    reader = DecodedBytes(store, KEYS)
    for at in range(8):
        for start in (0, 200, 500):
            reader.log(PATH, made, start + at, start + at + 1)
    assert len(store.calls) == 3


def test_the_key_ring_is_asked_once_for_a_segment() -> None:
    asked: list[str] = []

    class Asked:
        current = "new"

        def wrap(self, key_id: str, data_key: bytes) -> bytes:
            raise AssertionError

        def unwrap(self, key_id: str, wrapped: bytes) -> bytes:
            asked.append(key_id)
            return KEYS.unwrap(key_id, wrapped)

    store, made = stored(source(1000, 2), AUX, transforms("aes-256-gcm", CHUNK))
    reader = DecodedBytes(store, Asked())
    for start in range(0, 1000, 100):
        reader.log(PATH, made, start, start + 100)
        reader.aux(PATH, made, 0, 1)
    assert asked == ["new"]


# what these are made of


@given(st.lists(st.binary(max_size=20), max_size=20), st.integers(1, 30))
def test_parts_are_of_one_length_but_the_last_and_hold_what_the_chunks_hold(chunks: list[bytes], part_bytes: int) -> None:
    parts = [*FixedSizeParts(chunks, part_bytes)]
    assert b"".join(parts) == b"".join(chunks)
    assert all(len(part) == part_bytes for part in parts[:-1])
    assert all(0 < len(part) <= part_bytes for part in parts[-1:])


def test_what_was_used_last_is_kept() -> None:
    recent: LruCache[str, int] = LruCache(2)
    recent.put("a", 1)
    recent.put("b", 2)
    assert recent.get("a") == 1
    recent.put("c", 3)
    assert (recent.get("a"), recent.get("b"), recent.get("c")) == (1, None, 3)
