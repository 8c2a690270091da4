"""Objects that are not what was archived: nothing of them is given out, and the error says which chunk and what to do."""

import struct
from dataclasses import replace
from itertools import pairwise

import pytest
import zstandard
from archive_fakes import MemoryStore
from encodings_to_try import (
    ENCODED,
    ENCRYPTED,
    KEYS,
    as_if_written,
    aux_of,
    bodies,
    finding,
    log_chunks_end,
    log_of,
    stored,
    transforms,
)
from made_manifests import PATH

from local_log.errors import Corrupt
from remote.keys import PartitionPath
from remote.manifest.segment_entry import SegmentEntry
from remote.transforms.decoded_bytes import DecodedBytes

CHUNK = 100
LOG = bytes(n % 7 * n % 256 for n in range(450))
AUX = b"offsets " * 20 + b"times " * 20


def archived(encoding: str) -> tuple[MemoryStore, SegmentEntry]:
    return stored(LOG, AUX, transforms(encoding, CHUNK), (160, 280))


def put_log(store: MemoryStore, entry: SegmentEntry, body: bytes) -> None:
    store.objects[PATH.segment(entry.log_name)] = body


def chunks_of(store: MemoryStore, entry: SegmentEntry) -> list[bytes]:
    return [bodies(store, entry)[0][start:end] for start, end in pairwise(log_chunks_end(entry))]


def what_is_read(store: MemoryStore, entry: SegmentEntry) -> bytes | Corrupt:
    try:
        return log_of(store, entry)
    except Corrupt as e:
        return e


# the object


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_flip_of_any_bit_of_an_object_is_found_in_its_chunk(encoding: str) -> None:
    store, entry = archived(encoding)
    edges = log_chunks_end(entry)
    sound = bodies(store, entry)[0]
    unseen: set[tuple[int, int]] = set()
    for at in range(len(sound)):
        for bit in range(8):
            damaged = bytearray(sound)
            damaged[at] ^= 1 << bit
            put_log(store, entry, bytes(damaged))
            number = max(n for n, edge in enumerate(edges) if edge <= at)
            found = what_is_read(store, entry)
            if encoding == "zstd" and found == LOG:
                unseen.add((at - edges[number], bit))
                continue
            assert isinstance(found, Corrupt)
            assert (found.file, found.position) == (PATH.segment(entry.log_name), edges[number])
            assert found.problem.startswith(
                f"chunk {number} of 5, source bytes [{number * 100}, {min(450, number * 100 + 100)}): "
            )
            assert "restore the object" in found.problem
    assert len(unseen) <= 2  # zstd's frame header has bits that mean nothing here
    assert {at for at, _ in unseen} <= {4}


