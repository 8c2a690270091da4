"""Decompresses and compresses a batch's records section in Kafka's framings, with a limit on the decompressed size.

gzip    one or more gzip members
snappy  xerial framing (8 magic bytes, two int32, then blocks of int32 length and raw snappy) as Java writes it, or one
        raw block as librdkafka and Go write it
lz4     one lz4 frame
zstd    frames without a content size
Every declared length is checked against the limit before memory is allocated: raw snappy and zstd allocate what a frame declares.

`compress` writes as Kafka 4.3 does: a gzip header without time, file or system; xerial blocks of 32 KiB; independent lz4 blocks
of 64 KiB; a zstd block that is flushed before its frame ends. Any reader can decompress the result. Its bytes are equal to those
of Kafka's libraries for gzip, for lz4 from level 3 on and for zstd except at levels 3 and 4, where Kafka uses another release.
Snappy blocks may differ by a few bytes. Source: Kafka's CompressionType and its implementations.

Each library is loaded by the first call that needs it: many a command reads no compressed batch.
"""

import struct
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from local_log.errors import Corrupt, Invalid
from local_log.formats.primitives import Buffer, need, read_uvarint
from local_log.formats.record import Codec

if TYPE_CHECKING:
    import zstandard

INFLATED_BYTES_MAX = 1 << 30
GZIP_MEMBERS_MAX = 4096
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_INT32 = struct.Struct(">i")
_LZ4_FLAGS_AT = 4
_LZ4_MAGIC = 0x184D2204
_LZ4_HEADER = struct.Struct("<IBB")
_LZ4_HEADER_MIN = 7
_LZ4_USUAL_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_ONE_BLOCK, _LZ4_SIZE_BYTES, _LZ4_END = struct.Struct("<7sI"), 4, bytes(4)
"""The usual header with the size of the first block; the size of no block ends the frame."""
_LZ4_STORED, _LZ4_BLOCK_BYTES = 1 << 31, 1 << 16
_LZ4_FORMER_CHECKSUM = b"\x1a"  # second byte of the xxHash32 of 04224d186040
_LZ4_CONTENT_CHECKSUM, _LZ4_CONTENT_SIZE, _LZ4_BLOCK_CHECKSUM = 0x04, 0x08, 0x10
_LZ4_FLAGS_FIXED, _LZ4_FLAGS_VALUE = 0xE3, 0x60  # version 1, independent blocks, no dictionary
_LZ4_BLOCKS = (0x40, 0x50, 0x60, 0x70)
_ZSTD_HEADER_MAX = 18
_ZSTD_RUN = 1


def inflate(codec: int, payload: Buffer, *, bytes_max: int = INFLATED_BYTES_MAX) -> Buffer:
    """`payload` decompressed. Raises Corrupt for an unknown codec, an invalid frame, or more than `bytes_max` bytes."""
    return Inflater().inflate(codec, payload, bytes_max=bytes_max)


class Inflater:
    """Decompresses payloads one by one and reuses the memory that zstd allocates. Not thread-safe."""

    def __init__(self) -> None:
        self._zstd: zstandard.ZstdDecompressor | None = None

    def inflate(self, codec: int, payload: Buffer, *, bytes_max: int = INFLATED_BYTES_MAX) -> Buffer:
        """As the function `inflate`."""
        reader = _READERS.get(codec)
        if reader is None and codec != Codec.zstd:
            raise Corrupt(f"compression codec {codec} does not exist; Kafka has 0 to {max(Codec)}")
        try:
            if reader is not None:
                return reader(payload, bytes_max)
            self._zstd = self._zstd or _zstd_decompressor()
            return _inflated_by(self._zstd, payload, bytes_max)
        except _damages() as e:
            raise Corrupt(f"{Codec(codec).name} frame does not inflate: {e}") from e


def _zstd_decompressor() -> "zstandard.ZstdDecompressor":
    import zstandard

    return zstandard.ZstdDecompressor()


