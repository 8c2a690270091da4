"""What a turn of a job comes to: said to the loop, which alone keeps state."""

from dataclasses import dataclass

from local_log.errors import LogError
from remote.manifest.segment_entry import SegmentEntry
from tiering.agent.schedule import Job
from tiering.lag.archived import Archived
from tiering.lag.copy_lag import WaitingSegments

Failure = LogError


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job's turn has ended.

    `error` keeps the job from going on: it is tried again later. `refused` is what is wrong with one segment or pin, with which
    nothing is done before its folder changes; the job goes on without it. `has_more`: there is more to do at once. `due_ms` is
    when there may be more, None for not before something changes. `waits` and `archived` are what a plan has found; where it has
    found that there is nothing to archive, `is_left_alone`. `copied` is the segment that the turn has archived, `deleted` how
    many items' objects are gone, `requests` how often that was tried.
    """

    job: Job
    error: Failure | None = None
    refused: Failure | None = None
    has_more: bool = False
    due_ms: int | None = None
    waits: WaitingSegments | None = None
    is_left_alone: bool = False
    archived: Archived | None = None
    copied: SegmentEntry | None = None
    deleted: int = 0
    requests: int = 0
    findings: tuple[str, ...] = ()
    is_aborted: bool = False

    @property
    def is_only_begun(self) -> bool:
        """Whether it has shown that there is more to do, and not that it can be done."""
        return self.has_more and self.copied is None
