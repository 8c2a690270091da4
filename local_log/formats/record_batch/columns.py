"""Decodes batches to Arrow columns. All readers of records use it; one call decodes a whole group of batches."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from local_log.errors import Corrupt
from local_log.formats.compression import Inflater
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.kernels import constants
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec
from local_log.formats.record_batch.batch_v2 import RECORD_BYTES_MIN, Batches, check_crcs
from local_log.formats.record_batch.projection import EVERYTHING, Projection

INFLATED_GROUP_BYTES = 8 << 20
"""Decompressed bytes after which a group of compressed batches is decoded; one batch alone may exceed it, up to its own limit."""

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())]))

_RUN_BYTES_MIN = 128 << 10
"""Decompressed bytes to decode in one kernel call: enough to amortize the call, little enough for the CPU cache."""

_SMALL_FRAMES_MIN = 4
"""Batches for which inflating many by one call is tried."""

_NO_PAIRS = pa.array([], HEADERS_TYPE.value_type)
_RECORD_BYTES_MIN = np.uint64(RECORD_BYTES_MIN)
_PROBLEM = {
    constants.BAD_VARINT: "a varint does not end where its record ends",
    constants.RECORD_PAST_BATCH: "a record is longer than what is left of its batch",
    constants.FIELD_PAST_RECORD: "a key, value or header is longer than what is left of its record",
    constants.BYTES_LEFT_OVER: "bytes are left over after the last record or header",
    constants.BAD_HEADER_COUNT: "a record claims more headers than it has bytes for",
}


def decode(buffer: Buffer, batches: Batches, want: Projection = EVERYTHING) -> Iterator[tuple[Batches, pa.RecordBatch]]:
    """The records of `batches`, in order: offset int64, timestamp int64 (ms), key, value binary, headers list of structs,
    timestamp_type int32.

    Of the last four columns only those in `want` are there. Each Arrow record batch comes with its Kafka batches: one group of
    all batches, or several if they decompress to more than a group's size. Raises Corrupt with the batch's position in `buffer`
    if a checksum is wrong or the records do not match their declared form.
    """
    if batches.codec.any():
        check_crcs(buffer, batches)
        yield from _decode_compressed(buffer, batches, want)
    else:
        starts, ends = batches.positions + np.uint64(BATCH_HEADER_BYTES), batches.end
        yield batches, _decode(_checked(buffer, batches, ends - starts), starts, ends, batches, want)


def decode_section(section: Buffer, batch: Batches) -> pa.RecordBatch:
    """The records of one batch whose section is already decompressed; see `decode`. No checksum is checked."""
    return next(columns for _, columns in _decode_sections([section], batch, EVERYTHING))


def per_record(batches: Batches, of_batch: Any) -> Any:
    """Repeats a value of each batch for each of its records: a column that fits those of `decode`."""
    return np.repeat(of_batch, batches.count)


def grouped(sections: Iterator[Buffer], batches: Batches) -> Iterator[tuple[Batches, list[Buffer]]]:
    """The decompressed sections of the batches, in groups of at most a group's size."""
    parts: list[Buffer] = []
    first = size = 0
    for row, part in enumerate(sections):
        parts.append(part)
        size += len(part)
        if size >= INFLATED_GROUP_BYTES or row + 1 == len(batches):
            yield batches[first : row + 1], parts
            parts, first, size = [], row + 1, 0


def joined(parts: list[Buffer]) -> tuple[Any, Any, Any]:
    """The parts joined into one array of bytes, and the start and end of each in it."""
    ends = np.cumsum([len(p) for p in parts], dtype=np.uint64)
    starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
    return np.frombuffer(b"".join(parts), np.uint8), starts, ends


def _decode_compressed(buffer: Buffer, batches: Batches, want: Projection) -> Iterator[tuple[Batches, pa.RecordBatch]]:
    """Small lz4 batches are inflated by one call as long as there are some, all others one by one."""
    data, codecs = np.frombuffer(buffer, np.uint8), batches.codec.astype(np.uint8)
    starts, ends = batches.positions + np.uint64(BATCH_HEADER_BYTES), batches.end
    row = 0
    while len(batches) - row >= _SMALL_FRAMES_MIN:
        first, row, run = row, *_inflated_run(data, row, codecs, starts, ends)
        if row == first:
            break
        data_of_run, run_starts, run_ends = run
        of_run = batches[first:row]
        yield of_run, _decode([(row - first, data_of_run)], run_starts, run_ends, of_run, want)
    if row < len(batches):
        left = batches[row:] if row else batches
        yield from _decode_sections(_inflated(buffer, left), left, want)


