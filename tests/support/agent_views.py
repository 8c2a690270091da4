"""What an agent knows, made by hand: partitions with the offsets that each tier has."""

from collections.abc import Iterable

from local_log.formats.filenames import TopicPartition
from local_log.ranges import Range
from tiering.agent.view import AgentView, ErrorRecord, PartitionView
from tiering.lag.archived import Archived
from tiering.lag.local_log import LogSeen, SegmentSeen

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def partition(
    name: str,
    archive: Range | None = (0, 900),
    local: Range = (700, 1000),
    gaps: Iterable[Range] = (),
    *,
    lost: int = 0,
    error: str = "",
) -> PartitionView:
    """Partition 0 of a topic. What the archive lacks of the local log is its active segment."""
    archived = (
        None if archive is None else Archived(*archive, 9, 9 << 20, 0, 0, lost, NOW_MS - HOUR_MS if lost else None, tuple(gaps))
    )
    known = archived or Archived(0, 0, 0, 0, 0, 0)
    base = max(local[0], known.end_offset)
    active = SegmentSeen(base, None, 4096 if base < local[1] else 0, NOW_MS - HOUR_MS, 0)
    seen = LogSeen((active,), 1 << 20, local[1], known, known, "an-id", local[0])
    wrong = ErrorRecord("Corrupt", error, NOW_MS - HOUR_MS) if error else None
    return PartitionView("/logs", TopicPartition(name, 0), archived=archived, seen=seen, error=wrong)


def agent_view(*partitions: PartitionView) -> AgentView:
    """A running agent of these."""
    return AgentView(NOW_MS - HOUR_MS, NOW_MS, NOW_MS, ("/logs",), "s3://bucket/kafka", has_looked=True, partitions=partitions)
