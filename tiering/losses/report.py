"""Records in a manifest where a local log starts and ends, and what it lost before it was archived."""

from local_log.errors import LogError
from local_log.formats.primitives import INT64_MAX
from local_log.log_reader import LogReader
from remote.manifest.losses import Seen, local_deletions_recorded
from remote.manifest.model import Manifest
from remote.manifest.transitions import first_seen, source_seen


# Seven parameters: what was read of the log, and what its plan knows of it.
def log_recorded(
    manifest: Manifest,
    log: LogReader,
    start: int,
    source: str,
    now_ms: int,
    deleted_to: int = 0,
    *,
    committed_from: int = 0,
) -> Manifest:
    """The manifest with the state of a source's log; the same manifest if that is recorded already.

    `start` is the first offset of what the log has, `deleted_to` is as in Seen, and nothing below `committed_from` can be
    copied. Nothing is recorded for a folder without segments. The log's end is read if something has changed, and where the
    recorded end lies in the active segment.
    """
    if not log.segments:
        return manifest
    if not manifest.version:
        return first_seen(manifest, source, start, end_of(log))
    first, active = max(log.segments[0].base_offset, committed_from), log.segments[-1].base_offset
    end = end_of(log) if manifest.losses else INT64_MAX
    held = ((min(first, active), active), (max(log.log_start_offset, active), end))
    seen = Seen(source, log.log_start_offset, held, deleted_to)
    after = source_seen(local_deletions_recorded(manifest, seen, now_ms), source, start)
    if after == manifest and not _has_other_end(log, manifest.local_log_end_offsets.get(source)):
        return manifest
    return source_seen(after, source, start, end_of(log))


def _has_other_end(log: LogReader, recorded: int | None) -> bool:
    """Whether the log has rolled a segment since its end was recorded, or was truncated below it.

    Not wherever it has grown: that would be a commit for each look.
    """
    if recorded is None:
        return False
    if recorded < log.segments[-1].base_offset:
        return True
    try:
        return recorded > log.log_end_offset
    except LogError:
        return False


def end_of(log: LogReader) -> int:
    """The log end offset; if the last segment is damaged, the largest offset that is known."""
    try:
        return log.log_end_offset
    except LogError:
        return max(log.log_start_offset, log.segments[-1].base_offset)
