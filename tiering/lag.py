"""What of a local log the archive does not have yet, as Kafka counts RemoteCopyLagBytes: the active segment never."""

from dataclasses import dataclass

from local_log.errors import NotFound
from local_log.formats.filenames import LOG
from remote.manifest.model import covers
from tiering.offload import OffloadPlan
from tiering.policy import Action


@dataclass(frozen=True, slots=True)
class Lag:
    """Inactive segments that no manifest names, and their bytes.

    `oldest_ms` is when the first of them was last written to, None where there is none. `waiting` are those of them that wait for
    the last stable offset to pass them; `reason` says why they do.
    """

    segments: int = 0
    bytes: int = 0
    oldest_ms: int | None = None
    waiting: int = 0
    reason: str = ""

    def age_ms(self, now_ms: int) -> int:
        """For how long the oldest of them has been there, 0 where there is none."""
        return 0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms)


NO_LAG = Lag()


def lag_of(due: OffloadPlan) -> Lag:
    """What a plan has not archived yet. A segment that its broker deletes meanwhile is none. Raises Unreadable."""
    lag = NO_LAG
    for listed, decision in zip(due.log.segments, due.decisions, strict=True):
        segment = decision.segment
        if segment.end_offset is None or segment.is_empty or covers(due.manifest, segment.base_offset, segment.end_offset):
            continue
        file = listed.path(LOG)
        try:
            size, modified_ms = listed.disk.size(file), listed.disk.modified_ms(file)
        except NotFound:
            continue
        waits = decision.action is not Action.copy
        lag = Lag(
            lag.segments + 1,
            lag.bytes + size,
            modified_ms if lag.oldest_ms is None else min(lag.oldest_ms, modified_ms),
            lag.waiting + waits,
            lag.reason or (decision.reason if waits else ""),
        )
    return lag
