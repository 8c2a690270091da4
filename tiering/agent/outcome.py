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
    """The result of a job's turn.

    `error` stops the job, which is retried later. `refused` is the error of one segment or pin, which is skipped until its folder
    changes. `has_more`: there is more to do at once. `due_ms` is when there may be more, None for not before something changes.
    `waits` and `archived` are the results of a plan; `is_recorded` is set if the manifest has recorded the log of this directory,
    `is_left_alone` if there is nothing to archive. `copied` is the
    segment that the turn has archived, with `archived` if it took the place of others; `deleted` is the number of items whose
    objects were deleted, `requests` the number of attempts. `asked_nothing`: the turn did not need the store, and shows
    nothing about it. `findings` are the anomalies of a scrub, `unreadable` the segments that it could not read, each with the
    reason. `formers` are the ids of other topics of the partition's name in an archive that does not have this one yet.
    """

    job: Job
    error: Failure | None = None
    refused: Failure | None = None
    has_more: bool = False
    due_ms: int | None = None
    waits: WaitingSegments | None = None
    is_recorded: bool = False
    is_left_alone: bool = False
    archived: Archived | None = None
    copied: SegmentEntry | None = None
    deleted: int = 0
    requests: int = 0
    findings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    is_aborted: bool = False
    asked_nothing: bool = False
    formers: tuple[str, ...] = ()

    @property
    def is_only_begun(self) -> bool:
        """Whether it has shown that there is more to do, and not that it can be done."""
        return self.asked_nothing or (self.has_more and self.copied is None)
