"""How an archive is read: the components between a log's questions and the store's answers, shared by all logs of a process."""

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

Decoder = Callable[[ObjectReader], SegmentBytes]
"""Makes of a store's objects the segments that they were before they were archived."""


def decoder_with(keys_address: str | None) -> Decoder:
    """What undoes every encoding with the keys at an address; without one, what is encrypted raises NoKey when it is read.

    With keys what is not encrypted raises NotEncrypted, unless the address allows it.

    Raises Invalid, BadAddress for keys that cannot be had.
    """
    if keys_address is None:
        return DecodedBytes
    return partial(DecodedBytes, keys=open_keys(keys_address), plain_allowed=allows_plain(keys_address))


@dataclass(frozen=True, slots=True)
class ReadContext:
    """`decoded` undoes what segments were encoded with; `chunks` keeps bytes of segments in files, None keeps none."""

    decoded: Decoder = DecodedBytes
    indexes: IndexCache = field(default_factory=IndexCache)
    chunks: ChunkCache | None = None
    ahead: ReadAhead = field(default_factory=ReadAhead)

    def source(self, store: ObjectReader) -> SegmentBytes:
        """The segments of the archive in `store`."""
        stored = self.decoded(store)
        return stored if self.chunks is None else CachedBytes(stored, self.chunks)
