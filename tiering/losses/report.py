"""Records in a manifest where a local log starts and ends, and what it lost before it was archived."""

from local_log.errors import LogError
from local_log.formats.primitives import INT64_MAX
from local_log.log_reader import LogReader
from remote.manifest.losses import Seen, overtaken
from remote.manifest.model import Manifest
from remote.manifest.transitions import first_seen, source_seen


def told(manifest: Manifest, log: LogReader, start: int, source: str, now_ms: int) -> Manifest:
    """The manifest that knows of a source's log what it is to know; the same where that is known already.

    `start` is where what can be archived of the log starts. Of a log whose folder is still empty nothing is told. The log's end
    is read only where there is something to tell.
    """
    if not log.segments:
        return manifest
    if not manifest.version:
        return first_seen(manifest, source, start, end_of(log))
    first, active = log.segments[0].base_offset, log.segments[-1].base_offset
    end = end_of(log) if manifest.losses else INT64_MAX
    held = ((first, active), (max(log.log_start_offset, active), end))
    after = source_seen(overtaken(manifest, Seen(source, log.log_start_offset, held), now_ms), source, start)
    return manifest if after == manifest else source_seen(after, source, start, end_of(log))


def end_of(log: LogReader) -> int:
    """Where a log ends; where its last segment is damaged, what is known of that."""
    try:
        return log.log_end_offset
    except LogError:
        return max(log.log_start_offset, log.segments[-1].base_offset)