def _inflated_run(data: Any, first: int, codecs: Any, starts: Any, ends: Any) -> tuple[int, tuple[Any, Any, Any]]:
    """The row after the small lz4 batches from `first` on, and their sections: their bytes, and the start and end of each."""
    from local_log.formats.kernels.inflate_lz4 import INFLATED_BYTES_MAX, inflate_frames

    rows = len(starts)
    size = max(INFLATED_BYTES_MAX, min((rows - first) * INFLATED_BYTES_MAX, INFLATED_GROUP_BYTES))
    out, out_starts, out_ends = np.empty(size, np.uint8), np.empty(rows, np.uint64), np.empty(rows, np.uint64)
    last = int(inflate_frames(data, first, codecs, starts, ends, out_starts, out_ends, out))
    return last, (out, out_starts[first:last], out_ends[first:last])


Run = tuple[int, Any]
"""The bytes of some batches of a group, and the row after the last of these batches."""


def _decode_sections(sections: Iterable[Buffer], batches: Batches, want: Projection) -> Iterator[tuple[Batches, pa.RecordBatch]]:
    """Decodes each section as it comes, while it is in the CPU cache, and then frees it.

    Small sections are joined first, since each run of them costs one kernel call.
    """
    starts, ends = np.zeros(len(batches), np.uint64), np.zeros(len(batches), np.uint64)
    group: _Group | None = None
    waiting: list[Buffer] = []
    first = size = waiting_size = 0
    counts = batches.count.tolist()

    def add_waiting(group: _Group, row: int) -> None:
        nonlocal waiting, waiting_size
        if len(waiting) == 1:
            ends[row - 1] = len(waiting[0])
            group.add((row, np.frombuffer(waiting[0], np.uint8)), starts, ends)
        elif waiting:
            data, starts[row - len(waiting) : row], ends[row - len(waiting) : row] = joined(waiting)
            group.add((row, data), starts, ends)
        waiting, waiting_size = [], 0

    for row, section in enumerate(sections):
        if group is not None and size + len(section) > group.bytes_max:
            add_waiting(group, row)
            yield batches[first:row], group.columns(batches[first:row])
            group, first, size = None, row, 0
        if group is None:
            group = _Group(batches, want, row, *_capacity(batches, row, len(section)))
        length = len(section)
        if not 0 <= counts[row] <= length // RECORD_BYTES_MIN:
            _check_count(batches, row, length)
        waiting.append(section)
        waiting_size += length
        size += length
        if waiting_size >= _RUN_BYTES_MIN:
            add_waiting(group, row + 1)
    if group is not None:
        add_waiting(group, len(batches))
        yield batches[first:], group.columns(batches[first:])