def _damages() -> tuple[type[Exception], ...]:
    """What a library raises for a frame that does not inflate."""
    import snappy
    import zstandard

    return zlib.error, zstandard.ZstdError, snappy.UncompressError, RuntimeError, EOFError, ValueError


def is_lz4_that_kafka_reads(frame: Buffer) -> bool:
    """Whether the frame's blocks are independent; Kafka rejects dependent blocks, which this module decompresses."""
    return len(frame) > _LZ4_FLAGS_AT and frame[_LZ4_FLAGS_AT] & _LZ4_FLAGS_FIXED == _LZ4_FLAGS_VALUE


def with_sound_lz4_header(frame: Buffer) -> Buffer:
    """The lz4 frame with a header whose checksum is correct. Raises Corrupt for a header that Kafka rejects.

    The library creates the new header, with the same flags but without the content size, which is optional.
    """
    view = memoryview(frame)
    need(view, 0, _LZ4_HEADER_MIN, "the header of an lz4 frame")
    magic, flags, block = _LZ4_HEADER.unpack_from(view)
    size = _LZ4_HEADER_MIN + (8 if flags & _LZ4_CONTENT_SIZE else 0)
    if magic != _LZ4_MAGIC or flags & _LZ4_FLAGS_FIXED != _LZ4_FLAGS_VALUE or block not in _LZ4_BLOCKS:
        raise Corrupt(f"lz4 frame with header {bytes(view[:_LZ4_HEADER_MIN]).hex()}, which is none of Kafka's")
    need(view, 0, size, "the header of an lz4 frame")
    import lz4.frame

    header: bytes = lz4.frame.compress_begin(
        lz4.frame.create_compression_context(),
        block_size=block >> 4,
        block_linked=False,
        block_checksum=bool(flags & _LZ4_BLOCK_CHECKSUM),
        content_checksum=bool(flags & _LZ4_CONTENT_CHECKSUM),
    )
    return b"".join((header, view[size:]))


def with_former_lz4_checksum(frame: Buffer) -> bytes:
    """The lz4 frame of `compress` with the wrong header checksum that Kafka still writes in magic 0 (KAFKA-3160).

    Its old clients expect it: a checksum of the frame's magic number, too.
    """
    view = memoryview(frame)
    return b"".join((view[: _LZ4_HEADER_MIN - 1], _LZ4_FORMER_CHECKSUM, view[_LZ4_HEADER_MIN:]))


def _too_large(bytes_max: int) -> Corrupt:
    return Corrupt(f"a batch that inflates to more than {bytes_max} bytes")


def _none(payload: Buffer, bytes_max: int) -> Buffer:
    return payload


def _gzip(payload: Buffer, bytes_max: int) -> bytes:
    chunk = min(bytes_max + 1, _first_guess(payload))  # the library briefly holds the output of one call twice
    out: list[bytes] = []
    size = members = 0
    rest: Buffer = payload
    while rest or not members:
        member = zlib.decompressobj(31)
        members += 1
        if members > GZIP_MEMBERS_MAX:
            raise Corrupt(f"more than {GZIP_MEMBERS_MAX} gzip members in one batch")
        while not member.eof:
            out.append(member.decompress(rest, min(bytes_max + 1 - size, chunk)))
            size += len(out[-1])
            if size > bytes_max:
                raise _too_large(bytes_max)
            if not out[-1] and not member.eof:
                raise Corrupt("gzip frame ends early")
            rest = member.unconsumed_tail
        rest = member.unused_data
    return out[0] if len(out) == 1 else b"".join(out)


def _snappy(payload: Buffer, bytes_max: int) -> bytes:
    view = memoryview(payload)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _snappy_block(view, bytes_max, bytes_max)
    need(view, 0, _XERIAL_HEADER, "the header of xerial snappy")
    blocks: list[bytes] = []
    size, pos = 0, _XERIAL_HEADER
    while pos < len(view):
        need(view, pos, 4, "a snappy block's length")
        length = _INT32.unpack_from(view, pos)[0]
        if length < 0:
            raise Corrupt(f"snappy block of {length} bytes", position=pos)
        need(view, pos + 4, length, "a snappy block")
        blocks.append(_snappy_block(view[pos + 4 : pos + 4 + length], bytes_max - size, bytes_max))
        size += len(blocks[-1])
        pos += 4 + length
    return b"".join(blocks)


