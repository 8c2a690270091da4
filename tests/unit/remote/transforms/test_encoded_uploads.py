"""One segment's way into the archive in each encoding: what is stored and stated, and what a failure leaves."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest
from archive_fakes import Corrupts, FailsBefore, KeepsNoChecksum, MemoryStore, Nth, verbs
from crc32c import crc32c
from encodings_to_try import ENCODED, ENCRYPTED, KEYS, aux_of, bodies, copied, log_of, transforms
from made_manifests import PATH, manifest
from seeded_randomness import SeededRandomness
from segments_to_copy import PARTITIONS, flipped, refused, with_body

from local_log.errors import Corrupt, NoKey, Unavailable
from remote.manifest.codec import decode, encode
from remote.segment.check import LogSegmentData
from remote.segment.upload import PART_BYTES
from remote.store.api import Body
from remote.transforms.encoder import Encryption, Transforms
from remote.transforms.keys import LocalKeyRing

# what is stored


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("partition", PARTITIONS)
@pytest.mark.parametrize("chunk_bytes", [1000, 1 << 16, 4 << 20])
@pytest.mark.slow
def test_the_segment_and_the_parts_beside_it_come_back_byte_for_byte(
    inactive: dict[str, list[LogSegmentData]], partition: str, encoding: str, chunk_bytes: int
) -> None:
    for one in inactive[partition][:2]:
        store, plain = MemoryStore(), MemoryStore()
        entry, identity = copied(store, one, transforms(encoding, chunk_bytes)), copied(plain, one, Transforms())
        assert identity.encoding == "identity"
        if entry.encoding != "identity":
            assert log_of(store, entry) == Path(one.path).read_bytes()
            assert aux_of(store, entry) == bodies(plain, identity)[1]
        assert replace(entry, encoding="identity", encoded=None) == identity
        for body, stored in zip(bodies(store, entry), (entry.stored_log, entry.stored_aux), strict=True):
            assert (len(body), crc32c(body)) == (stored.size, stored.crc32c)


@pytest.mark.parametrize("encoding", ENCODED)
def test_an_entry_keeps_how_it_is_encoded_through_the_manifest(segment: LogSegmentData, encoding: str) -> None:
    store = MemoryStore()
    entry = copied(store, segment, transforms(encoding))
    assert entry.encoding == encoding
    (again,) = decode(encode(manifest(entry, log_start_offset=entry.base_offset)), "key").entries
    assert again == entry
    assert crc32c(log_of(store, again)) == entry.log_crc32c


def test_an_entry_that_is_not_encoded_says_nothing_of_encodings(segment: LogSegmentData) -> None:
    entry = copied(MemoryStore(), segment, Transforms())
    assert b"encoded" not in encode(manifest(entry, log_start_offset=entry.base_offset))
    assert (entry.stored_log.size, entry.stored_log.crc32c) == (entry.log_size, entry.log_crc32c)


@pytest.mark.parametrize(("wanted", "encoding"), [("zstd", "identity"), ("zstd+aes-256-gcm", "aes-256-gcm")])
def test_a_segment_whose_batches_are_compressed_is_not_compressed_again(
    inactive: dict[str, list[LogSegmentData]], wanted: str, encoding: str
) -> None:
    assert copied(MemoryStore(), inactive["g-codec-lz4-0"][0], transforms(wanted)).encoding == encoding


def test_what_is_compressed_takes_less_room(inactive: dict[str, list[LogSegmentData]]) -> None:
    store = MemoryStore()
    entry = copied(store, inactive["g-trimmed-0"][0], transforms("zstd"))
    assert entry.stored_log.size < entry.log_size // 2
    assert entry.stored_aux.size < entry.aux_size


@pytest.mark.parametrize("encoding", ENCODED)
def test_data_goes_up_before_aux_and_both_are_verified_and_nothing_else_happens(segment: LogSegmentData, encoding: str) -> None:
    store = MemoryStore()
    entry = copied(store, segment, transforms(encoding))
    log, aux = PATH.segment(entry.log_name), PATH.segment(entry.aux_name)
    assert store.calls == [("upload", log), ("upload", aux), ("head", log), ("head", aux)]


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_segment_of_several_parts_goes_up_in_parts_of_one_size_read_a_chunk_at_a_time(
    segment: LogSegmentData, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("remote.segment.upload.PART_BYTES", 100_000)
    sizes: list[int] = []
    reads: list[int] = []

    class Measures(MemoryStore):
        def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
            reads.clear()
            kept = [bytes(part) for part in parts]
            if key.endswith(".log"):
                sizes.extend(len(part) for part in kept)
                assert max(reads) == 70_000
            super().upload(key, kept, size=size, crc32c=crc32c)

    def read(start: int, end: int) -> bytes:
        reads.append(end - start)
        return segment.read(start, end)

    entry = copied(Measures(), replace(segment, read=read), transforms(encoding, 70_000))
    assert PART_BYTES > 100_000
    assert sum(sizes) == entry.stored_log.size
    assert set(sizes[:-1]) == {100_000}
    assert 0 < sizes[-1] <= 100_000


# what fails


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("keeps_checksum", [True, False])
@pytest.mark.parametrize("damage", [lambda b: bytes(flipped(b, len(b) // 2)), lambda b: b[:-1], lambda b: b + b"\0"])
def test_a_store_that_holds_other_bytes_than_it_was_given_is_found_out(
    segment: LogSegmentData, encoding: str, number: int, keeps_checksum: bool, damage: Callable[[bytes], bytes]
) -> None:
    store = Corrupts(MemoryStore(), Nth("upload", number), damage)
    with pytest.raises(Corrupt, match="offload again") as raised:
        copied(store if keeps_checksum else KeepsNoChecksum(store), segment, transforms(encoding))
    assert raised.value.file == store.calls[number - 1][1]
    assert "put_if_absent" not in verbs(store.calls)


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_damaged_batch_is_refused_before_anything_is_written(segment: LogSegmentData, body: bytes, encoding: str) -> None:
    damaged = with_body(segment, flipped(body, len(body) // 2))
    store = MemoryStore()
    with pytest.raises(Corrupt) as raised:
        copied(store, damaged, transforms(encoding))
    assert (str(raised.value), store.calls) == (str(refused(damaged)), [])


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("run", [2, 3])
def test_a_file_that_changes_between_two_readings_is_refused(
    segment: LogSegmentData, body: bytes, encoding: str, run: int
) -> None:
    """It is read three times: checked, measured, sent."""
    runs = 0

    def read(start: int, end: int) -> bytes:
        nonlocal runs
        runs += start == 0
        return bytes((body if runs < run else flipped(body, 500))[start:end])

    store = MemoryStore()
    with pytest.raises(Corrupt) as raised:
        copied(store, replace(segment, read=read), transforms(encoding))
    assert "and now has" in raised.value.problem
    assert raised.value.file.startswith(PATH.prefix)
    assert runs == run
    assert store.objects == {}


@pytest.mark.parametrize("encoding", ENCODED)
@pytest.mark.parametrize("kept", [0, 1, 20_000, 64 << 20])
def test_what_is_kept_in_memory_is_bounded_and_not_read_again(segment: LogSegmentData, encoding: str, kept: int) -> None:
    reads: list[int] = []

    def read(start: int, end: int) -> bytes:
        reads.append(end - start)
        return segment.read(start, end)

    class Counts(MemoryStore):
        def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
            reads.clear()
            super().upload(key, parts, size=size, crc32c=crc32c)
            if key.endswith(".log"):
                again.append(sum(reads))

    again: list[int] = []
    store = Counts()
    entry = copied(store, replace(segment, read=read), transforms(encoding, 5_000, buffered_bytes_max=kept))
    assert log_of(store, entry) == segment.read(0, segment.size)
    expected = {0: segment.size, 1: segment.size, 64 << 20: 0}
    assert again[0] == expected[kept] if kept in expected else segment.size - again[0] > 0
    assert segment.size - again[0] <= max(kept * 10, segment.size if kept > 1 << 20 else 0)


@pytest.mark.parametrize("encoding", ENCODED)
def test_an_upload_can_be_made_again_and_gives_the_same_bytes(segment: LogSegmentData, encoding: str) -> None:
    class Twice(MemoryStore):
        def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
            first = b"".join(parts)
            super().upload(key, parts, size=size, crc32c=crc32c)
            assert self.objects[key] == first

    store = Twice()
    assert log_of(store, copied(store, segment, transforms(encoding))) == segment.read(0, segment.size)


@pytest.mark.parametrize("encoding", ENCRYPTED)
def test_nothing_that_has_changed_since_it_was_measured_is_encrypted_under_the_same_nonce(
    segment: LogSegmentData, body: bytes, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chunk that another upload has sent already would come apart if its nonce hid something else, too."""
    monkeypatch.setattr("remote.segment.upload.PART_BYTES", 10_000)
    now = body
    sent: list[bytes] = []

    class Sees(MemoryStore):
        def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
            nonlocal now
            whole = b"".join(parts)
            now = bytes(flipped(body, len(body) - 10))
            sent.extend(part for part in parts if bytes(part) not in whole)

    with pytest.raises(Corrupt, match="and now has"):
        copied(Sees(), replace(segment, read=lambda a, b: now[a:b]), transforms(encoding, 10_000))
    assert sent == []


@pytest.mark.parametrize("encoding", ENCRYPTED)
def test_without_the_current_key_nothing_is_written(segment: LogSegmentData, encoding: str) -> None:
    store = MemoryStore()
    how = replace(transforms(encoding), encryption=Encryption(LocalKeyRing("a file", "gone", {}), SeededRandomness()))
    with pytest.raises(NoKey, match="'gone'"):
        copied(store, segment, how)
    assert store.calls == []


@pytest.mark.parametrize("encoding", ENCRYPTED)
def test_a_second_attempt_after_a_failed_one_has_another_data_key(segment: LogSegmentData, encoding: str) -> None:
    how, store = transforms(encoding), MemoryStore()
    with pytest.raises(Unavailable):
        copied(FailsBefore(store, Unavailable("down"), Nth("upload", 2)), segment, how)
    (left,) = store.objects.values()
    again = MemoryStore()
    entry = copied(again, segment, how)
    assert bodies(again, entry)[0] != left
    assert log_of(again, entry, KEYS) == segment.read(0, segment.size)
