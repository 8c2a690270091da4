"""One chunk as one zstd frame (RFC 8878), with its content's size and checksum in it."""

import zstandard

from local_log.errors import Corrupt
from local_log.formats.compression import inflate
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec

ZSTD_LEVEL = 3


def compress(source: Buffer) -> bytes:
    """The chunk's frame; the same bytes give the same frame."""
    return zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_content_size=True, write_checksum=True).compress(source)


def decompress(stored: Buffer, source_bytes: int) -> bytes:
    """The chunk of just `source_bytes` that the frame holds, whatever size the frame states. Raises Corrupt."""
    try:
        source = bytes(inflate(Codec.zstd, stored, bytes_max=source_bytes))
    except Corrupt as e:
        raise Corrupt(f"it does not inflate to {source_bytes} bytes ({e.problem}); restore the object from a copy") from e
    return source
