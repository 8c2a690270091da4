"""Bytes into messages: a reader for each class and version, made once from the class's fields.

A reader is `read(data, pos, budget) -> (value, next_pos)`. It raises Corrupt where bytes are missing or make no sense; tagged
fields that the class does not know are skipped, as the protocol asks. An array is refused before anything is allocated for it
if the bytes that are left cannot hold it, or if the message has more elements and tagged fields in all than its budget.
"""

from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from struct import Struct
from typing import Any, Final

from local_log.errors import Corrupt
from local_log.formats.primitives import need, read_uvarint
from tiering.endpoint.protocol.fields import BINARY, RECORDS, STRING, UUID, ArrayOf, FieldSpec, FieldType, WireType, specs_of

ELEMENTS_MAX: Final = 500_000
"""Elements of all arrays of one message. A partition that is asked for is one; Kafka advises 200,000 a cluster."""
ELEMENT_BYTES: Final = 600
"""Memory of an element: as it is read, and what its answer is made of. Measured: 420 of a partition to fetch, others less."""

STRING_BYTES_MAX: Final = 0x7FFF
"""Of a text, also where a version could write a larger size: as in Kafka."""


@dataclass(slots=True)
class Budget:
    """How many more elements a message may have."""

    elements_max: int = ELEMENTS_MAX
    taken: int = 0

    def take(self, count: int, pos: int) -> None:
        """Raises Corrupt if there are not so many left."""
        self.taken += count
        if self.taken > self.elements_max:
            raise Corrupt(
                f"a message of more than {self.elements_max} array elements, for which queued.max.request.bytes has room",
                position=pos,
            )


Read = Callable[[bytes, int, Budget], tuple[Any, int]]
_Step = Callable[[bytes, int, Budget, list[Any]], int]

_INT16, _INT32 = Struct(">h"), Struct(">i")


