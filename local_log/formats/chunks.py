"""Reads complete batches from a source of byte ranges, such as a segment's file or an archived object."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local_log.errors import Corrupt, placed
from local_log.formats.header_layout import LENGTH_AT, LOG_OVERHEAD, MESSAGE_BYTES_MIN
from local_log.formats.primitives import INT32_MAX, Buffer
from local_log.formats.record_batch.projection import EVERYTHING, Projection

if TYPE_CHECKING:
    import pyarrow as pa

    from local_log.formats.record_batch.batch_v2 import Batches

CHUNK_BYTES = 8 << 20
FIRST_CHUNK_BYTES = 256 << 10
"""Enough for most reads of one old record, and little loss for reads of many: the size grows up to CHUNK_BYTES."""

GROUP_BYTES = 8 << 20
"""Bytes to decode into one Arrow record batch: enough to amortize its cost, little enough to hold several."""

BATCH_BYTES_MAX = INT32_MAX


@dataclass(frozen=True, slots=True)
class Chunk:
    """A byte range of `file` with complete batches: `buffer` has the file's bytes from `position` on."""

    file: str
    position: int
    buffer: Buffer
    batches: "Batches"

    @property
    def end(self) -> int:
        """The position in the file after the last batch."""
        return self.position + self.batches.next_position

    def records(self, want: Projection = EVERYTHING) -> "Iterator[tuple[Batches, pa.RecordBatch]]":
        """The records of all batches with their batches, a few MB at a time (see `columns.decode`).

        Every batch's CRC is checked first. Raises Corrupt with the file and the position.
        """
        from local_log.formats.batches import decode

        with placed(self.file, self.position):
            for group in self.batches.split(GROUP_BYTES):
                yield from decode(self.buffer, group, want)

    def where(self, mask: object) -> "Chunk":
        """The same byte range with only the batches that the boolean mask selects."""
        return Chunk(self.file, self.position, self.buffer, self.batches[mask])

    def check(self) -> None:
        """Raises Corrupt with the file and the position unless every batch has the CRC in its header."""
        from local_log.formats.record_batch.batch_v2 import check_crcs

        with placed(self.file, self.position):
            check_crcs(self.buffer, self.batches)


def read_chunks(
    read: Callable[[int, int], Buffer],
    file: str,
    start: int,
    end: int,
    *,
    first_bytes: int = FIRST_CHUNK_BYTES,
    bytes_max: int | None = None,
) -> Iterator[Chunk]:
    """Reads `[start, end)` of `file` with `read(start, end)` in chunks of complete batches.

    The first chunk has about `first_bytes`, the next ones up to `bytes_max` (CHUNK_BYTES if None), and more only for a single
    batch that is larger.
    A batch must start at `start`. It stops before a batch that ends after `end`: the last chunk's end is then below `end`. Raises
    Corrupt with the file and the position.
    """
    chunk_bytes = want = first_bytes
    while end - start >= MESSAGE_BYTES_MIN:
        buffer = read(start, min(end, start + want))
        chunk = _first_chunk(file, start, buffer)
        if chunk is None:
            if start + len(buffer) >= end or len(buffer) < want:
                return
            if want >= BATCH_BYTES_MAX:
                raise Corrupt(f"a batch that claims more than {BATCH_BYTES_MAX} bytes", file=file, position=start)
            want = min(want * 4, BATCH_BYTES_MAX)  # one batch is larger than the range that was read
            continue
        while chunk is not None:  # more than one if batches of another magic follow
            yield chunk
            buffer, start = memoryview(buffer)[chunk.end - start :], chunk.end
            chunk = _first_chunk(file, start, buffer)
        chunk_bytes = want = min(chunk_bytes * 2, max(first_bytes, bytes_max or CHUNK_BYTES))


def join_chunks(buffers: Iterable[Buffer], file: str, start: int, end: int) -> Iterator[Chunk]:
    """The batches of `[start, end)` of `file`, whose bytes come in consecutive buffers; a batch starts at `start`.

    Batches within one buffer are not copied; a batch across buffers is copied into a chunk of its own. Raises Corrupt with the
    file and the position, also for a last batch that ends after `end`.
    """
    cut = b""
    for buffer in buffers:
        rest = memoryview(buffer)
        while cut and len(rest):
            wanted = _batch_bytes(cut, file, start, end) - len(cut)
            cut, rest = cut + rest[:wanted], rest[wanted:]
            if len(cut) == _batch_bytes(cut, file, start, end):
                chunk = _first_chunk(file, start, cut)
                if chunk is None:
                    raise _not_whole(file, start, end)
                yield chunk
                cut, start = b"", chunk.end
        while len(rest) and (chunk := _first_chunk(file, start, rest)) is not None:
            yield chunk
            rest, start = rest[chunk.end - start :], chunk.end
        cut = cut or bytes(rest)
    if start < end:
        raise _not_whole(file, start, end)


def _batch_bytes(beginning: bytes, file: str, start: int, end: int) -> int:
    """The size of the batch of any magic that starts with these bytes; if they are too few, how many are needed to know it."""
    if len(beginning) < LOG_OVERHEAD:
        return LOG_OVERHEAD
    size = max(LOG_OVERHEAD + 1, LOG_OVERHEAD + int.from_bytes(beginning[LENGTH_AT:LOG_OVERHEAD], "big", signed=True))
    if start + size > end:
        raise _not_whole(file, start, end)
    return size


def _not_whole(file: str, start: int, end: int) -> Corrupt:
    return Corrupt(f"no whole batch where {end - start} bytes of them should be", file=file, position=start)


def _first_chunk(file: str, position: int, buffer: Buffer) -> Chunk | None:
    from local_log.formats.batches import scan  # with numpy; a start that reads no segment does not wait for it

    with placed(file, position):
        batches, _ = scan(buffer)
    return Chunk(file, position, buffer, batches) if len(batches) else None
