"""What the page for people shows of an agent: its partitions, with the offsets that each tier has. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from local_log.formats.filenames import TopicPartition
from local_log.ranges import Range
from tiering.agent.view import AgentView, PartitionView
from tiering.local_tier.service import TierStatus

COLUMNS: Final = (
    "topic", "partition", "lag_segments", "lag_bytes", "lag_ms", "unprotected_records", "unprotected_bytes",
    "unprotected_deleted_ms", "lost_offsets", "lost_since_ms", "error", "error_ms", "waits_for", "is_gone", "archive", "gaps",
    "gaps_left_out", "local",
)  # fmt: skip
"""Of a row. `archive` and `local` are the offsets [start, end) of a tier, null if it has none; `gaps` are those missing inside
the archive. Without an `error`, `waits_for` says why something is not archived yet."""
GAPS_MAX: Final = 50
"""So many gaps of a partition are told, the largest."""


def agent_overview(view: AgentView) -> dict[str, Any]:
    """For JSON. The columns are named once: there may be 10,000 rows, which are asked for every few seconds."""
    own = _local_ranges(view.local_tier)
    here = [_row(one, view.now_ms, own.get(one.partition)) for one in view.partitions]
    gone = [_row(one, one.gone_ms, None) for one in view.gone if one.lost_offsets]
    return {
        **view.summary(),
        "local_tier": tier_overview(view.local_tier),
        "partitions": {"columns": list(COLUMNS), "rows": [*here, *gone]},
    }


def tier_overview(tier: TierStatus | None) -> dict[str, Any] | None:
    """The state of log directories of our own without their partitions, for JSON."""
    if tier is None:
        return None
    row = replace(tier, offsets=()).row()
    del row["partitions"]
    return row


def _local_ranges(tier: TierStatus | None) -> Mapping[TopicPartition, Range]:
    """The offsets on the disk of logs of our own, as they are now."""
    offsets = () if tier is None else tier.offsets
    return {one.partition: (one.local_log_start_offset, one.log_end_offset) for one in offsets}


def _row(view: PartitionView, now_ms: int, own: Range | None) -> list[Any]:
    lag, unprotected, error = view.lag, view.unprotected(now_ms), view.error or view.refused
    archived, seen = view.archived, view.seen
    gaps = () if archived is None else archived.gaps
    told = sorted(sorted(gaps, key=lambda gap: gap[0] - gap[1])[:GAPS_MAX])
    local = own if seen is None else (own[0] if own else seen.start_offset, seen.end_offset)  # as old as the lag beside it
    return [
        view.partition.topic,
        view.partition.partition,
        lag.segments,
        lag.bytes,
        lag.age_ms(now_ms),
        unprotected.records,
        unprotected.bytes,
        unprotected.deleted_ms,
        view.lost_offsets,
        view.lost_since_ms,
        error.message if error else None,
        error.at_ms if error else None,
        lag.reason or None,
        bool(view.gone_ms),
        _unless_empty(None if archived is None else (archived.log_start_offset, archived.end_offset)),
        told,
        len(gaps) - len(told),
        _unless_empty(None if view.gone_ms else local),
    ]


def _unless_empty(of: Range | None) -> Range | None:
    return None if of is None or of[0] >= of[1] else of
