"""Keys and values as text or JSON: Arrow in, Arrow out. Loaded by executors.

What cannot be read in the form that is asked for is not lost: it stays as it was in a column of its own, and is counted.

    value: json struct<id:bigint>       value struct<id:bigint>, value_raw binary
    {"id": 7}                           {id: 7}                  null
    {"id": "seven"}                     null                     the same bytes
    null                                null                     null
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from spark_jobs.source.rows import FIELDS

RAW: Final = "_raw"
_SPACE: Final = " \t\r\n"


class As(StrEnum):
    """How keys or values are written."""

    binary = "binary"
    text = "text"
    json = "json"


@dataclass(frozen=True, slots=True)
class Form:
    """What a key or a value becomes. For JSON `type` is a struct, and `schema` says the same in Spark's words."""

    kind: As = As.binary
    type: pa.DataType | None = None
    schema: str = ""

    def named(self, column: str) -> str:
        """The column and its form, for a comparison with those of other runs; a column of bytes is only its name."""
        return " ".join(filter(None, (column, "" if self.kind is As.binary else str(self.kind), self.schema)))

    def fields(self, column: str) -> Iterator[tuple[str, pa.DataType]]:
        """The columns that the column becomes."""
        if self.kind is As.binary:
            yield column, pa.binary()
            return
        yield column, pa.string() if self.type is None else self.type
        yield column + RAW, pa.binary()

    def read(self, column: Any) -> tuple[tuple[Any, ...], int]:
        """The arrays of `fields` for a column of bytes, and how many of them could not be read in this form."""
        if self.kind is As.binary:
            return (column,), 0
        is_text = _are_utf8(column)
        if self.type is None:
            values, is_read = pc.if_else(pa.array(is_text), column, pa.scalar(None, pa.binary())).cast(pa.string()), is_text
        else:
            values, is_read = _of_json(column, is_text, self.type)
        raw = pc.if_else(pa.array(is_read), pa.scalar(None, pa.binary()), column)
        return (values, raw), len(raw) - raw.null_count


BINARY: Final = Form()


class FormedRows:
    """Rows whose keys and values are read in their forms. `unparsed` counts, by column, what could not be."""

    def __init__(self, columns: Iterable[str], forms: Mapping[str, Form]) -> None:
        self._columns, self._forms = tuple(columns), forms
        self.unparsed = dict.fromkeys(forms, 0)
        self.schema = pa.schema([field for name in self._columns for field in self._fields(name)])

    def _fields(self, name: str) -> Iterable[tuple[str, pa.DataType]]:
        return self._forms[name].fields(name) if name in self._forms else ((name, FIELDS[name]),)

    def of(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of batches that have the columns."""
        for batch in batches:
            arrays: list[Any] = []
            for name in self._columns:
                if name in self._forms:
                    made, unparsed = self._forms[name].read(batch.column(name))
                    self.unparsed[name] += unparsed
                    arrays += made
                else:
                    arrays.append(batch.column(name))
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)


def _are_utf8(column: Any) -> Any:
    try:
        column.cast(pa.string())
    except pa.ArrowInvalid:
        return np.fromiter(map(_is_utf8, column), bool, len(column))  # Arrow does not say which of them it was
    return np.ones(len(column), bool)


def _is_utf8(value: Any) -> bool:
    try:
        str(value.as_buffer() or b"", "utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _of_json(column: Any, is_text: Any, kind: pa.DataType) -> tuple[Any, Any]:
    """The structs, and which of the values were read; a null is none of them, and has nothing to be kept."""
    texts = pc.utf8_trim(pc.if_else(pa.array(is_text), column, pa.scalar(None, pa.binary())).cast(pa.string()), _SPACE)
    # A text between braces can be no part of a document that another one begins: so as many documents as texts are the same.
    may_be = pc.fill_null(pc.and_(pc.starts_with(texts, "{"), pc.ends_with(texts, "}")), False).to_numpy(zero_copy_only=False)
    found = list(_parsed(texts.filter(pa.array(may_be)), kind))
    is_read = may_be.copy()
    is_read[may_be] = np.concatenate([is_good for _, is_good in found] or [np.zeros(0, bool)])
    structs = pa.concat_arrays([structs for structs, _ in found] or [pa.array([], kind)])
    places = np.where(is_read, np.cumsum(may_be) - 1, 0)
    return structs.take(pa.array(places, mask=~is_read)), is_read


def _parsed(texts: Any, kind: pa.DataType) -> Iterator[tuple[Any, Any]]:
    """The structs of texts in their order, in parts, and which of them are any: halves, until only what is wrong is alone."""
    if not len(texts):
        return
    structs = _documents(texts, kind)
    if structs is not None:
        yield structs, np.ones(len(texts), bool)
    elif len(texts) == 1:
        yield pa.nulls(1, kind), np.zeros(1, bool)
    else:
        yield from _parsed(texts[: len(texts) // 2], kind)
        yield from _parsed(texts[len(texts) // 2 :], kind)


def _documents(texts: Any, kind: pa.DataType) -> Any:
    """A struct of each text; None where one of the texts is not such a document. Fields that the struct does not have are
    passed over, and those that a document does not have are null."""
    joined = pc.binary_join(pa.ListArray.from_arrays([0, len(texts)], texts), "\n")[0].as_buffer()
    try:
        table = pa.json.read_json(
            pa.BufferReader(joined),
            pa.json.ReadOptions(use_threads=False, block_size=joined.size + 1),
            pa.json.ParseOptions(explicit_schema=pa.schema(list(kind)), unexpected_field_behavior="ignore"),
        )
    except pa.ArrowInvalid:
        return None
    if table.num_rows != len(texts):
        return None
    return pa.StructArray.from_arrays([c.combine_chunks() for c in table.columns], fields=list(kind))
