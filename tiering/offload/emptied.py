"""Which segments a log cleaner has emptied. It leaves a segment without a batch where no record of it is kept, as Kafka's does.

A log file that has lost its bytes is as long, so the files beside it are asked, too: an emptied segment has indexes without an
entry, and the cleaner has left traces. It has an offset in cleaner-offset-checkpoint from its first round's end on. During that
round the segment that it replaced lies there as a `.deleted` file, or the next one as a `.cleaned` or `.swap` file.
"""

from collections.abc import Iterable

from local_log.disk import parent_of
from local_log.errors import Corrupt
from local_log.formats.filenames import (
    CLEANED,
    CLEANER_OFFSET_CHECKPOINT,
    DELETED,
    LOG,
    OFFSET_INDEX,
    SWAP,
    TIME_INDEX,
    offset_file,
)
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from local_log.segment_reader import Segment
from tiering.offload.changed import Changed


class Emptied(Changed):
    """A segment that its log cleaner has emptied since the copy was planned: there is nothing to copy."""


def emptied_by_cleaner(log: LogReader, without_bytes: Iterable[Segment]) -> frozenset[int]:
    """The base offsets of those inactive segments, whose log files have no bytes, that a log cleaner has emptied.

    Nothing is read where there are none. Raises Unreadable.
    """
    candidates = [s for s in without_bytes if not any(_has_entries(s, suffix) for suffix in (OFFSET_INDEX, TIME_INDEX))]
    if not candidates:
        return frozenset()
    names = frozenset(log.disk.names(log.folder))
    if was_cleaned(log) or any(name.endswith((CLEANED, SWAP)) for name in names):
        return frozenset(s.base_offset for s in candidates)
    return frozenset(s.base_offset for s in candidates if f"{offset_file(s.base_offset, LOG)}{DELETED}" in names)


def refuse_emptied(log: LogReader, segment: Segment) -> None:
    """Raises Emptied for an inactive segment whose log file has no bytes, if a log cleaner has emptied it."""
    if emptied_by_cleaner(log, (segment,)):
        raise Emptied(f"{segment.path(LOG)}: its log cleaner has emptied it in the meantime")


def _has_entries(segment: Segment, suffix: str) -> bool:
    """Whether an index has entries; one that a broker has just made anew is preallocated."""
    return bool((segment.read(suffix) or b"").strip(b"\0"))


def was_cleaned(log: LogReader) -> bool:
    """Whether a round of cleaning has ended in the log. A checkpoint that cannot be read says no. Raises Unreadable."""
    try:
        return log.partition in LogDir(log.disk, parent_of(log.folder)).checkpoint(CLEANER_OFFSET_CHECKPOINT)
    except Corrupt:
        return False
