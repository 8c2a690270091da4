"""The components that every reader of a process shares: the decoder of segments, the caches and the read-ahead."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from remote.read.chunk_cache import CachedBytes, ChunkCache
from remote.read.index_cache import IndexCache
from remote.read.read_ahead import ReadAhead
from remote.segment_bytes import SegmentBytes
from remote.store.api import ObjectReader
from remote.transforms.decoded_bytes import DecodedBytes
from remote.transforms.key_rings import allows_plain, open_keys
from remote.transforms.unwrapped_once import UnwrappedOnce

Decoder = Callable[[ObjectReader], SegmentBytes]
"""Builds the decoder of the segments in a store."""


def decoder_with(keys_address: str | None) -> Decoder:
    """A decoder with the keys at an address; without an address, reading an encrypted segment raises NoKey.

    With keys, reading a segment that is not encrypted raises NotEncrypted, unless the address allows it.

    Raises Invalid, BadAddress if the keys cannot be opened.
    """
    if keys_address is None:
        return DecodedBytes
    return partial(DecodedBytes, keys=UnwrappedOnce(open_keys(keys_address)), plain_allowed=allows_plain(keys_address))


@dataclass(frozen=True, slots=True)
class ReadContext:
    """`decoded` builds the decoder for a store; `chunks` caches bytes of segments in files, None disables that cache."""

    decoded: Decoder = DecodedBytes
    indexes: IndexCache = field(default_factory=IndexCache)
    chunks: ChunkCache | None = None
    ahead: ReadAhead = field(default_factory=ReadAhead)

    def source(self, store: ObjectReader) -> SegmentBytes:
        """Reads segments of the archive in `store`, through the chunk cache if there is one."""
        stored = self.decoded(store)
        return stored if self.chunks is None else CachedBytes(stored, self.chunks)
