"""Encrypts one chunk with AES-256-GCM: how its nonce is built, and its additional authenticated data.

Each attempt to copy a segment makes a new data key, encrypts the segment's two objects with it, and never reuses it. The nonce
of a chunk is the attempt's 12 random bytes XOR (object, 4 bytes | chunk number, 8 bytes), the construction of TLS 1.3 (RFC
8446, 5.3). Distinct (object, number) pairs give distinct nonces, so no nonce repeats under one data key.

The additional authenticated data is not stored; the reader rebuilds it:

    at  bytes  field
     0      4  "KTC1"
     4     22  topic id, as in the keys of the archive
    26      4  partition
    30     16  segment id, unique per attempt
    46      1  object: 0 the segment, 1 its aux object
    47      1  content: 0 source bytes, 1 a zstd frame of them
    48      8  chunk number, from 0
    56      1  1 for the object's last chunk, else 0

Integers are big-endian. A stored chunk is the ciphertext followed by the tag of 16 bytes.
"""

import struct
from typing import NamedTuple

from local_log.errors import Corrupt
from local_log.formats.primitives import Buffer
from remote.keys import PartitionPath

DATA_KEY_BYTES = 32
NONCE_BYTES = 12
_MAGIC = b"KTC1"
_AAD = struct.Struct(">4s22si16sBBQB")
_PLACE = struct.Struct(">IQ")


LOG_OBJECT, AUX_OBJECT = 0, 1


class ChunkPlace(NamedTuple):
    """The place of a chunk: LOG_OBJECT or AUX_OBJECT, its number from 0, and whether it is the last one."""

    object: int
    number: int
    last: bool


class SegmentCipher:
    """Encrypts and decrypts the chunks of one attempt to copy one segment."""

    def __init__(self, data_key: bytes, nonce: bytes, path: PartitionPath, segment_id: str) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # a start without encryption does not wait for it

        self._aead = AESGCM(data_key)
        self._nonce = int.from_bytes(nonce, "big")
        self._segment = (_MAGIC, path.topic_id.encode(), path.partition, bytes.fromhex(segment_id))

    def encrypt(self, place: ChunkPlace, plain: Buffer, *, compressed: bool) -> bytes:
        """The stored form of a chunk: ciphertext and tag."""
        return self._aead.encrypt(self._nonce_of(place), plain, self._aad(place, compressed))

    def decrypt(self, place: ChunkPlace, stored: Buffer, *, compressed: bool) -> bytes:
        """The plaintext of a chunk. Raises Corrupt unless it was encrypted for this place."""
        from cryptography.exceptions import InvalidTag

        try:
            return self._aead.decrypt(self._nonce_of(place), stored, self._aad(place, compressed))
        except InvalidTag as e:
            raise Corrupt(
                "it is not what was encrypted for this place: changed, cut, swapped or of another segment; "
                "restore the object from a copy"
            ) from e

    def _nonce_of(self, place: ChunkPlace) -> bytes:
        number = int.from_bytes(_PLACE.pack(place.object, place.number), "big")
        return (self._nonce ^ number).to_bytes(NONCE_BYTES, "big")

    def _aad(self, place: ChunkPlace, compressed: bool) -> bytes:
        return _AAD.pack(*self._segment, place.object, compressed, place.number, place.last)
