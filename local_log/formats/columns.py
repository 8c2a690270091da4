"""Batches to Arrow columns: what every reader of records goes through, whole groups of batches in one call."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from local_log.errors import Corrupt
from local_log.formats import kernels, record_kernels
from local_log.formats.batch_v2 import HEADER_BYTES, RECORD_BYTES_MIN, Batches, check_crcs, crc_checks
from local_log.formats.compression import Inflater
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec

GROUP_BYTES = 8 << 20
"""How much to decode into one record batch: enough to hide what a batch costs, little enough to hold a few of them."""

INFLATED_GROUP_BYTES = 8 << 20
"""How far compressed batches may inflate before those that are done are decoded; one batch alone may go up to its own cap."""

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())]))

_NO_PAIRS = pa.array([], HEADERS_TYPE.value_type)
_RECORD_BYTES_MIN = np.uint64(RECORD_BYTES_MIN)
_PROBLEM = {
    kernels.BAD_VARINT: "a varint does not end where its record ends",
    kernels.RECORD_PAST_BATCH: "a record is longer than what is left of its batch",
    kernels.FIELD_PAST_RECORD: "a key, value or header is longer than what is left of its record",
    kernels.BYTES_LEFT_OVER: "bytes are left over after the last record or header",
    kernels.BAD_HEADER_COUNT: "a record claims more headers than it has bytes for",
}


@dataclass(frozen=True, slots=True)
class Projection:
    """Which of the columns that cost something are wanted; offset and timestamp always come."""

    key: bool = True
    value: bool = True
    headers: bool = True
    timestamp_type: bool = False


EVERYTHING = Projection()


def decode(buffer: Buffer, batches: Batches, want: Projection = EVERYTHING) -> Iterator[tuple[Batches, pa.RecordBatch]]:
    """The records of `batches`, in order: offset int64, timestamp int64 (ms), key, value binary, headers list of structs,
    timestamp_type int32.

    Only the wanted of the last four are there. They come with the batches that they are of: all at once, unless the batches
    are compressed and inflate to more than a group should have. Raises Corrupt, placed at the batch in `buffer`, where a
    checksum does not hold or records do not have the form that they claim.
    """
    if batches.codec.any():
        check_crcs(buffer, batches)
        for group, sections in grouped(_inflated(buffer, batches), batches):
            yield group, _decode(*_in_runs(sections), group, want)
    else:
        starts, ends = batches.positions + np.uint64(HEADER_BYTES), batches.end
        yield batches, _decode(_checked(buffer, batches, ends - starts), starts, ends, batches, want)


def decode_section(section: Buffer, batch: Batches) -> pa.RecordBatch:
    """The records of one batch whose section is inflated already; for the rest see `decode`. No checksum is checked."""
    return _decode(*_in_runs([section]), batch, EVERYTHING)


def per_record(batches: Batches, of_batch: Any) -> Any:
    """A value of each batch, repeated for each of its records: a column beside those of `decode`."""
    return np.repeat(of_batch, batches.count)


def grouped(sections: Iterator[Buffer], batches: Batches) -> Iterator[tuple[Batches, list[Buffer]]]:
    """The uncompressed sections of batches, as many at a time as a group should have."""
    parts: list[Buffer] = []
    first = size = 0
    for row, part in enumerate(sections):
        parts.append(part)
        size += len(part)
        if size >= INFLATED_GROUP_BYTES or row + 1 == len(batches):
            yield batches[first : row + 1], parts
            parts, first, size = [], row + 1, 0


def joined(parts: list[Buffer]) -> tuple[Any, Any, Any]:
    """Parts as one array of bytes, and where each starts and ends in it."""
    ends = np.cumsum([len(p) for p in parts], dtype=np.uint64)
    starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
    return np.frombuffer(b"".join(parts), np.uint8), starts, ends


Run = tuple[int, Any]
"""The bytes that some batches of a group lie in, and the row after the last of these."""


def _in_runs(sections: list[Buffer]) -> tuple[list[Run], Any, Any]:
    """Small sections are joined, since each run is a call of a kernel; a large one is a run by itself and not copied."""
    starts, ends = np.empty(len(sections), np.uint64), np.empty(len(sections), np.uint64)
    runs = []
    for first, last in pairwise((0, *_steps([len(s) for s in sections]))):
        if last - first == 1:
            data, starts[first], ends[first] = np.frombuffer(sections[first], np.uint8), 0, len(sections[first])
        else:
            data, starts[first:last], ends[first:last] = joined(sections[first:last])
        runs.append((last, data))
    return runs, starts, ends


def _checked(buffer: Buffer, batches: Batches, room: Any) -> Iterator[Run]:
    """Each run once its checksums are checked: what they have read, the decoder then finds in the core's cache."""
    data, checks = np.frombuffer(buffer, np.uint8), crc_checks(buffer, batches)
    for first, last in pairwise((0, *_steps(room.tolist()))):
        for _ in islice(checks, last - first):
            pass
        yield last, data