def _capacity(batches: Batches, first: int, size: int) -> tuple[int, int]:
    """The maximum number of rows and bytes of a group that starts with this batch, whose records have `size` bytes."""
    bytes_max = max(size, INFLATED_GROUP_BYTES)
    claimed = int(batches.count[first:].clip(min=0).sum(dtype=np.int64))
    return min(claimed, bytes_max // RECORD_BYTES_MIN), bytes_max


def _check_count(batches: Batches, row: int, size: int) -> None:
    """Raises Corrupt for a record count that the bytes cannot contain, before memory is allocated for it."""
    count = int(batches.count[row])
    if not 0 <= count <= size // RECORD_BYTES_MIN:
        raise Corrupt(f"a batch of {size} bytes of records claims {count}", position=int(batches.positions[row]))


def _checked(buffer: Buffer, batches: Batches, room: Any) -> Iterator[Run]:
    """Checks the checksums run by run, so that the decoder then finds the bytes in the CPU cache."""
    data = np.frombuffer(buffer, np.uint8)
    for first, last in pairwise((0, *_steps(room))):
        check_crcs(buffer, batches[first:last])
        yield last, data


def _inflated(buffer: Buffer, batches: Batches) -> Iterator[Buffer]:
    view, inflate = memoryview(buffer), Inflater().inflate
    columns = (batches.codec, batches.positions, batches.end, batches.count)
    for codec, position, end, count in zip(*(column.tolist() for column in columns), strict=True):
        section = view[position + BATCH_HEADER_BYTES : end]
        # A batch that compaction has emptied is a header without a section, also if it has a codec.
        if codec == Codec.none or (not count and not section):
            yield section
            continue
        try:
            yield inflate(codec, section)
        except Corrupt as e:
            raise Corrupt(e.problem, position=position) from e


def _decode(runs: Iterable[Run], starts: Any, ends: Any, batches: Batches, want: Projection) -> pa.RecordBatch:
    """Decodes the sections `[starts, ends)` of the batches, each in the bytes of its run."""
    room = ends - starts
    bad = batches.count.astype(np.uint64) > room // _RECORD_BYTES_MIN  # a negative count is a huge uint64
    if bad.any():
        row = int(bad.argmax())
        _check_count(batches, row, int(room[row]))
    group = _Group(batches, want, 0, int(batches.count.sum(dtype=np.int64)), int(room.sum()))
    for run in runs:
        group.add(run, starts, ends)
    return group.columns(batches)


class _Group:
    """The columns of the batches from `first` on while they are filled, with capacity for a number of rows and of bytes."""

    def __init__(self, batches: Batches, want: Projection, first: int, rows_max: int, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self._batches = batches
        self._want = want
        self._counts = batches.count.astype(np.uint64)
        self._base_offsets = np.ascontiguousarray(batches.base_offset)
        self._base_timestamps, self._append_timestamps = batches.base_timestamp, batches.append_timestamp
        self._offsets, self._timestamps = np.empty(rows_max, np.int64), np.empty(rows_max, np.int64)
        self._keys = Binary.make(rows_max, bytes_max, wanted=want.key)
        self._values = Binary.make(rows_max, bytes_max, wanted=want.value)
        self._headers_at = np.empty(rows_max if want.headers else 0, np.uint64)
        self._headers_end = np.empty(rows_max if want.headers else 0, np.uint64)
        self._at, self._row = first, 0
        self._key_bytes = self._value_bytes = self._key_nulls = self._value_nulls = self._headers = 0
        self._read: list[Run] = []

    def add(self, run: Run, starts: Any, ends: Any) -> None:
        """Decodes the batches up to the run's last row, with sections `[starts, ends)` of the run's bytes. Raises Corrupt."""
        from local_log.formats.kernels.decode import decode_records

        last, data = run
        status, at, row, key_bytes, value_bytes, null_keys, null_values, headers = decode_records(
            self._at, last, self._row, self._key_bytes, self._value_bytes,
            data, starts, ends, self._counts, self._base_offsets, self._base_timestamps, self._append_timestamps,
            self._want.key, self._want.value, self._want.headers,
            self._offsets, self._timestamps, self._keys.ends, self._keys.data, self._keys.valid,
            self._values.ends, self._values.data, self._values.valid, self._headers_at, self._headers_end,
        )  # fmt: skip
        if status != constants.DONE:
            raise Corrupt(_PROBLEM[status], position=int(self._batches.positions[at]))
        self._at, self._row, self._key_bytes, self._value_bytes = at, row, key_bytes, value_bytes
        self._key_nulls += null_keys
        self._value_nulls += null_values
        if self._want.headers:  # headers are decoded from these bytes later
            self._headers += headers
            self._read.append((row, data))

    def columns(self, batches: Batches) -> pa.RecordBatch:
        """The decoded columns of `batches`. Raises Corrupt."""
        columns: dict[str, Any] = {}
        if self._want.key:
            columns["key"] = self._keys.array(self._row, self._key_bytes, self._key_nulls)
        if self._want.value:
            columns["value"] = self._values.array(self._row, self._value_bytes, self._value_nulls)
        if self._want.headers:
            at, end = self._headers_at[: self._row], self._headers_end[: self._row]
            columns["headers"] = _headers(self._read, at, end, self._headers, batches)
        return record_batch(self._offsets[: self._row], self._timestamps[: self._row], columns, batches, self._want)


def record_batch(offsets: Any, timestamps: Any, columns: dict[str, Any], batches: Batches, want: Projection) -> pa.RecordBatch:
    """The Arrow record batch of every decoder: offsets, timestamps, the columns between, and the timestamp type if wanted."""
    columns = {"offset": _int64(offsets), "timestamp": _int64(timestamps)} | columns
    if want.timestamp_type:
        columns["timestamp_type"] = pa.array(per_record(batches, batches.timestamp_type))
    return pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))


