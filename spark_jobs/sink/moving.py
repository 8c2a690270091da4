"""Segments moved to other offsets: only the base offset in each batch's header changes, which no checksum covers."""

from functools import partial
from typing import Any

import numpy as np

from local_log.formats.chunks import CHUNK_BYTES, Chunk, read_chunks
from remote.manifest.segment_entry import SegmentEntry
from remote.segment_bytes import SegmentBytes
from spark_jobs.sink.placement import Move
from spark_jobs.sink.segments import Upload
from spark_jobs.sink.spool import Spool

_BASE_OFFSET = np.arange(8)


def moved(move: Move, source: SegmentBytes, upload: Upload) -> SegmentEntry:
    """Makes and uploads the segment that the move is to. Raises what reading and uploading segments raise."""
    spool, at = Spool(), move.base_offset
    try:
        for entry in move.entries:
            read = partial(source.log, move.partition.path, entry)
            for chunk in read_chunks(read, entry.log_name, 0, entry.log_size, first_bytes=CHUNK_BYTES):
                spool.append(_with_offsets_from(chunk, at - entry.base_offset))
            at += entry.end_offset - entry.base_offset
        return upload.segment(move.partition, move.base_offset, move.end_offset, spool)
    finally:
        spool.close()


def _with_offsets_from(chunk: Chunk, distance: int) -> Any:
    """The chunk's bytes, each batch `distance` offsets further on."""
    data = bytearray(memoryview(chunk.buffer)[: chunk.end - chunk.position])
    bases = (chunk.batches.base_offset + distance).astype(">i8").view(np.uint8).reshape(-1, 8)
    np.frombuffer(data, np.uint8)[chunk.batches.positions.astype(np.int64)[:, None] + _BASE_OFFSET] = bases
    return data