@pytest.mark.parametrize("encoding", ENCRYPTED)
def test_a_flip_of_any_bit_of_an_encrypted_aux_object_is_found(encoding: str) -> None:
    store, entry = archived(encoding)
    sound = bodies(store, entry)[1]
    for at in range(8 * len(sound)):
        damaged = bytearray(sound)
        damaged[at // 8] ^= 1 << at % 8
        store.objects[PATH.segment(entry.aux_name)] = bytes(damaged)
        assert finding(store, entry, aux_of).file == PATH.segment(entry.aux_name)


@pytest.mark.parametrize("encoding", ENCODED)
def test_an_object_cut_at_any_byte_is_found(encoding: str) -> None:
    store, entry = archived(encoding)
    sound = bodies(store, entry)[0]
    for size in range(len(sound)):
        put_log(store, entry, sound[:size])
        found = finding(store, entry)
        assert "restore the object from a copy" in found.problem


@pytest.mark.parametrize("encoding", ENCODED)
def test_an_object_that_is_gone_is_found(encoding: str) -> None:
    store, entry = archived(encoding)
    del store.objects[PATH.segment(entry.log_name)]
    assert "are not there" in finding(store, entry).problem


@pytest.mark.parametrize("encoding", ENCRYPTED)
def test_two_chunks_that_were_swapped_do_not_open(encoding: str) -> None:
    store, entry = archived("aes-256-gcm")
    sound = bodies(store, entry)[0]
    first, second, rest = sound[:116], sound[116:232], sound[232:]
    put_log(store, entry, second + first + rest)
    found = finding(store, entry)
    assert found.problem.startswith("chunk 0 of 5, ")
    assert "swapped" in found.problem
    put_log(store, entry, first + first + rest)
    assert finding(store, entry).problem.startswith("chunk 1 of 5, ")


def test_a_chunk_of_the_aux_object_is_none_of_the_log() -> None:
    store, entry = stored(bytes(100), bytes(100), transforms("aes-256-gcm", CHUNK))
    log, aux = bodies(store, entry)
    assert len(log) == len(aux)
    put_log(store, entry, aux)
    assert finding(store, entry).problem.startswith("chunk 0 of 1, ")


def test_a_chunk_of_another_segment_does_not_open_even_under_the_same_data_key() -> None:
    store, entry = archived("aes-256-gcm")
    for other in (replace(entry, segment_id="6f" * 16), entry):
        reader = DecodedBytes(store, KEYS)
        if other is entry:
            assert reader.log(PATH, other, 0, 450) == LOG
        else:
            with pytest.raises(Corrupt, match="chunk 0 of 5"):
                reader.log(PATH, other, 0, 450)


@pytest.mark.parametrize(
    "elsewhere", [PartitionPath(PATH.topic, PATH.topic_id, 1), PartitionPath(PATH.topic, "B" * 22, PATH.partition)]
)
def test_a_segment_copied_to_another_partition_or_topic_does_not_open(elsewhere: PartitionPath) -> None:
    store, entry = archived("aes-256-gcm")
    store.objects[elsewhere.segment(entry.log_name)] = bodies(store, entry)[0]
    with pytest.raises(Corrupt, match="of another segment"):
        DecodedBytes(store, KEYS).log(elsewhere, entry, 0, 450)


@pytest.mark.parametrize("encoding", ENCRYPTED)
@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_an_object_cut_after_a_chunk_does_not_open_even_where_its_entry_was_changed_with_it(encoding: str, chunks: int) -> None:
    store, entry = archived(encoding)
    kept = chunks_of(store, entry)[:chunks]
    cut = as_if_written(store, entry, CHUNK, chunks * CHUNK, kept)
    assert finding(store, cut).problem.startswith(f"chunk {chunks - 1} of {chunks}, ")


@pytest.mark.parametrize("encoding", ENCRYPTED)
def test_an_object_that_goes_on_after_its_last_chunk_does_not_open(encoding: str) -> None:
    store, entry = archived(encoding)
    chunks = chunks_of(store, entry)
    longer = as_if_written(store, entry, CHUNK, 600, [*chunks[:4], chunks[0], chunks[0]])
    assert finding(store, longer).problem.startswith("chunk 4 of 6, ")


# a frame that lies about itself


def of_one_frame(frame: bytes) -> Corrupt:
    """The finding where the log is a chunk of 100 bytes and this is stored in its place."""
    store, entry = archived("zstd")
    return finding(store, as_if_written(store, entry, CHUNK, CHUNK, [frame]))


def test_a_frame_that_holds_more_than_its_chunk_is_not_inflated_further() -> None:
    bomb = zstandard.ZstdCompressor(level=19, write_content_size=False).compress(bytes(1 << 24))
    one = zstandard.ZstdCompressor().compress(bytes(100))
    assert len(bomb) < 1024
    for frame in (bomb, one + one):
        assert of_one_frame(frame).problem.startswith("chunk 0 of 1, source bytes [0, 100): it does not inflate to 100 bytes")


def test_a_frame_that_states_a_size_of_a_tebibyte_is_given_no_memory() -> None:
    frame = struct.pack("<IBQ", 0xFD2FB528, 0xE0, 1 << 40) + b"\x03\0\0A"  # its one block, the last, is a run of no bytes
    assert "it does not inflate to 100 bytes" in of_one_frame(frame).problem


def test_a_frame_that_holds_less_than_its_chunk_is_found() -> None:
    assert "it holds 99 source bytes of 100" in of_one_frame(zstandard.ZstdCompressor().compress(bytes(99))).problem
