"""The copy lag of a local log, counted as Kafka counts RemoteCopyLagBytes: without the active segment."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from remote.manifest.model import covers
from tiering.lag.local_log import LogSeen
from tiering.offload.plan import Action

if TYPE_CHECKING:
    from tiering.offload.due import OffloadPlan


@dataclass(frozen=True, slots=True)
class Lag:
    """Inactive segments that no manifest names, and their bytes.

    `oldest_ms` is the modification time of the oldest, None without one. `waiting` counts those that are at or above the last
    stable offset; `reason` explains it.
    """

    segments: int = 0
    bytes: int = 0
    oldest_ms: int | None = None
    waiting: int = 0
    reason: str = ""

    def age_ms(self, now_ms: int) -> int:
        """The age of the oldest segment in ms, 0 without one."""
        return 0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms)


NO_LAG = Lag()


@dataclass(frozen=True, slots=True)
class WaitingSegments:
    """The base offsets of segments that a plan does not copy yet, and the reason for the first."""

    bases: frozenset[int] = frozenset()
    reason: str = ""


NO_WAITS = WaitingSegments()


def waiting_segments(due: "OffloadPlan") -> WaitingSegments:
    """The segments that a plan does not copy yet."""
    waiting = {
        d.segment.base_offset: d.reason
        for d in due.decisions
        if d.action is Action.keep
        and d.segment.end_offset is not None
        and not covers(due.manifest, d.segment.base_offset, d.segment.end_offset)
    }
    return WaitingSegments(frozenset(waiting), next(iter(waiting.values()), ""))


def lag_of(seen: LogSeen, waits: WaitingSegments) -> Lag:
    """The copy lag of a log, from its last scan."""
    behind = [s for s in seen.segments if s.end_offset is not None and seen.lacks(s)]
    waiting = sum(s.base_offset in waits.bases for s in behind)
    return Lag(
        len(behind),
        sum(s.size for s in behind),
        min((s.modified_ms for s in behind), default=None),
        waiting,
        waits.reason if waiting else "",
    )
