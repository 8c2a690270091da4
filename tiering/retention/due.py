"""Computes when a partition may next have something to delete, from its manifest. Pure, so that it costs no request."""

from collections.abc import Iterator

from remote.manifest.model import Manifest, PageRef
from remote.manifest.paging import has_below
from tiering.retention.plan import Policy


def next_due_ms(manifest: Manifest, policy: Policy, now_ms: int, interval_ms: int, longest_ms: int) -> int:
    """The next time at which retention by time, or the end of a delete delay, may delete something.

    It lies between `interval_ms` and `longest_ms` from now. Retention by size deletes only after the manifest has grown, which
    schedules a check by itself. If the time of an item is unknown, it is due at the next interval.
    """
    times = [d.since_ms + policy.delete_delay_ms for d in manifest.deleting]
    if has_below(manifest):
        times.append(now_ms)
    if policy.retention_ms is not None:
        times += [oldest_ms + policy.retention_ms + 1 for oldest_ms in _oldest_ms(manifest)]
    return min(max(min(times, default=now_ms + longest_ms), now_ms + interval_ms), now_ms + max(interval_ms, longest_ms))


def _oldest_ms(manifest: Manifest) -> Iterator[int]:
    for item in manifest.items:
        if not isinstance(item, PageRef):
            yield item.written_ms
        else:
            yield item.bounds.oldest_ms if item.bounds is not None else 0