def _inflated(buffer: Buffer, batches: Batches) -> Iterator[Buffer]:
    view, inflate = memoryview(buffer), Inflater().inflate
    columns = (batches.codec, batches.positions, batches.end, batches.count)
    for codec, position, end, count in zip(*(column.tolist() for column in columns), strict=True):
        section = view[position + HEADER_BYTES : end]
        # A batch that compaction emptied is a bare header, whatever codec it names.
        if codec == Codec.none or (not count and not section):
            yield section
            continue
        try:
            yield inflate(codec, section)
        except Corrupt as e:
            raise Corrupt(e.problem, position=position) from e


def _decode(runs: Iterable[Run], starts: Any, ends: Any, batches: Batches, want: Projection) -> pa.RecordBatch:
    """Decodes the sections `[starts, ends)` of batches, each in the bytes of the run that it belongs to."""
    counts, room = batches.count.astype(np.uint64), ends - starts
    # A count is a claim: memory is taken for it only when the bytes could hold so many records. A negative one is huge here.
    bad = counts > room // _RECORD_BYTES_MIN
    if bad.any():
        b = int(bad.argmax())
        raise Corrupt(f"a batch of {room[b]} bytes of records claims {batches.count[b]}", position=int(batches.positions[b]))
    rows, size = int(counts.sum()), int(room.sum())

    offsets, timestamps = np.empty(rows, np.int64), np.empty(rows, np.int64)
    keys = Binary.make(rows, size, wanted=want.key)
    values = Binary.make(rows, size, wanted=want.value)
    headers_at = np.empty(rows if want.headers else 0, np.uint64)
    headers_end = np.empty(rows if want.headers else 0, np.uint64)
    base_offsets, base_timestamps = np.ascontiguousarray(batches.base_offset), batches.base_timestamp
    append_timestamps = batches.append_timestamp
    at = row = key_bytes = value_bytes = key_nulls = value_nulls = headers = 0
    read: list[tuple[int, Any]] = []
    for last, data in runs:
        status, at, row, key_bytes, value_bytes, null_keys, null_values, more_headers = record_kernels.decode_records(
            at, last, row, key_bytes, value_bytes,
            data, starts, ends, counts, base_offsets, base_timestamps, append_timestamps,
            want.key, want.value, want.headers,
            offsets, timestamps, keys.ends, keys.data, keys.valid, values.ends, values.data, values.valid,
            headers_at, headers_end,
        )  # fmt: skip
        if status != kernels.DONE:
            raise Corrupt(_PROBLEM[status], position=int(batches.positions[at]))
        key_nulls += null_keys
        value_nulls += null_values
        headers += more_headers
        read.append((row, data))

    columns: dict[str, Any] = {}
    if want.key:
        columns["key"] = keys.array(key_bytes, key_nulls)
    if want.value:
        columns["value"] = values.array(value_bytes, value_nulls)
    if want.headers:
        columns["headers"] = _headers(read, headers_at, headers_end, headers, batches)
    return record_batch(offsets, timestamps, columns, batches, want)


