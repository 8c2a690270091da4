"""The two objects of an encoded segment as chunks: which stored bytes hold a range of the source, and their codec."""

import re
from base64 import b64decode
from collections.abc import Iterable
from dataclasses import dataclass

from local_log.errors import Corrupt, Newer, NoKey, WrongKey, placed
from local_log.formats.primitives import Buffer
from remote.keys import PartitionPath
from remote.manifest.segment_entry import ZSTD, AuxRange, EncodingInfo, SegmentEntry
from remote.transforms.chunk_codec import ChunkCodec
from remote.transforms.chunk_index import ChunkIndex, make_chunk_index, read_chunk_bytes, read_chunk_index
from remote.transforms.encryption import AUX_OBJECT, DATA_KEY_BYTES, LOG_OBJECT, NONCE_BYTES, ChunkPlace, SegmentCipher
from remote.transforms.keys import KeyRing

AES = "aes-256-gcm"
ENCODINGS = {ZSTD: (True, False), AES: (False, True), f"{ZSTD}+{AES}": (True, True)}
"""Name of an encoding: whether chunks are compressed, whether they are encrypted."""

_SEGMENT_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class EncodedObject:
    """An encoded object: its key in the store, its `number` (LOG_OBJECT or AUX_OBJECT), chunk index and codec."""

    key: str
    number: int
    index: ChunkIndex
    codec: ChunkCodec

    def decode(self, first: int, stop: int, stored: Buffer) -> list[bytes]:
        """Decodes the chunks `[first, stop)` from the stored bytes that hold them; one source per chunk.

        Raises Corrupt, with the position in the object.
        """
        start, end = self.index.stored_range(first, stop)
        if len(stored) != end - start:
            raise Corrupt(f"{len(stored)} bytes where its chunks take {end - start}", file=self.key, position=start)
        view = memoryview(stored)
        return [self._chunk(number, view, start) for number in range(first, stop)]

    def _chunk(self, number: int, stored: memoryview, stored_from: int) -> bytes:
        start, end = self.index.stored_range(number, number + 1)
        source_start, source_end = self.index.source_range(number, number + 1)
        place = ChunkPlace(self.number, number, number + 1 == len(self.index))
        try:
            return self.codec.decode(place, stored[start - stored_from : end - stored_from], source_end - source_start)
        except Corrupt as e:
            problem = f"chunk {number} of {len(self.index)}, source bytes [{source_start}, {source_end}): {e.problem}"
            raise Corrupt(problem, file=self.key, position=start) from e


@dataclass(frozen=True, slots=True)
class EncodedSegment:
    """The encoded log and aux object of an entry."""

    log: EncodedObject
    aux: EncodedObject


def encoded_segment(path: PartitionPath, entry: SegmentEntry, keys: KeyRing | None) -> EncodedSegment:
    """The objects of an entry whose encoding is not IDENTITY; `keys` unwraps the data key of an encrypted one.

    Raises NoKey, WrongKey, Newer (an unknown encoding), Unavailable, Corrupt (an inconsistent entry).
    """
    key, aux_key = path.segment(entry.log_name), path.segment(entry.aux_name)
    if entry.encoding not in ENCODINGS:
        raise Newer(f"{key} is encoded as {entry.encoding!r}, which this version does not read: upgrade kafka-tiering")
    compressed, encrypted = ENCODINGS[entry.encoding]
    info = entry.encoded
    if info is None or encrypted != bool(info.key_id):
        raise Corrupt(f"its entry does not say how it is encoded as {entry.encoding!r}; restore the manifest", file=key)
    log_index, aux_index = _log_index(key, entry, info), _aux_index(aux_key, entry, info)
    codec = ChunkCodec(compressed, _cipher(path, key, entry, info, keys) if encrypted else None)
    return EncodedSegment(
        EncodedObject(key, LOG_OBJECT, log_index, codec),
        EncodedObject(aux_key, AUX_OBJECT, aux_index, codec),
    )


def _log_index(key: str, entry: SegmentEntry, info: EncodingInfo) -> ChunkIndex:
    with placed(key):
        index = read_chunk_index(_from_base64(info.chunk_index, "chunk index"))
    _check_sizes(key, index, entry.log_size, info.log_size)
    return index


def _aux_index(key: str, entry: SegmentEntry, info: EncodingInfo) -> ChunkIndex:
    with placed(key):
        index = make_chunk_index(aux_ends(entry.aux_ranges.values()), info.aux_lengths)
    _check_sizes(key, index, entry.aux_size, info.aux_size)
    return index


def source_chunk_bytes(entry: SegmentEntry) -> int:
    """The source bytes of a chunk of the log, the last one excepted; 1 if the entry does not state them."""
    with placed(entry.log_name):
        return read_chunk_bytes(_from_base64(entry.encoded.chunk_index, "chunk index")) if entry.encoded else 1


def aux_ends(ranges: Iterable[AuxRange]) -> tuple[int, ...]:
    """The positions at which the parts of an aux object end; each is one chunk. Raises Corrupt if they are not adjacent."""
    ordered = sorted((r.start, r.end) for r in ranges)
    ends = tuple(end for _, end in ordered)
    if tuple(start for start, _ in ordered) != (0, *ends)[:-1]:
        raise Corrupt(f"the parts of an aux object lie at {ordered}, not one after the other; restore the manifest")
    return ends


def _check_sizes(key: str, index: ChunkIndex, source_size: int, stored_size: int) -> None:
    if (index.source_size, index.stored_size) != (source_size, stored_size):
        raise Corrupt(
            f"its chunks have {index.source_size} source bytes in {index.stored_size}, its entry states {source_size} in "
            f"{stored_size}; restore the manifest",
            file=key,
        )


def _cipher(path: PartitionPath, key: str, entry: SegmentEntry, info: EncodingInfo, keys: KeyRing | None) -> SegmentCipher:
    if keys is None:
        raise NoKey(info.key_id, "no keys are given", key)
    with placed(key):
        wrapped, nonce = _from_base64(info.wrapped_key, "wrapped key"), _from_base64(info.nonce, "nonce")
    try:
        data_key = keys.unwrap(info.key_id, wrapped)
    except NoKey as e:
        raise NoKey(e.key_id, e.reason, key) from e
    except WrongKey as e:
        raise WrongKey(e.key_id, e.place, key) from e
    if len(data_key) != DATA_KEY_BYTES or len(nonce) != NONCE_BYTES or not _SEGMENT_ID.fullmatch(entry.segment_id):
        raise Corrupt(
            f"its entry has a data key of {len(data_key)} bytes, a nonce of {len(nonce)} and segment id {entry.segment_id!r}; "
            f"there must be {DATA_KEY_BYTES}, {NONCE_BYTES} and 32 hexadecimal digits: restore the manifest",
            file=key,
        )
    return SegmentCipher(data_key, nonce, path, entry.segment_id)


def _from_base64(text: str, what: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError as e:
        raise Corrupt(f"the {what} in its entry is not base64; restore the manifest") from e
