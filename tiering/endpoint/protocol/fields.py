"""How the class of a message says what its fields are on the wire.

    partition: int = int32()                                       every version has it
    current_leader_epoch: int = int32("9+", default=-1)            versions 9 and later
    topic: str = string("0-12")                                    versions 0 to 12
    topics: tuple[Topic, ...] | None = array(Topic, nullable="1+") an array of structs that may be null from version 1 on
    cluster_id: str | None = string("12+", nullable="12+", tag=0)  a tagged field: left out where it has its default

The order of the fields is that of the wire. A version that has no such field gives its default. These are the terms of the
message schemas in Kafka's clients/src/main/resources/common/message.
"""

from collections.abc import Iterable
from dataclasses import MISSING, dataclass, field, fields, replace
from typing import Any, Final

from local_log.formats.partition_metadata import ZERO_TOPIC_ID

SPEC: Final = "kafka"
"""The key of a field's spec in the metadata of its dataclass field."""

Records = tuple[Any, ...]
"""Record batches in a row as parts: buffers, or ranges of files (see `parts`)."""


@dataclass(frozen=True, slots=True)
class Versions:
    """The versions from `first` to `last`; without `last`, all later ones."""

    first: int
    last: int | None = None

    def __contains__(self, version: int) -> bool:
        return self.first <= version and (self.last is None or version <= self.last)

    @classmethod
    def of(cls, text: str) -> "Versions":
        """From Kafka's notation: `4-18`, `12+` or `0`."""
        first, dash, last = text.removesuffix("+").partition("-")
        return cls(int(first), int(last) if dash else None if text.endswith("+") else int(first))


@dataclass(frozen=True, slots=True)
class WireType:
    """A primitive type. `fixed` is the struct format of a type of fixed size, else empty."""

    name: str
    default: object
    fixed: str = ""


INT8: Final = WireType("int8", 0, "b")
INT16: Final = WireType("int16", 0, "h")
INT32: Final = WireType("int32", 0, "i")
INT64: Final = WireType("int64", 0, "q")
BOOLEAN: Final = WireType("bool", False, "?")
FLOAT64: Final = WireType("float64", 0.0, "d")
UUID: Final = WireType("uuid", ZERO_TOPIC_ID)
STRING: Final = WireType("string", "")
BINARY: Final = WireType("bytes", b"")
RECORDS: Final = WireType("records", ())


@dataclass(frozen=True, slots=True)
class ArrayOf:
    """An array of a primitive type or of a message class."""

    element: WireType | type


FieldType = WireType | ArrayOf | type


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field on the wire."""

    name: str
    type: FieldType
    versions: Versions
    nullable: Versions | None
    tag: int | None
    default: object


def specs_of(message: type) -> tuple[FieldSpec, ...]:
    """The fields of a message class, in the order of the wire."""
    return tuple(replace(f.metadata[SPEC], name=f.name) for f in fields(message))


def _field(of: FieldType, own_default: object, versions: str, nullable: str | None, default: Any, tag: int | None) -> Any:
    value = own_default if default is MISSING else default
    spec = FieldSpec("", of, Versions.of(versions), None if nullable is None else Versions.of(nullable), tag, value)
    return field(default=value, metadata={SPEC: spec})


def int8(versions: str = "0+", *, default: int = 0, tag: int | None = None) -> Any:
    """One signed byte."""
    return _field(INT8, 0, versions, None, default, tag)


def int16(versions: str = "0+", *, default: int = 0, tag: int | None = None) -> Any:
    """Two bytes, signed, big-endian."""
    return _field(INT16, 0, versions, None, default, tag)


def int32(versions: str = "0+", *, default: int = 0, tag: int | None = None) -> Any:
    """Four bytes, signed, big-endian."""
    return _field(INT32, 0, versions, None, default, tag)


def int64(versions: str = "0+", *, default: int = 0, tag: int | None = None) -> Any:
    """Eight bytes, signed, big-endian."""
    return _field(INT64, 0, versions, None, default, tag)


def float64(versions: str = "0+", *, default: float = 0.0, tag: int | None = None) -> Any:
    """Eight bytes, IEEE 754, big-endian."""
    return _field(FLOAT64, 0.0, versions, None, default, tag)


def boolean(versions: str = "0+", *, default: bool = False, tag: int | None = None) -> Any:
    """One byte, 0 for false."""
    return _field(BOOLEAN, False, versions, None, default, tag)


def uuid(versions: str = "0+", *, tag: int | None = None) -> Any:
    """Sixteen bytes, as Kafka prints them: 22 characters of URL-safe base64."""
    return _field(UUID, ZERO_TOPIC_ID, versions, None, MISSING, tag)


def string(versions: str = "0+", *, nullable: str | None = None, default: str | None = "", tag: int | None = None) -> Any:
    """UTF-8 after its length."""
    return _field(STRING, "", versions, nullable, default, tag)


def binary(versions: str = "0+", *, nullable: str | None = None, default: bytes | None = b"", tag: int | None = None) -> Any:
    """Bytes after their number."""
    return _field(BINARY, b"", versions, nullable, default, tag)


def secret() -> Any:
    """Bytes after their number, which no representation of the message shows."""
    return field(default=b"", metadata={SPEC: FieldSpec("", BINARY, Versions(0), None, None, b"")}, repr=False)


def record_batches(versions: str = "0+", *, nullable: str | None = None) -> Any:
    """Record batches after their number of bytes."""
    return _field(RECORDS, (), versions, nullable, MISSING, None)


def array(
    element: WireType | type,
    versions: str = "0+",
    *,
    nullable: str | None = None,
    default: Iterable[object] | None = (),
    tag: int | None = None,
) -> Any:
    """A number of elements, then they."""
    return _field(ArrayOf(element), (), versions, nullable, default, tag)


def nested(
    message: type, versions: str = "0+", *, nullable: str | None = None, default: Any = MISSING, tag: int | None = None
) -> Any:
    """The fields of another message class, which must have defaults."""
    return _field(message, message(), versions, nullable, default, tag)