def no_headers(rows: int) -> Any:
    """A headers column in which no record has headers."""
    list_ends = np.zeros(rows + 1, np.int32)
    return pa.Array.from_buffers(HEADERS_TYPE, rows, [None, pa.py_buffer(list_ends)], 0, children=[_NO_PAIRS])


def _steps(sizes: Any) -> Iterator[int]:
    """The ends of consecutive groups of batches of about STEP_BYTES each."""
    ends = np.cumsum(sizes, dtype=np.int64)
    row = 0
    while row < len(ends):
        before = int(ends[row - 1]) if row else 0
        row = max(row + 1, int(np.searchsorted(ends, before + constants.STEP_BYTES, side="right")))
        yield row


@dataclass(frozen=True, slots=True)
class Binary:
    """The buffers of an Arrow binary column while it is filled; `valid` is 1 except where a kernel writes 0 for a null."""

    ends: Any
    data: Any
    valid: Any

    @classmethod
    def make(cls, rows: int, size: int, *, wanted: bool) -> "Binary":
        """Buffers for a number of values with `size` bytes in total; empty for a column that is not wanted."""
        rows, size = (rows, size + constants.BLOCK_BYTES) if wanted else (0, 0)
        ends = np.empty(rows + 1, np.int32)
        ends[0] = 0
        return cls(ends, _memory(size), np.ones(rows, np.uint8))

    def array(self, rows: int, size: int, nulls: int) -> Any:
        """The column, with this number of rows, bytes and nulls."""
        bitmap = pa.py_buffer(np.packbits(self.valid[:rows], bitorder="little")) if nulls else None
        buffers = [bitmap, pa.py_buffer(self.ends[: rows + 1]), pa.py_buffer(self.data[:size])]
        return pa.Array.from_buffers(pa.binary(), rows, buffers, nulls)


def _int64(values: Any) -> Any:
    # pa.array is slower: its inspection of numpy arrays shows in the profile.
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)], 0)


def _memory(size: int) -> Any:
    """Memory of Arrow's pool, which keeps its pages; numpy frees them, and new page faults cost as much as the decoding."""
    return np.frombuffer(pa.allocate_buffer(size), np.uint8)


def _headers(read: list[tuple[int, Any]], at: Any, end: Any, count: int, batches: Batches) -> Any:
    """The headers column. `read` are the buffers with the rows' bytes, each with the row after its last row."""
    rows = len(at)
    if not count:
        return no_headers(rows)
    list_ends = np.zeros(rows + 1, np.int32)
    size = int((end - at).sum())
    keys, values = Binary.make(int(count), size, wanted=True), Binary.make(int(count), size, wanted=True)
    from local_log.formats.kernels.decode import decode_headers

    row = header = key_bytes = value_bytes = nulls = 0
    for last, data in read:
        status, row, header, key_bytes, value_bytes, null_values = decode_headers(
            row, last, header, key_bytes, value_bytes,
            data, at, end, list_ends, keys.ends, keys.data, values.ends, values.data, values.valid,
        )  # fmt: skip
        if status != constants.DONE:
            b = int(np.searchsorted(np.cumsum(batches.count), row, side="right"))
            raise Corrupt(_PROBLEM[status], position=int(batches.positions[b]))
        nulls += null_values
    pairs = pa.StructArray.from_arrays(
        [keys.array(count, key_bytes, 0), values.array(count, value_bytes, nulls)], fields=list(HEADERS_TYPE.value_type)
    )
    return pa.Array.from_buffers(HEADERS_TYPE, rows, [None, pa.py_buffer(list_ends)], 0, children=[pairs])


def warm_up() -> None:
    """Compiles the kernels, or loads them from the cache, so that the first real call does not wait, nor what forks later."""
    from local_log.formats.kernels import decode, inflate_lz4, messages, scan  # noqa: F401  # the import does it all
