"""What a scrub tells: anomalies by kind, and notes on what is as it should be but worth a line."""

from dataclasses import dataclass
from enum import StrEnum

from remote.keys import PartitionPath


class Kind(StrEnum):
    """What is wrong, or worth a note."""

    missing_object = "missing_object"
    wrong_size = "wrong_size"
    wrong_crc = "wrong_crc"
    bad_batch = "bad_batch"
    bad_index = "bad_index"
    bad_entry = "bad_entry"
    unnamed_gap = "unnamed_gap"
    foreign_lineage = "foreign_lineage"
    dangling_pin = "dangling_pin"
    orphan = "orphan"
    broken_chain = "broken_chain"
    broken_invariant = "broken_invariant"
    corrupt_manifest = "corrupt_manifest"
    foreign_key = "foreign_key"
    lost = "lost"

    gap = "gap"
    fresh_orphan = "fresh_orphan"
    left_out = "left_out"
    unreadable = "unreadable"


NOTES = frozenset({Kind.gap, Kind.fresh_orphan, Kind.left_out, Kind.unreadable})
"""No anomalies: a hole that the ledger names, an object of a copy that may be under way, what was not looked at, and what could
not be looked into (without its key, say), of which nothing is known but that its objects are those that were stored."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`key` is an object's, or the prefix of what it is about; `position` a byte in the object; `age_ms` an orphan's."""

    kind: Kind
    key: str
    problem: str
    position: int | None = None
    age_ms: int | None = None

    @property
    def is_anomaly(self) -> bool:
        """Whether something is to be done."""
        return self.kind not in NOTES


def not_checked(path: PartitionPath, what: str) -> Finding:
    """What of a partition was not looked at, and why."""
    return Finding(Kind.left_out, path.prefix, what)