@cache
def reader(message: type, version: int, *, flexible: bool) -> Read:
    """Reads a message class in one version of its API; `flexible` versions have compact lengths and tagged fields."""
    specs = specs_of(message)
    steps = tuple(_steps(specs, version, flexible=flexible))
    tagged = {
        s.tag: (place, _field_reader(s, version, flexible=flexible))
        for place, s in enumerate(specs)
        if s.tag is not None and version in s.versions
    }

    def read(data: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        values: list[Any] = []
        for step in steps:
            pos = step(data, pos, budget, values)
        if flexible:
            pos = _read_tagged(data, pos, budget, values, tagged)
        return message(*values), pos

    return read


def read_message(
    message: type, version: int, data: bytes, pos: int = 0, *, flexible: bool, elements_max: int = ELEMENTS_MAX
) -> Any:
    """The message at `pos`. Bytes after it are ignored, as Kafka does: librdkafka sends some. Raises Corrupt."""
    value, _ = reader(message, version, flexible=flexible)(data, pos, Budget(elements_max))
    return value


def skip_tagged(data: bytes, pos: int) -> int:
    """The position after tagged fields that nobody asks for."""
    return _read_tagged(data, pos, Budget(), [], {})


def _read_tagged(data: bytes, pos: int, budget: Budget, values: list[Any], known: Mapping[int, tuple[int, Read]]) -> int:
    if pos < len(data) and not data[pos]:
        return pos + 1
    count, pos = read_uvarint(data, pos, "the number of tagged fields")
    budget.take(count, pos)
    for _ in range(count):
        tag, pos = read_uvarint(data, pos, "a tag")
        size, pos = read_uvarint(data, pos, "the size of a tagged field")
        need(data, pos, size, "a tagged field")
        end = pos + size
        if tag in known:
            place, read = known[tag]
            values[place], pos = read(data, pos, budget)
            if pos != end:
                raise Corrupt(f"tagged field {tag} of {size} bytes ends at byte {pos}", position=end)
        pos = end
    return pos


def _steps(specs: Iterable[FieldSpec], version: int, *, flexible: bool) -> Iterable[_Step]:
    """Adjacent fields of fixed size are read at once."""
    for kind, run in groupby(specs, lambda spec: _kind(spec, version)):
        if kind == "absent":
            yield _absent(tuple(spec.default for spec in run))
        elif kind == "fixed":
            yield _fixed(Struct(">" + "".join(spec.type.fixed for spec in run if isinstance(spec.type, WireType))))
        else:
            for spec in run:
                yield _single(_field_reader(spec, version, flexible=flexible))


def _kind(spec: FieldSpec, version: int) -> str:
    if version not in spec.versions or spec.tag is not None:
        return "absent"
    return "fixed" if isinstance(spec.type, WireType) and spec.type.fixed else "variable"


def _absent(defaults: tuple[object, ...]) -> _Step:
    def step(data: bytes, pos: int, budget: Budget, values: list[Any]) -> int:
        values.extend(defaults)
        return pos

    return step


def _fixed(layout: Struct) -> _Step:
    size, unpack_from = layout.size, layout.unpack_from

    def step(data: bytes, pos: int, budget: Budget, values: list[Any]) -> int:
        if pos + size > len(data):
            need(data, pos, size, "fields of fixed size")
        values.extend(unpack_from(data, pos))
        return pos + size

    return step


def _single(read: Read) -> _Step:
    def step(data: bytes, pos: int, budget: Budget, values: list[Any]) -> int:
        value, pos = read(data, pos, budget)
        values.append(value)
        return pos

    return step


def _field_reader(spec: FieldSpec, version: int, *, flexible: bool) -> Read:
    nullable = spec.nullable is not None and version in spec.nullable
    if isinstance(spec.type, ArrayOf):
        return _array(spec, version, nullable=nullable, flexible=flexible)
    if isinstance(spec.type, WireType):
        return _primitive(spec.type, spec.name, nullable=nullable, flexible=flexible)
    read = reader(spec.type, version, flexible=flexible)
    return _nullable_struct(read, spec.name, is_tagged=spec.tag is not None) if nullable else read


def _primitive(of: WireType, name: str, *, nullable: bool, flexible: bool) -> Read:
    if of.fixed:
        return _one(Struct(">" + of.fixed), name)
    if of is UUID:
        return _uuid
    length = _compact_length if flexible else _int16_length if of is STRING else _int32_length
    text = of is STRING
    assert text or of in (BINARY, RECORDS)

    def read(data: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        size, pos = length(data, pos, name)
        if size < 0:
            if not nullable:
                raise Corrupt(f"{name} is null", position=pos)
            return None, pos
        need(data, pos, size, name)
        if of is RECORDS:
            return ((memoryview(data)[pos : pos + size],) if size else ()), pos + size
        value = data[pos : pos + size]
        if text:
            if size > STRING_BYTES_MAX:
                raise Corrupt(f"{name} has {size} bytes, where a text has {STRING_BYTES_MAX} at most", position=pos)
            return value.decode("utf-8", "replace"), pos + size  # Java, too, replaces what is not UTF-8
        return value, pos + size

    return read


def _array(spec: FieldSpec, version: int, *, nullable: bool, flexible: bool) -> Read:
    assert isinstance(spec.type, ArrayOf)
    of, name = spec.type.element, spec.name
    read_one = (
        _primitive(of, name, nullable=False, flexible=flexible)
        if isinstance(of, WireType)
        else reader(of, version, flexible=flexible)
    )
    length = _compact_length if flexible else _int32_length
    size_min = smallest(of, version, flexible=flexible)

    def read(data: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        count, pos = length(data, pos, name)
        if count < 0:
            if not nullable:
                raise Corrupt(f"{name} is null", position=pos)
            return None, pos
        need(data, pos, count * size_min, f"{name} with {count} elements")
        budget.take(count, pos)
        found = []
        for _ in range(count):
            value, pos = read_one(data, pos, budget)
            found.append(value)
        return tuple(found), pos

    return read


def _nullable_struct(read_struct: Read, name: str, *, is_tagged: bool) -> Read:
    """Null is a byte below 0, or 0 in a tagged field."""

    def read(data: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        need(data, pos, 1, name)
        is_null = not data[pos] if is_tagged else data[pos] >= 0x80
        return (None, pos + 1) if is_null else read_struct(data, pos + 1, budget)

    return read


def _one(layout: Struct, name: str) -> Read:
    size, unpack_from = layout.size, layout.unpack_from

    def read(data: bytes, pos: int, budget: Budget) -> tuple[Any, int]:
        need(data, pos, size, name)
        return unpack_from(data, pos)[0], pos + size

    return read


def _uuid(data: bytes, pos: int, budget: Budget) -> tuple[str, int]:
    need(data, pos, 16, "a uuid")
    return urlsafe_b64encode(data[pos : pos + 16])[:22].decode(), pos + 16


def _compact_length(data: bytes, pos: int, name: str) -> tuple[int, int]:
    if pos < len(data) and data[pos] < 0x80:
        return data[pos] - 1, pos + 1
    length, pos = read_uvarint(data, pos, name)
    return length - 1, pos


def _int16_length(data: bytes, pos: int, name: str) -> tuple[int, int]:
    need(data, pos, 2, name)
    return _INT16.unpack_from(data, pos)[0], pos + 2


def _int32_length(data: bytes, pos: int, name: str) -> tuple[int, int]:
    need(data, pos, 4, name)
    return _INT32.unpack_from(data, pos)[0], pos + 4


def smallest(of: FieldType, version: int, *, flexible: bool) -> int:
    """The fewest bytes that a value of this type takes; never 0."""
    if isinstance(of, WireType):
        if of.fixed:
            return Struct(">" + of.fixed).size
        return 16 if of is UUID else 1 if flexible else 2 if of is STRING else 4
    if isinstance(of, ArrayOf):
        return 1 if flexible else 4
    present = (s for s in specs_of(of) if _kind(s, version) != "absent")
    return max(1, sum(1 if _is_nullable_struct(s) else smallest(s.type, version, flexible=flexible) for s in present) + flexible)


def _is_nullable_struct(spec: FieldSpec) -> bool:
    return spec.nullable is not None and not isinstance(spec.type, WireType | ArrayOf)
