"""The records that would be lost with a broker's disk: all of a local log that is not archived, with the active segment.

Where the retention of the topic is known, also when the broker will delete the oldest of them.
"""

from dataclasses import dataclass

from tiering.lag.local_log import LogSeen, SegmentSeen


@dataclass(frozen=True, slots=True)
class TopicRetention:
    """A topic's retention time and size on its brokers; None for no limit."""

    ms: int | None
    bytes: int | None


@dataclass(frozen=True, slots=True)
class Unprotected:
    """`records` counts offsets (a compacted log has fewer records), `bytes` counts from the nearest index entry.

    `oldest_ms` is the timestamp of the oldest, None without one. `deleted_ms` is when the broker will delete it, None if it
    will not or if that is unknown: by age from the segment's last timestamp, by size from the log's growth so far.
    """

    bytes: int = 0
    records: int = 0
    oldest_ms: int | None = None
    deleted_ms: int | None = None

    def age_ms(self, now_ms: int) -> int:
        """The age of the oldest record in ms, 0 without one."""
        return 0 if self.oldest_ms is None else max(0, now_ms - self.oldest_ms)


PROTECTED = Unprotected()


def unprotected_of(seen: LogSeen, retention: TopicRetention | None, now_ms: int) -> Unprotected:
    """The unprotected records of a log, from its last scan."""
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
    """When retention deletes a segment (UnifiedLog.deleteOldSegments): by its largest timestamp, or by the bytes after it."""
    times_ms: list[int] = []
    if retention.ms is not None:
        times_ms.append(largest_ms + retention.ms)
    if retention.bytes is not None:
        behind = seen.bytes - segment.position - segment.size
        left = retention.bytes - behind
        written = seen.bytes - segment.position
        if left <= 0:
            times_ms.append(now_ms)
        elif now_ms > oldest_ms and written:
            times_ms.append(now_ms + left * (now_ms - oldest_ms) // written)
    return min(times_ms, default=None)
