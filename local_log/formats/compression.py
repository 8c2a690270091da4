"""Inflates a batch's records section, with Kafka's framings and a cap on what may come out.

gzip    one or more gzip members
snappy  xerial framing (8 magic bytes, two int32, then blocks of int32 length and raw snappy) as Java writes it, or one
        raw block as librdkafka and Go write it
lz4     one lz4 frame
zstd    frames without a content size
Every claim of a length is checked against the cap before memory is taken: raw snappy and zstd take what a frame claims.
"""

import struct
import zlib
from collections.abc import Callable

import lz4.frame
import snappy
import zstandard

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer, need, read_uvarint
from local_log.formats.record import Codec

INFLATED_BYTES_MAX = 1 << 30
GZIP_MEMBERS_MAX = 4096
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = 16
_INT32 = struct.Struct(">i")
_ZSTD_HEADER_MAX = 18
_ZSTD_RUN = 1


def inflate(codec: int, payload: Buffer, *, bytes_max: int = INFLATED_BYTES_MAX) -> Buffer:
    """The uncompressed form of `payload`. Raises Corrupt for a codec Kafka does not have, a broken frame, or one too large."""
    reader = _READERS.get(codec)
    if reader is None:
        raise Corrupt(f"compression codec {codec} does not exist; Kafka has 0 to {max(Codec)}")
    try:
        return reader(payload, bytes_max)
    except (zlib.error, zstandard.ZstdError, snappy.UncompressError, RuntimeError, EOFError, ValueError) as e:
        raise Corrupt(f"{Codec(codec).name} frame does not inflate: {e}") from e


def _too_large(bytes_max: int) -> Corrupt:
    return Corrupt(f"a batch that inflates to more than {bytes_max} bytes")


def _none(payload: Buffer, bytes_max: int) -> Buffer:
    return payload


def _gzip(payload: Buffer, bytes_max: int) -> bytes:
    out: list[bytes] = []
    size = 0
    rest: Buffer = payload
    while rest:
        member = zlib.decompressobj(31)
        out.append(member.decompress(rest, bytes_max + 1 - size))
        size += len(out[-1])
        if size > bytes_max:
            raise _too_large(bytes_max)
        if not member.eof:
            raise Corrupt("gzip frame ends early")
        if len(out) > GZIP_MEMBERS_MAX:
            raise Corrupt(f"more than {GZIP_MEMBERS_MAX} gzip members in one batch")
        rest = member.unused_data
    return out[0] if len(out) == 1 else b"".join(out)


def _snappy(payload: Buffer, bytes_max: int) -> bytes:
    view = memoryview(payload)
    if view[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        return _snappy_block(view, bytes_max)
    need(view, 0, _XERIAL_HEADER, "the header of xerial snappy")
    blocks: list[bytes] = []
    size, pos = 0, _XERIAL_HEADER
    while pos < len(view):
        need(view, pos, 4, "a snappy block's length")
        length = _INT32.unpack_from(view, pos)[0]
        if length < 0:
            raise Corrupt(f"snappy block of {length} bytes", position=pos)
        need(view, pos + 4, length, "a snappy block")
        blocks.append(_snappy_block(view[pos + 4 : pos + 4 + length], bytes_max - size))
        size += len(blocks[-1])
        pos += 4 + length
    return b"".join(blocks)


def _snappy_block(block: memoryview, bytes_max: int) -> bytes:
    claimed, _ = read_uvarint(block, 0, "a snappy block's inflated length")
    if claimed > bytes_max:
        raise _too_large(bytes_max)
    inflated: bytes = snappy.uncompress(block)
    return inflated


def _lz4(payload: Buffer, bytes_max: int) -> bytes:
    frame = lz4.frame.LZ4FrameDecompressor()
    out: bytes = frame.decompress(payload, max_length=bytes_max + 1)
    if len(out) > bytes_max:
        raise _too_large(bytes_max)
    if not frame.eof:
        raise Corrupt("lz4 frame ends early")
    if frame.unused_data:
        raise Corrupt(f"{len(frame.unused_data)} bytes are left over after the lz4 frame")
    return out


def _zstd(payload: Buffer, bytes_max: int) -> bytes:
    _check_zstd_frames(memoryview(payload))
    chunk = min(bytes_max + 1, max(1 << 16, 8 * len(payload)))
    out: list[bytes] = []
    size = 0
    with zstandard.ZstdDecompressor().stream_reader(payload, read_across_frames=True) as reader:
        while part := reader.read(chunk):
            size += len(part)
            if size > bytes_max:
                raise _too_large(bytes_max)
            out.append(part)
    return out[0] if len(out) == 1 else b"".join(out)


def _check_zstd_frames(payload: memoryview) -> None:
    """Raises Corrupt unless the payload is whole frames: the library takes one that is cut short for one that has ended.

    A frame is a header, blocks of a 3-byte header (bit 0 last, 1-2 type, then size; a run of one byte has one) and, when the
    header says so, a checksum (RFC 8878).
    """
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


_READERS: dict[int, Callable[[Buffer, int], Buffer]] = {
    Codec.none: _none,
    Codec.gzip: _gzip,
    Codec.snappy: _snappy,
    Codec.lz4: _lz4,
    Codec.zstd: _zstd,
}
