"""A partition as it lies on disk now, in its view: how far it lags is known before anybody asks the store."""

from local_log.errors import LogError
from local_log.log_reader import LogReader, open_log
from tiering.agent.view import PartitionView
from tiering.agent.watch import Mark
from tiering.lag.archived import NOTHING
from tiering.lag.local_log import LogSeen, rescan_log, scan_log
from tiering.lag.unprotected import TopicRetention


def on_disk(view: PartitionView, mark: Mark, before: Mark | None, retention: TopicRetention | None) -> PartitionView:
    """The view with the current log on disk. If the log cannot be read the view is unchanged, and the copy task reports it."""
    try:
        seen = _seen(view, mark, before)
    except LogError:
        return view
    if any(known not in (None, seen.topic_id) for known in (view.topic_id, mark.topic_id)):
        return view  # the folder is another topic's since the look, and the next look tells that this one is gone
    return view.on_disk(seen, retention)


def _seen(view: PartitionView, mark: Mark, before: Mark | None) -> LogSeen:
    archived = view.archived or NOTHING
    seen = view.seen
    is_same = before is not None and before.is_stable and (before.state, before.start) == (mark.state, mark.start)
    if seen is None or not is_same or seen.segments_of != archived:
        return scan_log(open_log(mark.log_dir.disk, mark.folder, mark.partition, mark.start, mark.high_watermark), archived)
    log = LogReader(mark.log_dir.disk, mark.folder, mark.partition, (), mark.start, mark.high_watermark)
    return rescan_log(seen, log)
