"""Encodes and decodes one chunk: compression, encryption, or compression and then encryption.

A compressed chunk is one zstd frame (RFC 8878) with content size and checksum.
"""

from dataclasses import dataclass

from local_log.errors import Corrupt
from local_log.formats.compression import inflate
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec
from remote.transforms.encryption import ChunkPlace, SegmentCipher

ZSTD_LEVEL = 3


@dataclass(frozen=True, slots=True)
class ChunkCodec:
    """The codec of a segment's chunks: compression if `compressed`, then encryption if there is a cipher."""

    compressed: bool
    cipher: SegmentCipher | None

    def encode(self, place: ChunkPlace, source: Buffer) -> bytes:
        """The chunk in its stored form. Deterministic for the same chunk at the same place."""
        plain = _compress(source) if self.compressed else source
        return bytes(plain) if self.cipher is None else self.cipher.encrypt(place, plain, compressed=self.compressed)

    def decode(self, place: ChunkPlace, stored: Buffer, source_bytes: int) -> bytes:
        """The source bytes of a stored chunk, exactly `source_bytes` of them. Raises Corrupt."""
        plain = stored if self.cipher is None else self.cipher.decrypt(place, stored, compressed=self.compressed)
        source = _decompress(plain, source_bytes) if self.compressed else bytes(plain)
        if len(source) != source_bytes:
            raise Corrupt(f"it holds {len(source)} source bytes of {source_bytes}; restore the object or the manifest")
        return source


def _compress(source: Buffer) -> bytes:
    """Compresses a chunk to a frame. Deterministic."""
    import zstandard  # as in `compression`

    return zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_content_size=True, write_checksum=True).compress(source)


def _decompress(stored: Buffer, source_bytes: int) -> bytes:
    """Decompresses a frame to exactly `source_bytes`, whatever size the frame states. Raises Corrupt."""
    try:
        source = bytes(inflate(Codec.zstd, stored, bytes_max=source_bytes))
    except Corrupt as e:
        raise Corrupt(f"it does not inflate to {source_bytes} bytes ({e.problem}); restore the object from a copy") from e
    return source