def _snappy_block(block: memoryview, bytes_left: int, bytes_max: int) -> bytes:
    claimed, _ = read_uvarint(block, 0, "a snappy block's inflated length")
    if claimed > bytes_left:
        raise _too_large(bytes_max)
    import snappy

    inflated: bytes = snappy.uncompress(block)
    return inflated


def _lz4(payload: Buffer, bytes_max: int) -> Buffer:
    found = _lz4_of_one_block(memoryview(payload))
    if found is not None and len(found) <= bytes_max:
        return found
    import lz4.frame

    context = lz4.frame.create_decompression_context()
    chunk = min(bytes_max + 1, _first_guess(payload))  # the library allocates the maximum that it is given
    out: list[bytes] = []
    rest, size, ended = memoryview(payload), 0, False
    while not ended:
        part, taken, ended = lz4.frame.decompress_chunk(context, rest, max_length=min(bytes_max + 1 - size, chunk))
        out.append(part)
        rest, size = rest[taken:], size + len(part)
        if size > bytes_max:
            raise _too_large(bytes_max)
        if not (taken or part or ended):
            raise Corrupt("lz4 frame ends early")
    if rest:
        raise Corrupt(f"{len(rest)} bytes are left over after the lz4 frame")
    return out[0] if len(out) == 1 else b"".join(out)


def _lz4_of_one_block(frame: memoryview) -> Buffer | None:
    """What a frame of one block has in it, as Kafka's clients write it for a small batch; None for any other frame.

    The library takes four times as long for a frame as for its block.
    """
    end = len(frame) - _LZ4_SIZE_BYTES
    if end < _LZ4_ONE_BLOCK.size:
        return None
    header, size = _LZ4_ONE_BLOCK.unpack_from(frame)
    if header != _LZ4_USUAL_HEADER or size & ~_LZ4_STORED != end - _LZ4_ONE_BLOCK.size or frame[end:] != _LZ4_END:
        return None
    block = frame[_LZ4_ONE_BLOCK.size : end]
    if size & _LZ4_STORED:
        return block if len(block) <= _LZ4_BLOCK_BYTES else None
    import lz4.block

    try:
        inflated: bytes = lz4.block.decompress(block, uncompressed_size=_LZ4_BLOCK_BYTES)
    except lz4.block.LZ4BlockError:
        return None  # reading it as a frame says what is wrong with it
    return inflated


def _first_guess(payload: Buffer) -> int:
    """A size in bytes that most payloads do not exceed when they are decompressed."""
    return max(1 << 16, 8 * len(payload))


def _inflated_by(zstd: "zstandard.ZstdDecompressor", payload: Buffer, bytes_max: int) -> bytes:
    _check_zstd_frames(memoryview(payload))
    chunk = min(bytes_max + 1, _first_guess(payload))
    out: list[bytes] = []
    size = 0
    with zstd.stream_reader(payload, read_across_frames=True) as reader:
        while part := reader.read(chunk):
            size += len(part)
            if size > bytes_max:
                raise _too_large(bytes_max)
            out.append(part)
    return out[0] if len(out) == 1 else b"".join(out)


