"""What must hold of a manifest, of a manifest and the one before it, and of a log's offsets. Each gives what is wrong, or None.

They are written down once more, though commits check much of it: the judge does not ask the code under test.
"""

from collections.abc import Iterable
from itertools import pairwise
from typing import Protocol

from remote.manifest.model import Manifest
from remote.manifest.segment_entry import SegmentEntry


class Offsets(Protocol):
    """A log of the engine."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def local_log_start_offset(self) -> int: ...

    @property
    def recovery_point(self) -> int: ...

    @property
    def last_stable_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...


def uncovered(manifest: Manifest, entries: Iterable[SegmentEntry]) -> str | None:
    """Entries and gaps have every offset of the archive; overlaps are legal."""
    at, end = manifest.log_start_offset, manifest.end_offset
    found = [*((e.base_offset, e.end_offset) for e in entries), *((gap.start, gap.end) for gap in manifest.gaps)]
    for first, last in sorted(found):
        if first >= last:
            return f"[{first}, {last}) is empty"
        if first > at and at < end:
            break
        at = max(at, last)
    return f"offsets from {at} on are in no segment and in no gap, and the archive ends at {end}" if at < end else None


def invented(manifest: Manifest) -> str | None:
    """All log directories have ids: one that is told by its path, or by its broker's number or letter, was not read."""
    sources = manifest.local_log_start_offsets
    return next((f"it has a log of {source}" for source in sources if source.startswith("/") or len(source) == 1), None)


def gone_back(old: Manifest, new: Manifest) -> str | None:
    """Where the archive starts and ends, and who may write, never goes back; leader epochs grow, and their starts with them.

    Epochs from below the log start offset begin there, several of them at times.
    """
    for name in ("log_start_offset", "end_offset", "writer_epoch"):
        before, after = getattr(old, name), getattr(new, name)
        if after < before and not (new.is_deleted and name == "end_offset"):
            return f"{name} was {before}, and is {after}"
    for one, other in pairwise(new.leader_epochs):
        if other.epoch <= one.epoch or other.start_offset < one.start_offset:
            return f"leader epoch {other.epoch} from {other.start_offset} on follows {one.epoch} from {one.start_offset} on"
    return None


def disordered(log: Offsets) -> str | None:
    """The start of the log, its last stable offset, its high watermark and its end; nothing is flushed that is not there."""
    stable = max(log.last_stable_offset, log.log_start_offset)  # Kafka's is that of a batch in which the log may start
    order = log.log_start_offset, stable, log.high_watermark, log.log_end_offset
    if sorted(order) != [*order] or log.recovery_point > log.log_end_offset:
        return f"start, last stable offset, high watermark and end are {order}, and it is flushed to {log.recovery_point}"
    return None


def deleted_too_early(log: Offsets, archived_to: int) -> str | None:
    """What left the disk of a tiered log is in the archive, or below the log's start."""
    local = log.local_log_start_offset
    if not log.log_start_offset <= local <= max(archived_to, log.log_start_offset):
        return f"the local log starts at {local}, its log at {log.log_start_offset}, and the archive ends at {archived_to}"
    return None