def record_batch(offsets: Any, timestamps: Any, columns: dict[str, Any], batches: Batches, want: Projection) -> pa.RecordBatch:
    """What every decoder gives: offsets and timestamps, the columns between, and the timestamp type where it is wanted."""
    columns = {"offset": _int64(offsets), "timestamp": _int64(timestamps)} | columns
    if want.timestamp_type:
        columns["timestamp_type"] = pa.array(per_record(batches, batches.timestamp_type))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def no_headers(rows: int) -> Any:
    """A column of headers where no record has one."""
    list_ends = np.zeros(rows + 1, np.int32)
    return pa.Array.from_buffers(HEADERS_TYPE, rows, [None, pa.py_buffer(list_ends)], 0, children=[_NO_PAIRS])


def _steps(sizes: list[int]) -> Iterator[int]:
    """Ends of runs of batches of about `record_kernels.STEP_BYTES` each."""
    size = 0
    for row, of_batch in enumerate(sizes):
        if size and size + of_batch > record_kernels.STEP_BYTES:
            yield row
            size = 0
        size += of_batch
    if sizes:
        yield len(sizes)


@dataclass(frozen=True, slots=True)
class Binary:
    """The buffers of an Arrow binary column, being filled; `valid` is 1 but where a kernel writes a null's 0."""

    ends: Any
    data: Any
    valid: Any

    @classmethod
    def make(cls, rows: int, size: int, *, wanted: bool) -> "Binary":
        """Room for so many values of so many bytes in all; none for a column that is not wanted."""
        rows, size = (rows, size + record_kernels.BLOCK_BYTES) if wanted else (0, 0)
        ends = np.empty(rows + 1, np.int32)
        ends[0] = 0
        return cls(ends, _memory(size), np.ones(rows, np.uint8))

    def array(self, size: int, nulls: int) -> Any:
        """The column, after `size` bytes and `nulls` nulls were filled in."""
        bitmap = pa.py_buffer(np.packbits(self.valid, bitorder="little")) if nulls else None
        buffers = [bitmap, pa.py_buffer(self.ends), pa.py_buffer(self.data[:size])]
        return pa.Array.from_buffers(pa.binary(), len(self.valid), buffers, nulls)


def _int64(values: Any) -> Any:
    # pa.array looks at numpy arrays for so long that it shows in the profile.
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)], 0)


def _memory(size: int) -> Any:
    """Bytes from Arrow's pool, which keeps its pages; numpy gives them back, and touching them anew costs as much as decoding."""
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


def _headers(read: list[tuple[int, Any]], at: Any, end: Any, count: int, batches: Batches) -> Any:
    """`read` are the bytes that the rows lie in, each with the row after the last of its rows."""
    rows = len(at)
    if not count:
        return no_headers(rows)
    list_ends = np.zeros(rows + 1, np.int32)
    size = int((end - at).sum())
    keys, values = Binary.make(int(count), size, wanted=True), Binary.make(int(count), size, wanted=True)
    row = header = key_bytes = value_bytes = nulls = 0
    for last, data in read:
        status, row, header, key_bytes, value_bytes, null_values = record_kernels.decode_headers(
            row, last, header, key_bytes, value_bytes,
            data, at, end, list_ends, keys.ends, keys.data, values.ends, values.data, values.valid,
        )  # fmt: skip
        if status != kernels.DONE:
            b = int(np.searchsorted(np.cumsum(batches.count), row, side="right"))
            raise Corrupt(_PROBLEM[status], position=int(batches.positions[b]))
        nulls += null_values
    pairs = pa.StructArray.from_arrays(
        [keys.array(key_bytes, 0), values.array(value_bytes, nulls)], fields=list(HEADERS_TYPE.value_type)
    )
    return pa.Array.from_buffers(HEADERS_TYPE, rows, [None, pa.py_buffer(list_ends)], 0, children=[pairs])


def warm_up() -> None:
    """Makes numba's compiled code exist on disk, so that the first real call does not wait for it: importing does it all."""
