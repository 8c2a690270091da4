"""Random messages of the protocol, from the fields of their classes, and what is compared of them with Kafka's."""

from base64 import b64encode
from random import Random  # noqa: TID251  # seeded
from typing import Any

from tiering.endpoint.protocol.fields import BINARY, FLOAT64, RECORDS, STRING, UUID, ArrayOf, FieldSpec, WireType, specs_of
from tiering.endpoint.protocol.writing import Output, writer

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXTS = ("", "orders", "a" * 127, "a" * 128, "größe ✓", "x" * 300)


def random_message(of: type, version: int, random: Random) -> Any:
    """A message with random values in the fields that the version has, and the defaults in the others."""
    fields = (s for s in specs_of(of) if version in s.versions)
    return of(**{s.name: _value(s, version, random) for s in fields if s.tag is None or random.random() < 0.5})


def encoded(message: Any, version: int, *, flexible: bool) -> bytes:
    """A message whose parts are all buffers."""
    out = Output()
    writer(type(message), version, flexible=flexible)(out, message)
    return b"".join(out.finish()[0])


def as_json(message: Any, version: int) -> dict[str, Any]:
    """As Kafka's JSON converters give it: names in camel case, tagged fields only with other values than their defaults."""
    found = {}
    for s in specs_of(type(message)):
        value = getattr(message, s.name)
        if version in s.versions and (s.tag is None or value != s.default):
            if s.type is RECORDS and value is not None:
                found["recordsSizeInBytes"] = sum(map(len, value))
            else:
                found[_camel(s.name)] = _json(value, version)
    return found


def _json(value: Any, version: int) -> Any:
    if isinstance(value, tuple):
        return [_json(one, version) for one in value]
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return as_json(value, version) if hasattr(value, "__dataclass_fields__") else value


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


def _value(spec: FieldSpec, version: int, random: Random) -> Any:
    if spec.nullable is not None and version in spec.nullable and random.random() < 0.25:
        return None
    if isinstance(spec.type, ArrayOf):
        return tuple(_one(spec.type.element, version, random) for _ in range(random.choice((0, 1, 2, 3))))
    return _one(spec.type, version, random)


def _one(of: WireType | type, version: int, random: Random) -> Any:
    if not isinstance(of, WireType):
        return random_message(of, version, random)
    if of is STRING:
        return random.choice(_TEXTS)
    if of is RECORDS:
        return (random.randbytes(random.randrange(1, 200)),)
    if of is BINARY:
        return random.randbytes(random.randrange(20))
    if of is UUID:
        return "".join(random.choice("ABCxyz019_-") for _ in range(21)) + random.choice("AQgw")
    if of is FLOAT64:
        return (random.getrandbits(50) - (1 << 49)) / 16
    if of.name in _BITS:
        return random.getrandbits(_BITS[of.name]) - (1 << (_BITS[of.name] - 1))
    return random.random() < 0.5
