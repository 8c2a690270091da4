"""How much a page's Parquet would become in memory, by its footer and the headers of its pages of values, before it is inflated.

The footer says how many rows and bytes there are, and may lie. What a reader allocates follows the header in front of each page
of values, so each is read. A value that stands in a dictionary, or shares its beginning with the one before, takes hardly a byte
and becomes a whole text: dictionaries count as often as they may be referred to, and other encodings than our own writer's are
refused. Both are structs of Thrift's compact protocol (parquet-format, `FileMetaData` and `PageHeader`):

    footer   3 rows, 4 row groups; of a group 1 columns, 3 rows; of a column 3 its metadata; of that 7 bytes as they are stored,
             9 and 11 where its values and its dictionary begin
    header   1 what follows: 0 values, 2 a dictionary, 3 values (version 2); 2 its bytes when inflated; 3 its bytes as stored;
             5, 7 or 8 what there is of each of these kinds: 1 how many values, 2 (in 8: 4) how they are encoded

Arrow's own view of a damaged footer ends the process, so it is not asked for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from local_log.formats.primitives import INT64_MAX

ROWS_MAX = 8_192
"""Four times what a page of entries may grow to, or one of refs has."""
COLUMNS_MAX = 256
ROW_GROUPS_MAX = 64
FOOTER_BYTES_MAX = 1 << 20
HEADERS_MAX = 10_000
VALUES_MAX = 1 << 19
"""Of one column, with those in lists."""
BYTES_MAX = 256 << 20
BYTES_PER_ROW_MAX = 256 << 10
"""A chunk index of a segment of 2 GiB in chunks of 64 KiB takes half of this."""

_VALUES, _DICTIONARY, _VALUES_V2 = 0, 2, 3
MAGIC = b"PAR1"
_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY = 0, 2, 3, 8
_ENCODINGS = {_PLAIN, _PLAIN_DICTIONARY, _RLE, _RLE_DICTIONARY}
_OF_KIND = {_VALUES: (5, 2), _DICTIONARY: (7, 2), _VALUES_V2: (8, 4)}
_BOOLEANS, _INTEGERS, _BYTES, _LISTS, _STRUCT = (1, 2), (4, 5, 6), 8, (9, 10), 12
_FIXED = {1: 0, 2: 0, 3: 1, 7: 8}
"""Bytes of a field of a kind that always has as many: true, false, a byte, a double."""
_DEPTH_MAX = 8
_VARINT_MAX = 10


def rows_of(body: bytes) -> int:
    """The rows of a page, which is of a size that is read. Raises ValueError for one that would take more memory than any page
    of ours, or contradicts itself."""
    size = int.from_bytes(body[-8:-4], "little")
    if body[:4] != MAGIC or body[-4:] != MAGIC or not 0 < size <= min(FOOTER_BYTES_MAX, len(body) - 12):
        raise ValueError("no Parquet file")
    end = len(body) - 8
    footer, _ = _read(body[end - size : end], 0)
    rows, groups = _number(footer, 3), _list(footer, 4)
    if not 0 < rows <= ROWS_MAX or not 0 < len(groups) <= ROW_GROUPS_MAX or sum(_number(g, 3) for g in groups) != rows:
        raise ValueError(f"{rows} rows in {len(groups)} groups")
    inflated, headers, bytes_max = 0, 0, min(BYTES_MAX, (rows + 4) * BYTES_PER_ROW_MAX)
    before_footer, values = body[: end - size], dict[int, int]()
    for group in groups:
        for number, column in enumerate(_list(group, 1)):
            of = _column(before_footer, column.get(3) if isinstance(column, dict) else None, HEADERS_MAX - headers)
            headers += of.headers
            inflated += of.size
            values[number] = values.get(number, 0) + of.values
            if inflated > bytes_max or values[number] > VALUES_MAX or number >= COLUMNS_MAX:
                raise ValueError(f"more than {bytes_max} bytes, {VALUES_MAX} values of a column or {COLUMNS_MAX} of these")
    return rows


@dataclass(slots=True)
class _Column:
    """What the pages of a column become: values, bytes, and how many headers say so."""

    values: int = 0
    size: int = 0
    headers: int = 0


def _column(body: bytes, column: Any, headers_max: int) -> _Column:
    start = _number(column, 9)
    if isinstance(column.get(11), int) and column[11] > 0:
        start = min(start, column[11])
    end = start + _number(column, 7)
    if not 0 < start <= end <= len(body):
        raise ValueError(f"a column at bytes [{start}, {end}) of {len(body)}")
    of, dictionary = _Column(), 0
    for header in _headers(body, start, end):
        of.headers += 1
        if of.headers > headers_max:
            raise ValueError(f"more than {HEADERS_MAX} headers")
        of.size += header.size
        if header.kind == _DICTIONARY:
            dictionary += header.size
        else:
            of.values += header.values
    of.size += dictionary * of.values
    return of


@dataclass(frozen=True, slots=True)
class _Header:
    kind: int
    size: int
    values: int


def _headers(body: bytes, start: int, end: int) -> Iterator[_Header]:
    while start < end:
        fields, start = _read(body, start)
        kind, size, stored = (_number(fields, n) for n in (1, 2, 3))
        of_kind, encoding_field = _OF_KIND.get(kind, (-1, -1))
        values, encoding = _number(fields.get(of_kind), 1), _number(fields.get(of_kind), encoding_field)
        if stored > end - start or encoding not in _ENCODINGS:
            raise ValueError(f"a page of values in encoding {encoding}, with {stored} bytes of {end - start}")
        start += stored
        yield _Header(kind, size, values)


def _number(fields: Any, field: int) -> int:
    found = fields.get(field) if isinstance(fields, dict) else None
    if type(found) is not int or not 0 <= found <= INT64_MAX:
        raise ValueError(f"field {field} is {found!r}")
    return found


def _list(fields: Any, field: int) -> list[Any]:
    found = fields.get(field) if isinstance(fields, dict) else None
    if type(found) is not list:
        raise ValueError(f"field {field} is no list")
    return found


def _read(body: bytes, at: int) -> tuple[dict[int, Any], int]:
    """A struct, and where it ends. Raises ValueError where the bytes end before."""
    try:
        return _struct(body, at)
    except IndexError as e:
        raise ValueError("a struct is cut off") from e


def _struct(body: bytes, at: int, depth: int = 0) -> tuple[dict[int, Any], int]:
    """The integers, structs and lists of a struct of Thrift's compact protocol, by field; other fields are skipped.

    Most fields are one byte and a number or a length of one byte: no call is spent on these, as a page has a thousand of them.
    """
    if depth > _DEPTH_MAX:
        raise ValueError(f"structs {depth} deep")
    found: dict[int, Any] = {}
    field = 0
    while first := body[at]:
        at += 1
        if first > 15:
            field += first >> 4
        else:
            field, at = _integer(body, at)
        kind = first & 15
        if kind in _INTEGERS and (byte := body[at]) < 128:
            found[field], at = (byte >> 1) ^ -(byte & 1), at + 1
        elif kind == _BYTES and (size := body[at]) < 128:
            found[field], at = None, at + 1 + size
        else:
            found[field], at = _value(body, at, kind, depth)
    return found, at + 1


def _value(body: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind == _BYTES:
        size, at = _varint(body, at)
        return None, at + size
    if kind == _STRUCT:
        return _struct(body, at, depth + 1)
    if kind in _LISTS:
        return _elements(body, at, depth + 1)
    if kind in _INTEGERS:
        return _integer(body, at)
    if kind not in _FIXED:
        raise ValueError(f"a field of kind {kind}")
    return None, at + _FIXED[kind]


def _elements(body: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    """The elements of a list or set, each of one byte or more."""
    count, kind = body[at] >> 4, body[at] & 15
    at += 1
    if count == 15:
        count, at = _varint(body, at)
    if count > len(body) - at:
        raise ValueError(f"{count} elements in {len(body) - at} bytes")
    if kind in _BOOLEANS:  # in a list, they have a byte each
        return [], at + count
    found: list[Any] = []
    for _ in range(count):
        if kind == _BYTES and (size := body[at]) < 128:
            value, at = None, at + 1 + size
        elif kind in _INTEGERS and (byte := body[at]) < 128:
            value, at = (byte >> 1) ^ -(byte & 1), at + 1
        else:
            value, at = _value(body, at, kind, depth)
        found.append(value)
    return found, at


def _integer(body: bytes, at: int) -> tuple[int, int]:
    value, at = _varint(body, at)
    return (value >> 1) ^ -(value & 1), at


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = body[at]
    if value < 128:
        return value, at + 1
    value &= 127
    for n in range(1, _VARINT_MAX):
        byte = body[at + n]
        value |= (byte & 127) << (7 * n)
        if byte < 128:
            return value, at + n + 1
    raise ValueError("a number is cut off")
