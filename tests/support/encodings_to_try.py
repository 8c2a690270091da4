"""Segments in each encoding: keys to encrypt with, sources that need not be logs, and what a store then holds."""

from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from archive_fakes import CountingIds, FixedClock, MemoryStore
from crc32c import crc32c
from made_manifests import PATH, entry
from seeded_randomness import SeededRandomness

from local_log.errors import Corrupt
from remote.manifest.segment_entry import AuxRange, SegmentEntry
from remote.segment.check import LogSegmentData
from remote.segment.repair import checked_copy
from remote.segment.upload import copy_segment
from remote.store.api import ObjectStore
from remote.transforms.chunk_index import write_chunk_index
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.encoded_segment import encoded_segment
from remote.transforms.encoder import Encryption, Transforms, encode
from remote.transforms.keys import KeyRing, LocalKeyRing

ENCODED = ("zstd", "aes-256-gcm", "zstd+aes-256-gcm")
ENCRYPTED = ENCODED[1:]
SEGMENT_ID = "5e" * 16
OLD_KEY, KEY = bytes(range(32)), bytes(range(100, 132))
KEYS = LocalKeyRing("keys of the tests", "new", {"old": OLD_KEY, "new": KEY})


def transforms(
    encoding: str, chunk_bytes: int = 1 << 16, *, keys: KeyRing = KEYS, seed: int = 0, buffered_bytes_max: int = 0
) -> Transforms:
    """What makes entries of this encoding, or of none where it is identity; all that is sent is encoded twice."""
    encryption = Encryption(keys, SeededRandomness(seed)) if "aes" in encoding else None
    return Transforms("zstd" in encoding, encryption, chunk_bytes, buffered_bytes_max)


def copied(store: ObjectStore, segment: LogSegmentData, how: Transforms) -> SegmentEntry:
    return copy_segment(store, PATH, checked_copy(segment), FixedClock(), CountingIds(), how)


def source_entry(log: bytes, aux: bytes, aux_ends: tuple[int, ...]) -> SegmentEntry:
    """The entry of an identity copy of these bytes, whose aux object has parts that end there."""
    ranges = {str(n): AuxRange(a, b, crc32c(aux[a:b])) for n, (a, b) in enumerate(pairwise((0, *aux_ends)))}
    sizes: dict[str, Any] = {"log_size": len(log), "log_crc32c": crc32c(log), "aux_size": len(aux), "aux_crc32c": crc32c(aux)}
    return entry(0, 10, aux_ranges=ranges, segment_id=SEGMENT_ID, **sizes)


def stored(log: bytes, aux: bytes, how: Transforms, aux_ends: tuple[int, ...] = ()) -> tuple[MemoryStore, SegmentEntry]:
    """A store with the objects that these sources become, and the entry that names them."""
    made = encode(PATH, source_entry(log, aux, aux_ends or (len(aux),)), lambda a, b: log[a:b], aux, how)
    store = MemoryStore()
    store.objects[PATH.segment(made.entry.log_name)] = b"".join(made.log)
    store.objects[PATH.segment(made.entry.aux_name)] = b"".join(made.aux)
    return store, made.entry


def bodies(store: MemoryStore, entry: SegmentEntry) -> tuple[bytes, bytes]:
    """The log and the aux object as they are stored."""
    return store.objects[PATH.segment(entry.log_name)], store.objects[PATH.segment(entry.aux_name)]


def log_of(store: ObjectStore, entry: SegmentEntry, keys: LocalKeyRing | None = KEYS) -> bytes:
    """All of the log, decoded."""
    return DecodedBytes(store, keys).log(PATH, entry, 0, entry.log_size)


def aux_of(store: ObjectStore, entry: SegmentEntry, keys: LocalKeyRing | None = KEYS) -> bytes:
    """All of the aux object, decoded."""
    return DecodedBytes(store, keys).aux(PATH, entry, 0, entry.aux_size)


def with_encoding(entry: SegmentEntry, **fields: Any) -> SegmentEntry:
    """The entry with other details of its encoding."""
    assert entry.encoded is not None
    return replace(entry, encoded=replace(entry.encoded, **fields))


def log_chunks_end(entry: SegmentEntry) -> list[int]:
    """Where the chunks of the log lie in its object: 0, and each one's end."""
    return [0, *encoded_segment(PATH, entry, KEYS).log.index.stored_ends]


def as_if_written(store: MemoryStore, entry: SegmentEntry, chunk_bytes: int, size: int, chunks: list[bytes]) -> SegmentEntry:
    """Puts these chunks in place of the log, and gives an entry that agrees with them as far as anybody can without a key."""
    body, lengths = b"".join(chunks), [len(chunk) for chunk in chunks]
    store.objects[PATH.segment(entry.log_name)] = body
    index = b64encode(write_chunk_index(chunk_bytes, size, lengths)).decode()
    return replace(with_encoding(entry, chunk_index=index, log_size=len(body)), log_size=size)


def finding(store: MemoryStore, entry: SegmentEntry, read: Callable[..., bytes] = log_of) -> Corrupt:
    with pytest.raises(Corrupt) as raised:
        read(store, entry)
    return raised.value


def opened_by_plugin(address: str) -> LocalKeyRing:
    """The key ring of a package that has registered itself."""
    return replace(KEYS, place=address)
