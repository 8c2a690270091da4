"""When retention may next have something to do for a partition that it has just been through: pure, so that nobody has to ask."""

from collections.abc import Iterator

from remote.manifest.model import Manifest, PageRef
from remote.manifest.paging import has_below
from tiering.retention.plan import Policy


def next_due_ms(manifest: Manifest, policy: Policy, now_ms: int, interval_ms: int, longest_ms: int) -> int:
    """The time at which the policy, or the delay of what was given up, may take something; between the two waits from now.

    By size nothing more goes before the manifest has grown; whoever adds to it says so. What cannot be told is soon.
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
