"""Findings of a scrub: anomalies by kind, and notes that need no action."""

from dataclasses import dataclass
from enum import StrEnum

from remote.keys import PartitionPath


class Kind(StrEnum):
    """The kind of a finding. The values appear in the output of `tiering scrub`."""

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
    missing_abort = "missing_abort"
    false_abort = "false_abort"

    gap = "gap"
    fresh_orphan = "fresh_orphan"
    left_out = "left_out"
    unreadable = "unreadable"


NOTES = frozenset({Kind.gap, Kind.fresh_orphan, Kind.left_out, Kind.unreadable})
"""Kinds that are no anomaly: a recorded gap, an object of a copy that may be in progress, what was not checked, and what could
not be read (for want of a key, for example), of which only the stored objects were checked."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`key` is that of an object, or a prefix; `position` is a byte in the object; `age_ms` is the age of an orphaned object."""

    kind: Kind
    key: str
    problem: str
    position: int | None = None
    age_ms: int | None = None

    @property
    def is_anomaly(self) -> bool:
        """Whether the finding needs action."""
        return self.kind not in NOTES


def not_checked(path: PartitionPath, what: str) -> Finding:
    """A finding about what was not checked in a partition, and why."""
    return Finding(Kind.left_out, path.prefix, what)
