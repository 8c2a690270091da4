"""Two answers to one request, compared field by field."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from typing import Any

from tiering.endpoint.protocol.api_keys import Api

_NAMES = (
    *(
        "topic_id",
        "topic",
        "topic_name",
        "name",
        "resource_type",
        "resource_name",
        "partition_index",
        "partition",
        "partition_id",
    ),
    *("partition_id", "index", "api_key", "feature"),
    *("node_id", "broker_id", "group_id", "member_id"),
    *("pattern_type", "principal", "operation", "permission_type"),
)
"""Fields that tell the elements of an array apart."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A request with both answers, and those of the same group before it.

    `bases` are the base offsets of the segments in the broker's directory.
    """

    api: Api
    version: int
    request: Any
    theirs: Any
    ours: Any
    bases: frozenset[int] = frozenset()
    before: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """A field by its dotted path, with its two values; `within` are the structs around it, the outermost first, in pairs."""

    path: str
    theirs: Any
    ours: Any
    within: tuple[tuple[Any, Any], ...] = ()


def differences(theirs: Any, ours: Any, path: str = "", within: tuple[tuple[Any, Any], ...] = ()) -> Iterator[Difference]:
    """Each field that differs. Elements of arrays are compared with those of the same name; one that is missing is None."""
    if is_dataclass(theirs) and type(theirs) is type(ours):
        for field in fields(theirs):
            name = f"{path}.{field.name}" if path else field.name
            pair = getattr(theirs, field.name), getattr(ours, field.name)
            yield from differences(*pair, name, (*within, (theirs, ours)))
    elif path.endswith("records"):
        pair = _joined(theirs), _joined(ours)
        if pair[0] != pair[1]:
            yield Difference(path, *pair, within)
    elif _are_named(theirs, ours):
        yield from _of_arrays(theirs, ours, path, within)
    elif isinstance(theirs, tuple) and isinstance(ours, tuple) and len(theirs) == len(ours) and all(map(is_dataclass, theirs)):
        for pair in zip(theirs, ours, strict=True):
            yield from differences(*pair, path, within)
    elif isinstance(theirs, tuple) and isinstance(ours, tuple) and theirs != ours and Counter(theirs) == Counter(ours):
        yield Difference(f"{path}[order]", theirs, ours, within)
    elif theirs != ours:
        yield Difference(path, theirs, ours, within)


def _of_arrays(
    theirs: tuple[Any, ...], ours: tuple[Any, ...], path: str, within: tuple[tuple[Any, Any], ...]
) -> Iterator[Difference]:
    theirs, ours = _merged(theirs), _merged(ours)
    names, our_names = [*map(_name, theirs)], [*map(_name, ours)]
    if [name for name in names if name in our_names] != [name for name in our_names if name in names]:
        yield Difference(f"{path}[order]", names, our_names, within)
    rest = list(ours)
    for one in sorted(theirs, key=lambda one: one not in ours):  # several may have one name: those that are the same are pairs
        named = (other for other in rest if _name(other) == _name(one))
        found = min(named, key=partial(_unlike, one), default=None)
        if found is None:
            yield Difference(f"{path}[]", one, None, within)
        else:
            rest.remove(found)
            yield from differences(one, found, path, within)
    for other in rest:
        yield Difference(f"{path}[]", None, other, within)


def _unlike(one: Any, other: Any) -> tuple[bool, bool]:
    """Least for the element that is most like `one`: of members whose ids nobody was told, for that with its instance's id."""
    return one != other, getattr(one, "group_instance_id", None) != getattr(other, "group_instance_id", None)


def _merged(elements: tuple[Any, ...]) -> tuple[Any, ...]:
    """Topics whose partitions are told in several places are told in one."""
    found: dict[Any, Any] = {}
    for number, one in enumerate(elements):
        of_topic = _name(one) if hasattr(one, "partitions") else number
        before = found.get(of_topic)
        mergeable = before is not None and replace(before, partitions=()) == replace(one, partitions=())
        key = of_topic if before is None or mergeable else number
        found[key] = replace(before, partitions=before.partitions + one.partitions) if mergeable else one
    return tuple(found.values())


def _are_named(theirs: Any, ours: Any) -> bool:
    both = isinstance(theirs, tuple) and isinstance(ours, tuple)
    return both and any(is_dataclass(one) and _name(one) for one in (*theirs, *ours))


def _name(one: Any) -> tuple[Any, ...]:
    found = tuple(getattr(one, name) for name in _NAMES if hasattr(one, name))
    return (*found, one.host) if hasattr(one, "principal") else found


def _joined(records: Any) -> bytes | None:
    return None if records is None else b"".join(records)
