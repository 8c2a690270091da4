"""The chunk index: which bytes of an encoded object hold which bytes of its source.

    at  bytes  field
     0      1  version, 1
     1      4  source bytes of a chunk; the last chunk has the remainder
     5      8  source bytes of all chunks
    13      4  stored bytes of the shortest chunk, the last one not counted
    17      4  stored bytes of the last chunk
    21      1  bytes of a difference, 0 to 4
    22      …  a difference for every chunk but the last: its stored bytes less those of the shortest

All integers are big-endian and unsigned. The chunks are adjacent in the object. Encrypted chunks that are not compressed have
equal lengths, so their differences take no bytes; those of compressed chunks take two or three.
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer, need

VERSION = 1
CHUNK_BYTES = 4 << 20
CHUNK_BYTES_MAX = 64 << 20
CHUNKS_MAX = 1 << 20
_HEADER = struct.Struct(">BIQIIB")
_DIFFERENCE_MAX = 4


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """The positions at which chunks end, in the source and in the stored object; both start at 0. At least one chunk."""

    source_ends: tuple[int, ...]
    stored_ends: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.source_ends)

    @property
    def source_size(self) -> int:
        """The size of the source in bytes."""
        return self.source_ends[-1]

    @property
    def stored_size(self) -> int:
        """The size of the stored object in bytes."""
        return self.stored_ends[-1]

    def source_range(self, first: int, stop: int) -> tuple[int, int]:
        """The source bytes of the chunks `[first, stop)`."""
        return (self.source_ends[first - 1] if first else 0), self.source_ends[stop - 1]

    def stored_range(self, first: int, stop: int) -> tuple[int, int]:
        """The bytes of the object that hold the chunks `[first, stop)`."""
        return (self.stored_ends[first - 1] if first else 0), self.stored_ends[stop - 1]

    def covering(self, start: int, end: int) -> tuple[int, int]:
        """The chunks `[first, stop)` that hold the source bytes `[start, end)`; the range is inside the source and not empty."""
        return bisect_right(self.source_ends, start), bisect_right(self.source_ends, end - 1) + 1


def chunk_ends(source_size: int, chunk_bytes: int) -> tuple[int, ...]:
    """The positions at which chunks of `chunk_bytes` end in a source that is not empty."""
    return (*range(chunk_bytes, source_size, chunk_bytes), source_size)


def stored_bytes_max(source_bytes: int) -> int:
    """An upper bound of a chunk's stored size: zstd adds little to incompressible data, AES-GCM 16 bytes."""
    return source_bytes + (source_bytes >> 7) + 1024


def make_chunk_index(source_ends: Sequence[int], lengths: Sequence[int]) -> ChunkIndex:
    """The index of chunks with these ends in the source and these stored lengths. Raises Corrupt if they cannot match."""
    starts = (0, *source_ends[:-1])
    if not 0 < len(lengths) == len(source_ends) <= CHUNKS_MAX:
        raise Corrupt(f"a chunk index with {len(lengths)} lengths for {len(source_ends)} chunks; there are 1 to {CHUNKS_MAX}")
    for number, (start, end, length) in enumerate(zip(starts, source_ends, lengths, strict=True)):
        if not (start < end and 0 < length <= stored_bytes_max(end - start)):
            raise Corrupt(f"chunk {number} cannot hold source bytes [{start}, {end}) in {length} bytes of the object")
    return ChunkIndex(tuple(source_ends), tuple(accumulate(lengths)))


def write_chunk_index(chunk_bytes: int, source_size: int, lengths: Sequence[int]) -> bytes:
    """The bytes of an index of equal chunks with these stored lengths."""
    *others, last = lengths
    least = min(others, default=0)
    width = (max(others, default=0) - least).bit_length() + 7 >> 3
    header = _HEADER.pack(VERSION, chunk_bytes, source_size, least, last, width)
    return header + b"".join((length - least).to_bytes(width, "big") for length in others)


def read_chunk_bytes(body: Buffer) -> int:
    """The source bytes of a chunk, from the header alone. Raises Corrupt."""
    need(body, 0, _HEADER.size, "the header of a chunk index")
    chunk_bytes: int = _HEADER.unpack_from(body)[1]
    return chunk_bytes


def read_chunk_index(body: Buffer) -> ChunkIndex:
    """The index that `write_chunk_index` wrote. Raises Corrupt."""
    need(body, 0, _HEADER.size, "the header of a chunk index")
    version, chunk_bytes, source_size, least, last, width = _HEADER.unpack_from(body)
    if version != VERSION:
        raise Corrupt(f"a chunk index of version {version}; this version of kafka-tiering reads {VERSION}: upgrade it")
    chunks = -(-source_size // chunk_bytes) if 0 < chunk_bytes <= CHUNK_BYTES_MAX else 0
    if not 0 < chunks <= CHUNKS_MAX or width > _DIFFERENCE_MAX:
        raise Corrupt(f"a chunk index of {source_size} source bytes in chunks of {chunk_bytes}, differences of {width} bytes")
    size = _HEADER.size + (chunks - 1) * width
    if len(body) != size:
        raise Corrupt(f"a chunk index of {len(body)} bytes where {chunks} chunks take {size}", position=min(size, len(body)))
    places = range(_HEADER.size, size, width) if width else ()
    others = [least + int.from_bytes(body[at : at + width], "big") for at in places] or [least] * (chunks - 1)
    return make_chunk_index(chunk_ends(source_size, chunk_bytes), [*others, last])
