"""Batches to Arrow columns: what every reader of records goes through, whole groups of batches in one call."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from local_log.errors import Corrupt
from local_log.formats.compression import Inflater
from local_log.formats.header_layout import BATCH_HEADER_BYTES
from local_log.formats.kernels import decode as record_kernels
from local_log.formats.kernels import scan as kernels
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec
from local_log.formats.record_batch.batch_v2 import RECORD_BYTES_MIN, Batches, check_crcs, crc_checks

GROUP_BYTES = 8 << 20
"""How much to decode into one record batch: enough to hide what a batch costs, little enough to hold a few of them."""

INFLATED_GROUP_BYTES = 8 << 20
"""How far compressed batches may inflate before those that are done are decoded; one batch alone may go up to its own cap."""

HEADERS_TYPE = pa.list_(pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())]))

_RUN_BYTES_MIN = 128 << 10
"""What is inflated before it is decoded: enough for a call of a kernel, little enough to be in the core's cache still."""

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
        yield from _decode_sections(_inflated(buffer, batches), batches, want)
    else:
        starts, ends = batches.positions + np.uint64(BATCH_HEADER_BYTES), batches.end
        yield batches, _decode(_checked(buffer, batches, ends - starts), starts, ends, batches, want)


def decode_section(section: Buffer, batch: Batches) -> pa.RecordBatch:
    """The records of one batch whose section is inflated already; for the rest see `decode`. No checksum is checked."""
    return next(columns for _, columns in _decode_sections([section], batch, EVERYTHING))


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


def _decode_sections(sections: Iterable[Buffer], batches: Batches, want: Projection) -> Iterator[tuple[Batches, pa.RecordBatch]]:
    """Decodes each section when it comes, while the core has in its cache what was inflated, and keeps none for longer.

    Small ones wait for each other and are joined, since a kernel is called for each run of them.
    """
    starts, ends = np.zeros(len(batches), np.uint64), np.zeros(len(batches), np.uint64)
    group: _Group | None = None
    waiting: list[Buffer] = []
    first = size = waiting_size = 0

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
            group = _Group(batches, want, row, *_room(batches, row, len(section)))
        _refuse_claim(batches, row, len(section))
        waiting.append(section)
        waiting_size += len(section)
        size += len(section)
        if waiting_size >= _RUN_BYTES_MIN:
            add_waiting(group, row + 1)
    if group is not None:
        add_waiting(group, len(batches))
        yield batches[first:], group.columns(batches[first:])


def _room(batches: Batches, first: int, size: int) -> tuple[int, int]:
    """The most rows and bytes of a group that begins with this batch, of whose records there are `size` bytes."""
    bytes_max = max(size, INFLATED_GROUP_BYTES)
    claimed = int(batches.count[first:].clip(min=0).sum(dtype=np.int64))
    return min(claimed, bytes_max // RECORD_BYTES_MIN), bytes_max


def _refuse_claim(batches: Batches, row: int, size: int) -> None:
    """A count is a claim: memory is taken for it only when the bytes could hold so many records."""
    count = int(batches.count[row])
    if not 0 <= count <= size // RECORD_BYTES_MIN:
        raise Corrupt(f"a batch of {size} bytes of records claims {count}", position=int(batches.positions[row]))


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
        section = view[position + BATCH_HEADER_BYTES : end]
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
    room = ends - starts
    bad = batches.count.astype(np.uint64) > room // _RECORD_BYTES_MIN  # a negative one is huge here
    if bad.any():
        row = int(bad.argmax())
        _refuse_claim(batches, row, int(room[row]))
    group = _Group(batches, want, 0, int(batches.count.sum(dtype=np.int64)), int(room.sum()))
    for run in runs:
        group.add(run, starts, ends)
    return group.columns(batches)


class _Group:
    """The columns of batches from `first` on, being filled; there is room for so many rows, and bytes of each binary column."""

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
        """Decodes the batches up to the run's row, whose sections are `[starts, ends)` of the run's bytes. Raises Corrupt."""
        last, data = run
        status, at, row, key_bytes, value_bytes, null_keys, null_values, headers = record_kernels.decode_records(
            self._at, last, self._row, self._key_bytes, self._value_bytes,
            data, starts, ends, self._counts, self._base_offsets, self._base_timestamps, self._append_timestamps,
            self._want.key, self._want.value, self._want.headers,
            self._offsets, self._timestamps, self._keys.ends, self._keys.data, self._keys.valid,
            self._values.ends, self._values.data, self._values.valid, self._headers_at, self._headers_end,
        )  # fmt: skip
        if status != kernels.DONE:
            raise Corrupt(_PROBLEM[status], position=int(self._batches.positions[at]))
        self._at, self._row, self._key_bytes, self._value_bytes = at, row, key_bytes, value_bytes
        self._key_nulls += null_keys
        self._value_nulls += null_values
        if self._want.headers:  # only then the bytes are needed again
            self._headers += headers
            self._read.append((row, data))

    def columns(self, batches: Batches) -> pa.RecordBatch:
        """What was added, all of it of `batches`. Raises Corrupt."""
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

    def array(self, rows: int, size: int, nulls: int) -> Any:
        """The column, after so many rows with `size` bytes and `nulls` nulls among them were filled in."""
        bitmap = pa.py_buffer(np.packbits(self.valid[:rows], bitorder="little")) if nulls else None
        buffers = [bitmap, pa.py_buffer(self.ends[: rows + 1]), pa.py_buffer(self.data[:size])]
        return pa.Array.from_buffers(pa.binary(), rows, buffers, nulls)


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
        [keys.array(count, key_bytes, 0), values.array(count, value_bytes, nulls)], fields=list(HEADERS_TYPE.value_type)
    )
    return pa.Array.from_buffers(HEADERS_TYPE, rows, [None, pa.py_buffer(list_ends)], 0, children=[pairs])


def warm_up() -> None:
    """Makes numba's compiled code exist on disk, so that the first real call does not wait for it: importing does it all."""
