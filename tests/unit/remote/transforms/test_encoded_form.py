"""The bytes of encoded objects, taken apart without any code of ours: another program can read them by ARCHITECTURE.md alone."""

import base64
import struct
from typing import ClassVar

import pytest
import zstandard
from archive_fakes import MemoryStore
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap
from encodings_to_try import ENCODED, ENCRYPTED, KEY, bodies, copied, stored, transforms
from made_manifests import PATH, TOPIC_ID, manifest

from remote.manifest.codec import encode
from remote.manifest.segment_entry import SegmentEntry
from remote.segment.check import LogSegmentData

CHUNK = 1000
LOG = bytes(n * n % 251 for n in range(3500))
AUX = b"index " * 40 + b"times " * 10 + b"epochs"
AUX_ENDS = (240, 300, 306)


def lengths_of_log(entry: SegmentEntry) -> list[int]:
    """The stored lengths of the log's chunks, read from the manifest's JSON."""
    assert entry.encoded is not None
    index = base64.b64decode(entry.encoded.chunk_index)
    version, chunk_bytes, source_bytes, least, last, width = struct.unpack(">BIQIIB", index[:22])
    assert (version, chunk_bytes, source_bytes) == (1, CHUNK, len(LOG))
    chunks = -(-source_bytes // chunk_bytes)
    more = [int.from_bytes(index[22 + n * width : 22 + (n + 1) * width], "big") for n in range(chunks - 1)]
    return [*(least + m for m in more), last]


def plain_chunks(body: bytes, lengths: list[int], number: int, entry: SegmentEntry) -> list[bytes]:
    """An object's chunks, decrypted by what its entry and the key say."""
    info = entry.encoded
    assert info is not None
    assert info.key_id == "new"
    aead = AESGCM(aes_key_unwrap(KEY, base64.b64decode(info.wrapped_key)))
    plain, at = [], 0
    for n, length in enumerate(lengths):
        nonce = bytes(a ^ b for a, b in zip(base64.b64decode(info.nonce), struct.pack(">IQ", number, n), strict=True))
        bound = b"KTC1" + TOPIC_ID.encode() + struct.pack(">i", PATH.partition) + bytes.fromhex(entry.segment_id)
        bound += bytes([number, "zstd" in entry.encoding]) + struct.pack(">Q", n) + bytes([n == len(lengths) - 1])
        assert len(bound) == 57
        plain.append(aead.decrypt(nonce, body[at : at + length], bound))
        at += length
    assert at == len(body)
    return plain


@pytest.mark.parametrize("encoding", ENCODED)
def test_an_object_is_its_chunks_one_after_the_other(encoding: str) -> None:
    store, entry = stored(LOG, AUX, transforms(encoding, CHUNK), AUX_ENDS)
    assert entry.encoded is not None
    assert entry.encoding == encoding
    for number, body, lengths, source, ends in (
        (0, bodies(store, entry)[0], lengths_of_log(entry), LOG, (1000, 2000, 3000, 3500)),
        (1, bodies(store, entry)[1], [*entry.encoded.aux_lengths], AUX, AUX_ENDS),
    ):
        starts = [sum(lengths[:n]) for n in range(len(lengths))]
        chunks = [body[at : at + length] for at, length in zip(starts, lengths, strict=True)]
        if encoding in ENCRYPTED:
            chunks = plain_chunks(body, lengths, number, entry)
        if "zstd" in encoding:
            assert all(zstandard.get_frame_parameters(c).has_checksum for c in chunks)
            chunks = [zstandard.ZstdDecompressor().decompress(c) for c in chunks]
        assert chunks == [source[a:b] for a, b in zip((0, *ends), ends, strict=False)]


def test_what_is_encrypted_grows_by_a_tag_of_16_bytes_a_chunk() -> None:
    store, entry = stored(LOG, AUX, transforms("aes-256-gcm", CHUNK), AUX_ENDS)
    assert [len(body) for body in bodies(store, entry)] == [len(LOG) + 4 * 16, len(AUX) + 3 * 16]
    assert LOG[:32] not in bodies(store, entry)[0]
    assert b"index index" not in bodies(store, entry)[1]


def test_a_known_segment_has_known_bytes() -> None:
    store, entry = stored(b"abc" * 10, b"xyz", transforms("aes-256-gcm", 20))
    info = entry.encoded
    assert info is not None
    log, aux = bodies(store, entry)
    assert log[:36].hex() == "bc66c292491414278a15ed4122c9b79d80410ecf907510272e74529d662ed89a2f07d638"
    assert log[36:].hex() == "42461256f91281a13bed53912be5d1b951e9515b0c1ef2d372c7"
    assert aux.hex() == "e56573aca7ce282909abc611c8de3ca4df1fd4"
    assert info.wrapped_key == "qv8txkhocLmzpkNPZ94ql6nYS0lqCgvNe/cKIAk0Yvta57OmakMPng=="
    assert (info.key_id, info.nonce) == ("new", "Lxafm05qECR1IgnN")
    assert info.chunk_index == "AQAAABQAAAAAAAAAHgAAACQAAAAaAA=="
    assert (info.log_size, info.aux_size, info.aux_lengths) == (62, 19, (19,))
    assert (info.log_crc32c, info.aux_crc32c) == (2446838983, 231673594)


class Listens:
    """Notes what is encrypted under which key and nonce."""

    heard: ClassVar[list[tuple[bytes, bytes, bytes, bytes]]] = []

    def __init__(self, key: bytes) -> None:
        self.inner = AESGCM(key)
        self.key = key

    def encrypt(self, nonce: bytes, data: bytes, bound: bytes) -> bytes:
        self.heard.append((self.key, nonce, bytes(data), bound))
        return self.inner.encrypt(nonce, data, bound)


def test_under_one_data_key_a_nonce_encrypts_one_thing_and_each_attempt_has_a_data_key_of_its_own(
    segment: LogSegmentData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cryptography.hazmat.primitives.ciphers.aead.AESGCM", Listens)
    monkeypatch.setattr(Listens, "heard", [])
    how = transforms("aes-256-gcm", 1 << 16)
    first, second = copied(MemoryStore(), segment, how), copied(MemoryStore(), segment, how)
    assert first.log_name == second.log_name  # two attempts that differ in nothing but what was random
    under: dict[bytes, dict[bytes, set[tuple[bytes, bytes]]]] = {}
    for key, nonce, data, bound in Listens.heard:
        under.setdefault(key, {}).setdefault(nonce, set()).add((data, bound))
    chunks = -(-segment.size // (1 << 16)) + len(first.aux_ranges)
    assert [len(nonces) for nonces in under.values()] == [chunks, chunks]
    assert all(len(things) == 1 for nonces in under.values() for things in nonces.values())


def test_no_data_key_is_in_the_manifest(segment: LogSegmentData, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cryptography.hazmat.primitives.ciphers.aead.AESGCM", Listens)
    monkeypatch.setattr(Listens, "heard", [])
    entry = copied(MemoryStore(), segment, transforms("aes-256-gcm"))
    (data_key,) = {key for key, *_ in Listens.heard}
    body = encode(manifest(entry, log_start_offset=entry.base_offset))
    assert not any(form in body for form in (data_key, base64.b64encode(data_key), data_key.hex().encode()))
