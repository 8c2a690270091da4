"""What a turn of a job comes to: said to the loop, which alone keeps state."""

from dataclasses import dataclass

from local_log.errors import LogError
from remote.errors import RemoteError
from remote.manifest.losses import lost_offsets, lost_since_ms
from remote.manifest.model import Manifest, SegmentEntry, count_of, log_bytes_of
from tiering.agent.schedule import Job
from tiering.lag import Lag

Failure = LogError | RemoteError


@dataclass(frozen=True, slots=True)
class Archived:
    """What a manifest says of a partition: its entries and their bytes, and what was given up and is still stored.

    `lost_offsets` were lost before they were archived and nobody has acknowledged it; that is known since `lost_since_ms`.
    """

    log_start_offset: int
    end_offset: int
    segments: int
    bytes: int
    deleting_segments: int
    deleting_bytes: int
    lost_offsets: int = 0
    lost_since_ms: int | None = None

    @classmethod
    def of(cls, manifest: Manifest) -> "Archived":
        """Of one version."""
        given_up = [d.item for d in manifest.deleting]
        return cls(
            manifest.log_start_offset,
            manifest.end_offset,
            manifest.segment_count,
            manifest.log_bytes,
            sum(map(count_of, given_up)),
            sum(map(log_bytes_of, given_up)),
            lost_offsets(manifest),
            lost_since_ms(manifest),
        )


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job's turn has ended.

    `error` keeps the job from going on: it is tried again later. `refused` is what is wrong with one segment or pin, with which
    nothing is done before its folder changes; the job goes on without it. `has_more`: there is more to do at once. `due_ms` is
    when there may be more, None for not before something changes. `lag` and `archived` are what the turn has found, `copied` the
    segment that it has archived, `deleted` how many items' objects are gone, `requests` how often that was tried.
    """

    job: Job
    error: Failure | None = None
    refused: Failure | None = None
    has_more: bool = False
    due_ms: int | None = None
    lag: Lag | None = None
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
