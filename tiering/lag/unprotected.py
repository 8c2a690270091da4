"""The records that would be lost with a broker's disk: all of a local log that is not archived, with the active segment.

Where the retention of the topic is known, also when the broker will delete the oldest of them.
"""

from dataclasses import dataclass

from tiering.lag.local_log import LogSeen, SegmentSeen


@dataclass(frozen=True, slots=True)
class TopicRetention:
    """How long a broker keeps a topic's local log, and how much of it; None for no limit."""

    ms: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Unprotected:
    """`records` counts offsets (of a compacted log more than there are records), `bytes` goes back to an entry of the index.

    `oldest_ms` is the time of the first of them, None where there is none. `deleted_ms` is when its broker deletes it, None where
    it does not or where that is unknown: by age when the segment's last record is too old, by size as fast as the log has grown.
    """

    bytes: int = 0
    records: int = 0
    oldest_ms: int | None = None
    deleted_ms: int | None = None

    def age_ms(self, now_ms: int) -> int:
        """How old the oldest of them is, 0 where there is none."""
        return 0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms)


PROTECTED = Unprotected()


def unprotected_of(seen: LogSeen, retention: TopicRetention | None, now_ms: int) -> Unprotected:
    """What of a log is not archived, by what was seen of it."""
    lacking = [(segment, ranges) for segment in seen.segments if (ranges := seen.lacks(segment))]
    if not lacking:
        return PROTECTED
    first, ranges = lacking[0]
    oldest = seen.oldest if seen.oldest is not None and seen.oldest.offset == ranges[0][0] else None
    oldest_ms = oldest.timestamp_ms if oldest else first.modified_ms
    largest_ms = oldest.largest_ms if oldest else first.modified_ms
    return Unprotected(
        bytes=sum(segment.size for segment, _ in lacking) - (oldest.position if oldest else 0),
        records=sum(end - start for _, ranges in lacking for start, end in ranges),
        oldest_ms=oldest_ms,
        deleted_ms=_deleted_ms(seen, first, oldest_ms, largest_ms, retention, now_ms) if retention else None,
    )


def _deleted_ms(
    seen: LogSeen, segment: SegmentSeen, oldest_ms: int, largest_ms: int, retention: TopicRetention, now_ms: int
) -> int | None:
    """When retention takes a segment (UnifiedLog.deleteOldSegments): its last timestamp too old, or enough bytes behind it."""
    told: list[int] = []
    if retention.ms is not None:
        told.append(largest_ms + retention.ms)
    if retention.bytes is not None:
        behind = seen.bytes - segment.position - segment.size
        left = retention.bytes - behind
        written = seen.bytes - segment.position
        if left <= 0:
            told.append(now_ms)
        elif now_ms > oldest_ms and written:
            told.append(now_ms + left * (now_ms - oldest_ms) // written)
    return min(told, default=None)
