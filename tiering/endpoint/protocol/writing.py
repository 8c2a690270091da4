"""Messages into bytes: a writer for each class and version, made once from the class's fields.

A writer appends to an Output. Record batches are not copied: the message becomes a list of parts, buffers and whatever else the
fields of type `records` hold, for instance ranges of files. Fields that a version does not have are left out.
"""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import attrgetter
from struct import Struct
from typing import Any

from local_log.errors import Invalid
from local_log.file_range import size_of
from local_log.formats.primitives import write_uvarint
from tiering.endpoint.protocol.fields import RECORDS, STRING, UUID, ArrayOf, FieldSpec, WireType, specs_of

INT16_MAX = (1 << 15) - 1
_INT16_BYTES = 2
WRITTEN_BYTES_MAX = 100 << 20
"""Of a message without its records: as much as clients take by default, and more than any needs."""


class Output:
    """Bytes that grow, with the parts between them that are sent as they are."""

    __slots__ = ("_parts", "_size", "buffer")

    def __init__(self) -> None:
        self.buffer = bytearray()
        self._parts: list[Any] = []
        self._size = 0

    def add(self, parts: Iterable[Any]) -> None:
        """Appends parts: buffers and ranges of files."""
        for part in parts:
            if self.buffer:
                self._flush()
            self._parts.append(part)
            self._size += size_of(part)

    def finish(self) -> tuple[list[Any], int]:
        """All parts, and their bytes together."""
        if self.buffer:
            self._flush()
        return self._parts, self._size

    def _flush(self) -> None:
        self._parts.append(bytes(self.buffer))
        self._size += len(self.buffer)
        self.buffer.clear()


@dataclass(frozen=True, slots=True)
class Written:
    """An element of an array that was written before, for the version of the message that it is put into."""

    data: bytes


Write = Callable[[Output, Any], None]


@cache
def writer(message: type, version: int, *, flexible: bool) -> Write:
    """Writes a message class in one version of its API; `flexible` versions have compact lengths and tagged fields."""
    specs = [s for s in specs_of(message) if version in s.versions]
    steps = tuple(_steps([s for s in specs if s.tag is None], version, flexible=flexible))
    tagged = sorted((s.tag, s.name, s.default, _field_writer(s, version, flexible=flexible)) for s in specs if s.tag is not None)

    def write(out: Output, value: Any) -> None:
        for step in steps:
            step(out, value)
        if flexible:
            given = [(tag, one, of) for tag, name, default, of in tagged if (one := getattr(value, name)) != default]
            if given:
                _write_tagged(out, given)
            else:
                out.buffer.append(0)

    return write


def written(message: Any, version: int, *, flexible: bool) -> Written:
    """A message without record batches, to be put into arrays as often as it is wanted."""
    out, message_class = Output(), message.__class__
    writer(message_class, version, flexible=flexible)(out, message)
    return Written(b"".join(out.finish()[0]))


def _write_tagged(out: Output, given: list[tuple[int, Any, Write]]) -> None:
    write_uvarint(out.buffer, len(given))
    for tag, value, write in given:
        inner = Output()
        write(inner, value)
        data = b"".join(inner.finish()[0])
        write_uvarint(out.buffer, tag)
        write_uvarint(out.buffer, len(data))
        out.buffer += data


def _steps(specs: Iterable[FieldSpec], version: int, *, flexible: bool) -> Iterable[Write]:
    """Adjacent fields of fixed size are written at once."""
    for is_fixed, grouped in groupby(specs, lambda spec: isinstance(spec.type, WireType) and bool(spec.type.fixed)):
        run = tuple(grouped)
        if is_fixed:
            yield _fixed(run)
        else:
            for spec in run:
                yield _single(attrgetter(spec.name), _field_writer(spec, version, flexible=flexible))


def _fixed(run: tuple[FieldSpec, ...]) -> Write:
    pack = Struct(">" + "".join(spec.type.fixed for spec in run if isinstance(spec.type, WireType))).pack
    values = attrgetter(*(spec.name for spec in run))

    def one(out: Output, message: Any) -> None:
        out.buffer += pack(values(message))

    def several(out: Output, message: Any) -> None:
        out.buffer += pack(*values(message))

    return one if len(run) == 1 else several


def _single(value_of: Callable[[Any], Any], write: Write) -> Write:
    def step(out: Output, message: Any) -> None:
        write(out, value_of(message))

    return step


def _field_writer(spec: FieldSpec, version: int, *, flexible: bool) -> Write:
    if isinstance(spec.type, ArrayOf):
        return _array(spec, version, flexible=flexible)
    if isinstance(spec.type, WireType):
        return _primitive(spec.type, flexible=flexible)
    write = writer(spec.type, version, flexible=flexible)
    is_nullable = spec.nullable is not None and version in spec.nullable
    return _nullable_struct(write, b"\0" if spec.tag is not None else b"\xff") if is_nullable else write


def _primitive(of: WireType, *, flexible: bool) -> Write:
    if of.fixed:
        pack = Struct(">" + of.fixed).pack
        return lambda out, value: out.buffer.extend(pack(value))
    if of is UUID:
        return lambda out, value: out.buffer.extend(urlsafe_b64decode(value + "=="))
    length = _length_writer(Struct(">h" if of is STRING else ">i"), flexible=flexible)

    def write(out: Output, value: Any) -> None:
        if value is None:
            length(out.buffer, -1)
        elif of is RECORDS:
            length(out.buffer, sum(map(size_of, value)))
            out.add(value)
        else:
            data = value.encode() if of is STRING else value
            length(out.buffer, len(data))
            out.buffer += data

    return write


def _length_writer(layout: Struct, *, flexible: bool) -> Callable[[bytearray, int], None]:
    """A number of bytes or elements, -1 for null."""

    def compact(out: bytearray, length: int) -> None:
        write_uvarint(out, length + 1)

    def plain(out: bytearray, length: int) -> None:
        out.extend(layout.pack(length))

    def short(out: bytearray, length: int) -> None:
        if length > INT16_MAX:  # of a client: what is not UTF-8 in its names takes more bytes here than there
            raise Invalid(f"a string of {length} bytes in an answer, where {INT16_MAX} are the most: use shorter names")
        out.extend(layout.pack(length))

    return compact if flexible else short if layout.size == _INT16_BYTES else plain


def _array(spec: FieldSpec, version: int, *, flexible: bool) -> Write:
    assert isinstance(spec.type, ArrayOf)
    of = spec.type.element
    length = _length_writer(Struct(">i"), flexible=flexible)
    write_one = _primitive(of, flexible=flexible) if isinstance(of, WireType) else writer(of, version, flexible=flexible)
    fixed = of.fixed if isinstance(of, WireType) else ""

    def write(out: Output, value: Any) -> None:
        length(out.buffer, -1 if value is None else len(value))
        if value and fixed:
            out.buffer += Struct(f">{len(value)}{fixed}").pack(*value)
        elif value:
            for one in value:
                if len(out.buffer) > WRITTEN_BYTES_MAX:
                    raise Invalid(f"the answer has more than {WRITTEN_BYTES_MAX} bytes: ask for less at a time")
                if isinstance(one, Written):
                    out.buffer += one.data
                else:
                    write_one(out, one)

    return write


def _nullable_struct(write_struct: Write, null: bytes) -> Write:
    def write(out: Output, value: Any) -> None:
        out.buffer += null if value is None else b"\x01"
        if value is not None:
            write_struct(out, value)

    return write
