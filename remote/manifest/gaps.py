"""The offsets that an archive does not have, as its ledger names them: where records may be missing, and where none ever are.

And those that it had of another history, which it has given up.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from local_log.ranges import Range

COMPACTED = "compacted"
"""The kind of a gap that compaction has made: readers pass over it, as Kafka's do."""
NO_BATCH = "compaction has left no batch in it"
"""Its reason."""

NO_FIELDS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets `[start, end)` that the archive knows it does not have, why, and since when.

    `kind` is COMPACTED where nothing is missing: compaction has left no record there. It is "" for what is not known to be so.
    """

    start: int
    end: int
    reason: str
    noticed_at_ms: int
    kind: str = ""
    unknown: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)

    @property
    def is_of_compaction(self) -> bool:
        """Whether no record was ever lost here; gaps from before there were kinds say so by their reason alone."""
        return self.kind == COMPACTED or (not self.kind and self.reason == NO_BATCH)


DIVERGED_MAX = 100
"""How many histories that were given up a manifest tells of: the latest."""


@dataclass(frozen=True, slots=True)
class Divergence:
    """Another history that the archive had from `fork_offset` on, up to `end`, and gave up for the one that its brokers have.

    What it had in `[start, end)` is kept as the partition of a topic of its own, `topic_id`, which is "" where nothing was there.
    """

    fork_offset: int
    start: int
    end: int
    topic_id: str
    resolved_at_ms: int
    unknown: Mapping[str, Any] = field(default_factory=lambda: NO_FIELDS)


def reason_of(gaps: Iterable[Gap], start: int, end: int) -> str:
    """Why offsets `[start, end)` are missing, as the ledger has it."""
    reasons = (gap.reason for gap in gaps if gap.start < end and gap.end > start)
    return "; ".join(dict.fromkeys(reasons)) or "no segment holds them"


def emptied_ranges(gaps: Iterable[Gap]) -> list[Range]:
    """Where compaction has left nothing, in order: who reads passes over it."""
    return sorted((gap.start, gap.end) for gap in gaps if gap.is_of_compaction)
