"""Encodes and decodes one chunk: compression, encryption, or compression and then encryption."""

from dataclasses import dataclass

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer
from remote.transforms.compression import compress, decompress
from remote.transforms.encryption import ChunkPlace, SegmentCipher


@dataclass(frozen=True, slots=True)
class ChunkCodec:
    """The codec of a segment's chunks: compression if `compressed`, then encryption if there is a cipher."""

    compressed: bool
    cipher: SegmentCipher | None

    def encode(self, place: ChunkPlace, source: Buffer) -> bytes:
        """The chunk in its stored form. Deterministic for the same chunk at the same place."""
        plain = compress(source) if self.compressed else source
        return bytes(plain) if self.cipher is None else self.cipher.encrypt(place, plain, compressed=self.compressed)

    def decode(self, place: ChunkPlace, stored: Buffer, source_bytes: int) -> bytes:
        """The source bytes of a stored chunk, exactly `source_bytes` of them. Raises Corrupt."""
        plain = stored if self.cipher is None else self.cipher.decrypt(place, stored, compressed=self.compressed)
        source = decompress(plain, source_bytes) if self.compressed else bytes(plain)
        if len(source) != source_bytes:
            raise Corrupt(f"it holds {len(source)} source bytes of {source_bytes}; restore the object or the manifest")
        return source
