"""The error codes in an answer, wherever they are in it."""

from functools import cache
from typing import Any

from tiering.endpoint.protocol.fields import ArrayOf, specs_of

_CODE = "error_code"


def error_codes(message: Any) -> list[int]:
    """All but 0. What was written before is not looked into: it has none."""
    found: list[int] = []
    _collect(message, found)
    return found


def _collect(message: Any, found: list[int]) -> None:
    has_code, arrays = _parts(message.__class__)
    if has_code and message.error_code:
        found.append(message.error_code)
    for name, of, is_last in arrays:
        elements = getattr(message, name)
        if not elements:
            continue
        if is_last:  # most are: partitions
            found += [one.error_code for one in elements if one.error_code]
            continue
        for one in elements:
            if one.__class__ is of:
                _collect(one, found)


@cache
def _parts(message: type) -> tuple[bool, tuple[tuple[str, type, bool], ...]]:
    """Whether messages of this class have a code, and the arrays in which they have others: whether these have no such arrays."""
    specs = specs_of(message)
    arrays = [(spec.name, spec.type.element) for spec in specs if isinstance(spec.type, ArrayOf)]
    inside = [(name, of, not _parts(of)[1]) for name, of in arrays if isinstance(of, type) and any(_parts(of))]
    return any(spec.name == _CODE for spec in specs), tuple(inside)