def _check_zstd_frames(payload: memoryview) -> None:
    """Raises Corrupt unless the payload consists of complete frames: the library accepts a truncated frame.

    A frame is a header, blocks with a 3-byte header (bit 0 last block, 1-2 type, then size; a run-length block has one byte) and,
    if the header says so, a checksum (RFC 8878).
    """
    import zstandard

    pos = 0
    while pos < len(payload):
        parameters = zstandard.get_frame_parameters(payload[pos : pos + _ZSTD_HEADER_MAX])
        pos += zstandard.frame_header_size(payload[pos : pos + _ZSTD_HEADER_MAX])
        last = False
        while not last:
            need(payload, pos, 3, "a zstd block's header")
            header = int.from_bytes(payload[pos : pos + 3], "little")
            last, kind, size = bool(header & 1), header >> 1 & 3, header >> 3
            pos += 3 + (1 if kind == _ZSTD_RUN else size)
        pos += 4 if parameters.has_checksum else 0
    if pos != len(payload):
        raise Corrupt("zstd frame ends early", position=len(payload))


_GZIP_HEADER = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
_GZIP_TRAILER = struct.Struct("<II")
_XERIAL_BLOCK = 32 << 10
_XERIAL_START = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_LZ4_FAST, _LZ4_LEVEL_MIN = 0, 3

LEVELS = {Codec.gzip: range(1, 10), Codec.lz4: range(1, 18), Codec.zstd: range(-(1 << 17), 23)}
"""The valid values of `compression.<codec>.level`; snappy has no levels."""

DEFAULT_LEVELS = {Codec.gzip: -1, Codec.lz4: 9, Codec.zstd: 3}


def compress(codec: Codec, data: Buffer, level: int | None = None) -> bytes:
    """`data` compressed in Kafka's framing, at `level` or Kafka's default. Raises Invalid for a level that Kafka lacks."""
    default = DEFAULT_LEVELS.get(codec)
    if level is not None and level != default and level not in LEVELS.get(codec, ()):
        allowed = f"{LEVELS[codec][0]} to {LEVELS[codec][-1]}, or {default}" if codec in LEVELS else "none"
        raise Invalid(f"{codec.name} has no level {level}; it has {allowed}")
    return _WRITERS[codec](data, (default or 0) if level is None else level)


def _as_it_is(data: Buffer, _level: int) -> bytes:
    return bytes(data)


def _to_gzip(data: Buffer, level: int) -> bytes:
    stream = zlib.compressobj(level, zlib.DEFLATED, -zlib.MAX_WBITS)
    trailer = _GZIP_TRAILER.pack(zlib.crc32(data), len(data) & 0xFFFFFFFF)
    return b"".join((_GZIP_HEADER, stream.compress(data), stream.flush(), trailer))


def _to_xerial(data: Buffer, _level: int) -> bytes:
    import snappy

    view = memoryview(data)
    parts = [_XERIAL_START]
    for start in range(0, len(view), _XERIAL_BLOCK):
        block = bytes(snappy.compress(view[start : start + _XERIAL_BLOCK]))
        parts += [_INT32.pack(len(block)), block]
    return b"".join(parts)


def _to_lz4(data: Buffer, level: int) -> bytes:
    import lz4.frame

    # Kafka's default 9 is lz4's fast mode. Other levels are its high-compression mode, of which the library has 3 and up.
    depth = _LZ4_FAST if level == DEFAULT_LEVELS[Codec.lz4] else max(level, _LZ4_LEVEL_MIN)
    frame: bytes = lz4.frame.compress(
        data, compression_level=depth, block_size=lz4.frame.BLOCKSIZE_MAX64KB, block_linked=False, store_size=False
    )
    return frame


def _to_zstd(data: Buffer, level: int) -> bytes:
    import zstandard

    stream = zstandard.ZstdCompressor(level=level, write_content_size=False).compressobj()
    return b"".join((stream.compress(data), stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK), stream.flush()))


_WRITERS: dict[int, Callable[[Buffer, int], bytes]] = {
    Codec.none: _as_it_is,
    Codec.gzip: _to_gzip,
    Codec.snappy: _to_xerial,
    Codec.lz4: _to_lz4,
    Codec.zstd: _to_zstd,
}

_READERS: dict[int, Callable[[Buffer, int], Buffer]] = {
    Codec.none: _none,
    Codec.gzip: _gzip,
    Codec.snappy: _snappy,
    Codec.lz4: _lz4,
}
