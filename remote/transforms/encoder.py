"""A segment on its way up: its objects as chunks, each in its stored form, and the entry that says how to undo them.

A store wants an object's size and CRC-32C before its first byte, so an object is encoded once to be measured. As much of it as
may be kept in memory is sent from there; the rest is encoded again when it is sent, and for each upload that has to be repeated,
a chunk at a time, each time to the same bytes. A chunk whose source has changed since then is refused before it is encoded:
under its nonce nothing else than what was measured ever leaves.
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
from remote.manifest.model import IDENTITY, EncodingInfo, SegmentEntry
from remote.transforms.chunk_codec import ChunkCodec
from remote.transforms.chunk_index import chunk_ends, write_chunk_index
from remote.transforms.encoded_segment import ENCODINGS, aux_ends
from remote.transforms.encryption import AUX_OBJECT, DATA_KEY_BYTES, LOG_OBJECT, NONCE_BYTES, ChunkPlace, SegmentCipher
from remote.transforms.keys import KeyRing

CHUNK_BYTES = 4 << 20
KEPT_BYTES_MAX = 64 << 20

Read = Callable[[int, int], Buffer]
"""Gives the source bytes `[start, end)`."""


@dataclass(frozen=True, slots=True)
class Encryption:
    """What it takes to encrypt: who wraps data keys, and where they come from."""

    keys: KeyRing
    randomness: Randomness


@dataclass(frozen=True, slots=True)
class Transforms:
    """What is done to segments on their way up; by default nothing. `chunk_bytes` are source bytes.

    At most `kept_bytes_max` of each object are kept in memory, encoded, until it is uploaded.
    Compressed is what is not compressed already, and encrypted whatever there is.
    """

    compress: bool = False
    encryption: Encryption | None = None
    chunk_bytes: int = CHUNK_BYTES
    kept_bytes_max: int = KEPT_BYTES_MAX


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """The chunks of one object: where they end in its source, the CRC-32C of each one's source, its length as stored.

    `crc32c` is that of the whole object as it is stored. `kept` are its first chunks.
    """

    key: str
    number: int
    codec: ChunkCodec
    read: Read
    ends: tuple[int, ...]
    source_crc32cs: tuple[int, ...]
    lengths: tuple[int, ...]
    crc32c: int
    kept: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """Bytes of the object as it is stored."""
        return sum(self.lengths)

    def __iter__(self) -> Iterator[bytes]:
        """The chunks as they are stored, the same each time. Raises Corrupt where the source is not what was measured."""
        yield from self.kept
        for n, (start, end) in [*enumerate(pairwise((0, *self.ends)))][len(self.kept) :]:
            source = self.read(start, end)
            found, expected = crc32c(source), self.source_crc32cs[n]
            if found != expected:
                raise _changed(self.key, expected, found)
            yield self.codec.encode(ChunkPlace(self.number, n, end == self.ends[-1]), source)

    def in_parts(self, part_bytes: int) -> "Parts":
        """The same bytes in parts of just `part_bytes`, as a store wants them, again and again."""
        return Parts(self, part_bytes)


@dataclass(frozen=True, slots=True)
class Parts:
    """The bytes of chunks in parts of just `part_bytes`; the last one has what is left."""

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
    """An entry that says how its objects are encoded, and their chunks."""

    entry: SegmentEntry
    log: EncodedBody
    aux: EncodedBody


def encode(path: PartitionPath, entry: SegmentEntry, read_log: Read, aux: bytes, transforms: Transforms) -> Encoded:
    """What becomes of a segment: `entry` is that of its identity, `aux` all of its aux object. Reads the log once.

    Raises NoKey, Unavailable, what `read_log` raises, and Corrupt where the log is not what the entry states any more.
    """
    cipher, info = None, EncodingInfo("", (), 0, 0, 0, 0)
    if transforms.encryption is not None:
        cipher, info = _with_new_data_key(path, entry, transforms.encryption)
    codec = ChunkCodec(transforms.compress, cipher)
    ends = chunk_ends(entry.log_size, transforms.chunk_bytes)
    kept_max = transforms.kept_bytes_max
    log = _measured(path.segment(entry.log_name), LOG_OBJECT, codec, read_log, ends, entry.log_crc32c, kept_max)
    ends = aux_ends(entry.aux_ranges.values())
    beside = _measured(path.segment(entry.aux_name), AUX_OBJECT, codec, lambda a, b: aux[a:b], ends, entry.aux_crc32c, kept_max)
    info = replace(
        info,
        chunk_index=_base64(write_chunk_index(transforms.chunk_bytes, entry.log_size, log.lengths)),
        aux_lengths=beside.lengths,
        log_size=log.size,
        log_crc32c=log.crc32c,
        aux_size=beside.size,
        aux_crc32c=beside.crc32c,
    )
    return Encoded(replace(entry, encoding=encoding_name(transforms), encoded=info), log, beside)


def encoding_name(transforms: Transforms) -> str:
    """What an entry calls these transforms."""
    wanted = transforms.compress, transforms.encryption is not None
    return next((name for name, does in ENCODINGS.items() if does == wanted), IDENTITY)


def _with_new_data_key(path: PartitionPath, entry: SegmentEntry, encryption: Encryption) -> tuple[SegmentCipher, EncodingInfo]:
    data_key = encryption.randomness.random_bytes(DATA_KEY_BYTES)
    nonce = encryption.randomness.random_bytes(NONCE_BYTES)
    key_id = encryption.keys.current
    wrapped = _base64(encryption.keys.wrap(key_id, data_key))
    info = EncodingInfo("", (), 0, 0, 0, 0, key_id, wrapped, _base64(nonce))
    return SegmentCipher(data_key, nonce, path, entry.segment_id), info


def _measured(
    key: str, number: int, codec: ChunkCodec, read: Read, ends: tuple[int, ...], source_crc32c: int, kept_max: int
) -> EncodedBody:
    """Encodes every chunk and keeps its measures, and the first chunks while there is room.

    Raises Corrupt unless the whole source has this CRC-32C.
    """
    crcs: list[int] = []
    lengths: list[int] = []
    kept: list[bytes] = []
    crc = stored_crc = 0
    for n, (start, end) in enumerate(pairwise((0, *ends))):
        source = read(start, end)
        crcs.append(crc32c(source))
        crc = crc32c(source, crc)
        stored = codec.encode(ChunkPlace(number, n, end == ends[-1]), source)
        lengths.append(len(stored))
        stored_crc = crc32c(stored, stored_crc)
        if len(kept) == n and sum(lengths) <= kept_max:
            kept.append(stored)
    if crc != source_crc32c:
        raise _changed(key, source_crc32c, crc)
    return EncodedBody(key, number, codec, read, ends, tuple(crcs), tuple(lengths), stored_crc, tuple(kept))


def _changed(key: str, expected: int, found: int) -> Corrupt:
    return Corrupt(f"what is copied there had CRC-32C {expected:08x} and now has {found:08x}; offload again", file=key)


def _base64(data: bytes) -> str:
    return b64encode(data).decode()
