"""Encodes a segment for its upload: both objects as chunks, and the entry that says how to decode them.

A store needs an object's size and CRC-32C before its first byte, so each object is encoded once to measure it. The first
chunks stay in memory, up to a limit, and are sent from there. The rest is encoded again for the upload, and for each retry of
it, a chunk at a time and to the same bytes. A chunk whose source has changed since the measurement is refused before it is
encoded, so that no two plaintexts are encrypted under one nonce.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

from local_log.errors import Corrupt
from local_log.formats.checksum import crc32c
from local_log.formats.primitives import Buffer
from remote.clock import Randomness
from remote.keys import PartitionPath
from remote.manifest.segment_entry import IDENTITY, EncodingInfo, SegmentEntry
from remote.transforms.chunk_codec import ChunkCodec
from remote.transforms.chunk_index import CHUNK_BYTES, chunk_ends, write_chunk_index
from remote.transforms.encoded_segment import ENCODINGS, aux_ends
from remote.transforms.encryption import AUX_OBJECT, DATA_KEY_BYTES, LOG_OBJECT, NONCE_BYTES, ChunkPlace, SegmentCipher
from remote.transforms.keys import KeyRing

BUFFERED_BYTES_MAX = 64 << 20

Read = Callable[[int, int], Buffer]
"""Reads the source bytes `[start, end)`."""


@dataclass(frozen=True, slots=True)
class Encryption:
    """The key ring that wraps data keys, and the source of their random bytes."""

    keys: KeyRing
    randomness: Randomness


@dataclass(frozen=True, slots=True)
class Transforms:
    """How segments are encoded for the archive; by default not at all. `chunk_bytes` counts source bytes.

    At most `buffered_bytes_max` of each object stay in memory, encoded, until the upload.
    A segment that is compressed already is not compressed again; encryption applies to every segment.
    """

    compress: bool = False
    encryption: Encryption | None = None
    chunk_bytes: int = CHUNK_BYTES
    buffered_bytes_max: int = BUFFERED_BYTES_MAX


@dataclass(frozen=True, slots=True)
class SourceObject:
    """An object of a segment before it is encoded: its `key`, LOG_OBJECT or AUX_OBJECT, its bytes, and their CRC-32C.

    `chunk_ends` are the positions at which its chunks end.
    """

    key: str
    number: int
    read: Read
    chunk_ends: tuple[int, ...]
    crc32c: int

    def chunks(self) -> Iterator[tuple[ChunkPlace, Buffer]]:
        """Each chunk with its place. Raises what `read` raises."""
        return self.chunks_from(0)

    def chunks_from(self, first: int) -> Iterator[tuple[ChunkPlace, Buffer]]:
        """The same from chunk number `first` on."""
        for n, (start, end) in [*enumerate(pairwise((0, *self.chunk_ends)))][first:]:
            yield ChunkPlace(self.number, n, end == self.chunk_ends[-1]), self.read(start, end)


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """An object in its stored form: the CRC-32C of each chunk's source, and each chunk's stored length in bytes.

    `crc32c` is that of all bytes of the stored object. `buffered` are its first chunks, encoded.
    """

    source: SourceObject
    codec: ChunkCodec
    source_crc32cs: tuple[int, ...]
    lengths: tuple[int, ...]
    crc32c: int
    buffered: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """Bytes of the object as it is stored."""
        return sum(self.lengths)

    def __iter__(self) -> Iterator[bytes]:
        """The chunks in their stored form, the same bytes each time. Raises Corrupt where the source has changed."""
        yield from self.buffered
        for place, source in self.source.chunks_from(len(self.buffered)):
            found, expected = crc32c(source), self.source_crc32cs[place.number]
            if found != expected:
                raise _changed(self.source.key, expected, found)
            yield self.codec.encode(place, source)

    def in_parts(self, part_bytes: int) -> "FixedSizeParts":
        """The same bytes in parts of exactly `part_bytes`, as a store uploads them; can be iterated more than once."""
        return FixedSizeParts(self, part_bytes)


@dataclass(frozen=True, slots=True)
class FixedSizeParts:
    """Chunks regrouped into parts of exactly `part_bytes`; the last part has the remainder."""

    chunks: Iterable[Buffer]
    part_bytes: int

    def __iter__(self) -> Iterator[bytes]:
        part = bytearray()
        for chunk in self.chunks:
            view = memoryview(chunk)
            while len(part) + len(view) >= self.part_bytes:
                taken = self.part_bytes - len(part)
                part += view[:taken]
                yield bytes(part)
                part.clear()
                view = view[taken:]
            part += view
        if part:
            yield bytes(part)


@dataclass(frozen=True, slots=True)
class Encoded:
    """An entry with its encoding, and the encoded bytes of its two objects."""

    entry: SegmentEntry
    log: EncodedBody
    aux: EncodedBody


def encode(path: PartitionPath, entry: SegmentEntry, read_log: Read, aux: bytes, transforms: Transforms) -> Encoded:
    """Encodes a segment. `entry` describes it without encoding, `aux` are all bytes of its aux object. Reads the log once.

    Raises NoKey, Unavailable, what `read_log` raises, and Corrupt where the log no longer has the CRC-32C of the entry.
    """
    cipher, info = None, EncodingInfo("", (), 0, 0, 0, 0)
    if transforms.encryption is not None:
        cipher, info = _with_new_data_key(path, entry, transforms.encryption)
    codec = ChunkCodec(transforms.compress, cipher)
    ends = chunk_ends(entry.log_size, transforms.chunk_bytes)
    log_source = SourceObject(path.segment(entry.log_name), LOG_OBJECT, read_log, ends, entry.log_crc32c)
    ends = aux_ends(entry.aux_ranges.values())
    aux_source = SourceObject(path.segment(entry.aux_name), AUX_OBJECT, lambda a, b: aux[a:b], ends, entry.aux_crc32c)
    log = _encoded(log_source, codec, transforms.buffered_bytes_max)
    encoded_aux = _encoded(aux_source, codec, transforms.buffered_bytes_max)
    info = replace(
        info,
        chunk_index=_base64(write_chunk_index(transforms.chunk_bytes, entry.log_size, log.lengths)),
        aux_lengths=encoded_aux.lengths,
        log_size=log.size,
        log_crc32c=log.crc32c,
        aux_size=encoded_aux.size,
        aux_crc32c=encoded_aux.crc32c,
    )
    return Encoded(replace(entry, encoding=encoding_name(transforms), encoded=info), log, encoded_aux)


def encoding_name(transforms: Transforms) -> str:
    """The name under which an entry states these transforms, IDENTITY for none."""
    wanted = transforms.compress, transforms.encryption is not None
    return next((name for name, does in ENCODINGS.items() if does == wanted), IDENTITY)


def _with_new_data_key(path: PartitionPath, entry: SegmentEntry, encryption: Encryption) -> tuple[SegmentCipher, EncodingInfo]:
    data_key = encryption.randomness.random_bytes(DATA_KEY_BYTES)
    nonce = encryption.randomness.random_bytes(NONCE_BYTES)
    key_id = encryption.keys.current
    wrapped = _base64(encryption.keys.wrap(key_id, data_key))
    info = EncodingInfo("", (), 0, 0, 0, 0, key_id, wrapped, _base64(nonce))
    return SegmentCipher(data_key, nonce, path, entry.segment_id), info


def _encoded(source: SourceObject, codec: ChunkCodec, buffered_bytes_max: int) -> EncodedBody:
    """Encodes every chunk once, for their lengths and checksums, and keeps the first ones in memory.

    Raises Corrupt if the source's bytes do not have the CRC-32C that it states.
    """
    crcs: list[int] = []
    lengths: list[int] = []
    buffered: list[bytes] = []
    crc = stored_crc = 0
    for place, chunk in source.chunks():
        crcs.append(crc32c(chunk))
        crc = crc32c(chunk, crc)
        stored = codec.encode(place, chunk)
        lengths.append(len(stored))
        stored_crc = crc32c(stored, stored_crc)
        if len(buffered) == place.number and sum(lengths) <= buffered_bytes_max:
            buffered.append(stored)
    if crc != source.crc32c:
        raise _changed(source.key, source.crc32c, crc)
    return EncodedBody(source, codec, tuple(crcs), tuple(lengths), stored_crc, tuple(buffered))


def _changed(key: str, expected: int, found: int) -> Corrupt:
    return Corrupt(f"what is copied there had CRC-32C {expected:08x} and now has {found:08x}; offload again", file=key)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
