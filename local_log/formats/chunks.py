"""Whole batches out of anything that can be read by byte range: a segment's file or an archived object."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from local_log.errors import Corrupt, placed
from local_log.formats.batches import BATCH_BYTES_MIN, decode, scan
from local_log.formats.header_layout import LENGTH_AT, LOG_OVERHEAD
from local_log.formats.primitives import INT32_MAX, Buffer
from local_log.formats.record_batch.batch_v2 import Batches, check_crcs
from local_log.formats.record_batch.columns import EVERYTHING, GROUP_BYTES, Projection

CHUNK_BYTES = 8 << 20
FIRST_CHUNK_BYTES = 256 << 10
"""Most readers of one old record need no more, and a reader of many loses little: spans double up to CHUNK_BYTES."""

BATCH_BYTES_MAX = INT32_MAX


@dataclass(frozen=True, slots=True)
class Chunk:
    """A byte span of `file` that holds whole batches: `buffer` is what lies from byte `position` on."""

    file: str
    position: int
    buffer: Buffer
    batches: Batches

    @property
    def end(self) -> int:
        """The byte in the file after the last batch."""
        return self.position + int(self.batches.end[-1])

    def records(self, want: Projection = EVERYTHING) -> Iterator[tuple[Batches, pa.RecordBatch]]:
        """The records of all batches, a few MB at a time, each with the batches that they are of (see `columns.decode`).

        Every batch's CRC is checked first. Raises Corrupt, placed in the file.
        """
        with placed(self.file, self.position):
            for group in self.batches.split(GROUP_BYTES):
                yield from decode(self.buffer, group, want)

    def where(self, mask: object) -> "Chunk":
        """The same span with only the batches that the mask picks."""
        return Chunk(self.file, self.position, self.buffer, self.batches[mask])

    def check(self) -> None:
        """Raises Corrupt, placed in the file, unless every batch has the CRC that it states."""
        with placed(self.file, self.position):
            check_crcs(self.buffer, self.batches)


def read_chunks(
    read: Callable[[int, int], Buffer], file: str, start: int, end: int, *, first_bytes: int = FIRST_CHUNK_BYTES
) -> Iterator[Chunk]:
    """Reads `[start, end)` of `file` through `read(start, end)` in spans of whole batches, at first of about `first_bytes`.

    `start` must be where a batch starts. It stops before a batch that `end` cuts; the caller sees by the last chunk's end
    whether that is a torn tail. Raises Corrupt, placed in the file.
    """
    chunk_bytes = want = first_bytes
    while end - start >= BATCH_BYTES_MIN:
        buffer = read(start, min(end, start + want))
        chunk = _first_chunk(file, start, buffer)
        if chunk is None:
            if start + len(buffer) >= end or len(buffer) < want:
                return
            if want >= BATCH_BYTES_MAX:
                raise Corrupt(f"a batch that claims more than {BATCH_BYTES_MAX} bytes", file=file, position=start)
            want = min(want * 4, BATCH_BYTES_MAX)  # one batch is larger than the span: ask again for more
            continue
        while chunk is not None:  # another one follows where batches of another magic do
            yield chunk
            buffer, start = memoryview(buffer)[chunk.end - start :], chunk.end
            chunk = _first_chunk(file, start, buffer)
        chunk_bytes = want = min(chunk_bytes * 2, max(first_bytes, CHUNK_BYTES))


def join_chunks(buffers: Iterable[Buffer], file: str, start: int, end: int) -> Iterator[Chunk]:
    """The batches of `[start, end)` of `file`, whose bytes come in buffers, one after the other; a batch starts at `start`.

    Batches that lie whole in a buffer are not copied; one that a buffer's end cuts is joined and comes alone. Raises Corrupt,
    placed in the file, also for a last batch that `end` cuts.
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
    """How long the batch is whose beginning this is, as far as can be said yet; at every magic its length is in one place."""
    if len(beginning) < LOG_OVERHEAD:
        return LOG_OVERHEAD
    size = max(LOG_OVERHEAD + 1, LOG_OVERHEAD + int.from_bytes(beginning[LENGTH_AT:LOG_OVERHEAD], "big", signed=True))
    if start + size > end:
        raise _not_whole(file, start, end)
    return size


def _not_whole(file: str, start: int, end: int) -> Corrupt:
    return Corrupt(f"no whole batch where {end - start} bytes of them should be", file=file, position=start)


def _first_chunk(file: str, position: int, buffer: Buffer) -> Chunk | None:
    with placed(file, position):
        batches, _ = scan(buffer)
    return Chunk(file, position, buffer, batches) if len(batches) else None
