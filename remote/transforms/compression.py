"""Compresses one chunk as one zstd frame (RFC 8878) with content size and checksum."""

import zstandard

from local_log.errors import Corrupt
from local_log.formats.compression import inflate
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec

ZSTD_LEVEL = 3


def compress(source: Buffer) -> bytes:
    """Compresses a chunk to a frame. Deterministic."""
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_content_size=True, write_checksum=True).compress(source)


def decompress(stored: Buffer, source_bytes: int) -> bytes:
    """Decompresses a frame to exactly `source_bytes`, whatever size the frame states. Raises Corrupt."""
    try:
        source = bytes(inflate(Codec.zstd, stored, bytes_max=source_bytes))
    except Corrupt as e:
        raise Corrupt(f"it does not inflate to {source_bytes} bytes ({e.problem}); restore the object from a copy") from e
    return source
