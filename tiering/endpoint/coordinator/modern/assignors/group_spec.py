"""What an assignor is told of a group: its members, what they subscribe, and which partitions they were to read before."""

from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from struct import Struct
from typing import Final

Partitions = Mapping[str, frozenset[int]]
"""Numbers of partitions by topic id."""
Assignor = Callable[["GroupSpec"], dict[str, Partitions]]
"""Gives each member its partitions; a member without an entry has none."""

_ID: Final = Struct(">qq")
_LEAST_BUCKETS: Final = 16


@dataclass(frozen=True, slots=True)
class MemberSpec:
    """A member: `topics` are the ids of those that it subscribes and that there are."""

    instance_id: str | None
    topics: frozenset[str]
    assigned: Partitions


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """A group. `is_homogeneous` says that all of its members subscribe the same topics."""

    members: Mapping[str, MemberSpec]
    partitions: Mapping[str, int]
    """How many partitions each topic has, by id."""
    is_homogeneous: bool


def halves(topic_id: str) -> tuple[int, int]:
    """A topic id as two signed numbers, by which Kafka orders ids."""
    most, least = _ID.unpack(urlsafe_b64decode(topic_id + "=="))
    return most, least


def in_java_order(topic_ids: Iterable[str]) -> list[str]:
    """Topic ids as Java's HashSet of them has them: so assignments are those that Kafka makes."""
    known = sorted(topic_ids, key=halves)
    buckets = _LEAST_BUCKETS
    while buckets < int(len(known) / 0.75) + 1:
        buckets *= 2
    return sorted(known, key=lambda one: _hash(one) & (buckets - 1))


def _hash(topic_id: str) -> int:
    most, least = halves(topic_id)
    both = (most ^ least) & 0xFFFF_FFFF_FFFF_FFFF
    code = (both >> 32) ^ (both & 0xFFFF_FFFF)
    return code ^ (code >> 16)


def copied(assigned: Partitions) -> dict[str, set[int]]:
    """Partitions that may be changed."""
    return {topic: set(numbers) for topic, numbers in assigned.items()}


def frozen(assigned: Mapping[str, Iterable[int]]) -> Partitions:
    """Partitions as they stay; topics without any are left out."""
    found = ((topic, frozenset(numbers)) for topic, numbers in assigned.items())
    return {topic: numbers for topic, numbers in found if numbers}
