"""What the agent knows of each partition and of itself, as values: for people, for metrics, for `status`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from local_log.formats.filenames import TopicPartition
from tiering.agent.outcome import Failure, Outcome
from tiering.agent.schedule import Kind
from tiering.lag.archived import NOTHING, Archived
from tiering.lag.copy_lag import NO_LAG, NO_WAITS, Lag, WaitingSegments, lag_of
from tiering.lag.local_log import LogSeen
from tiering.lag.unprotected import PROTECTED, TopicRetention, Unprotected, unprotected_of

if TYPE_CHECKING:
    from tiering.local_tier.service import TierStatus

ERROR_CHARACTERS_MAX = 2_000

Views = tuple["PartitionView", ...]


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """An error as the agent keeps it: its kind, its message, and when it was met."""

    kind: str
    message: str
    at_ms: int

    @classmethod
    def of(cls, error: Failure, now_ms: int) -> "ErrorRecord":
        """One that has just been met."""
        return cls(type(error).__name__, str(error)[:ERROR_CHARACTERS_MAX], now_ms)

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {"kind": self.kind, "message": self.message, "at_ms": self.at_ms}


@dataclass(frozen=True, slots=True)
class PartitionView:
    """A partition. `seen_ms` is when this state was last confirmed, 0 for never; the next success clears `error`.

    `seen` is its log on disk at the last scan, `waits` the segments that the last plan did not copy yet. With `archived` these
    give its `lag`. A partition that `is_left_alone` is not archived. `retention` is its broker's. `gone_ms` is when it was found
    gone from its log directory, 0 if it is there; `is_recorded` and `is_gone_recorded` say whether its manifest has recorded the
    log of this directory, and that it is gone. `formers` are topics that had its name before, and are gone with offsets that
    count as lost.
    """

    log_dir: str
    partition: TopicPartition
    lag: Lag = NO_LAG
    archived: Archived | None = None
    seen_ms: int = 0
    copied_ms: int = 0
    error: ErrorRecord | None = None
    refused: ErrorRecord | None = None
    seen: LogSeen | None = None
    waits: WaitingSegments = NO_WAITS
    is_left_alone: bool = False
    retention: TopicRetention | None = None
    gone_ms: int = 0
    is_recorded: bool = False
    is_gone_recorded: bool = False
    formers: Views = ()

    def on_disk(self, seen: LogSeen, retention: TopicRetention | None) -> "PartitionView":
        """The view with the current state of the log on disk."""
        return replace(self, seen=seen, retention=retention)._with_lag()

    def _with_lag(self) -> "PartitionView":
        if self.is_left_alone or self.seen is None:
            return replace(self, lag=NO_LAG)
        seen = replace(self.seen, archived=self.archived or NOTHING)
        return replace(self, seen=seen, lag=lag_of(seen, self.waits))

    def unprotected(self, now_ms: int) -> Unprotected:
        """The data that would be lost with the broker's disk."""
        if self.is_left_alone or self.seen is None:
            return PROTECTED
        return unprotected_of(self.seen, self.retention, now_ms)

    @property
    def topic_id(self) -> str | None:
        """The topic's id, None while its log was not read."""
        return None if self.seen is None else self.seen.topic_id

    @property
    def lost_offsets(self) -> int:
        """The number of offsets that were deleted before they were archived: from the manifest, else from the disk.

        From the disk these are the offsets that this log no longer has; another broker may have them.
        """
        return self._own_lost_offsets + sum(former.lost_offsets for former in self.formers)

    @property
    def _own_lost_offsets(self) -> int:
        recorded = self.archived.lost_offsets if self.archived else 0
        if self.seen is None or self.is_left_alone:
            return recorded
        if self.gone_ms:
            return recorded if self.is_gone_recorded else recorded + self.unprotected(self.gone_ms).records
        if self.error is None or self.archived is None or recorded:
            return recorded
        return max(0, self.seen.start_offset - max(self.archived.end_offset, self.archived.log_start_offset))

    @property
    def lost_since_ms(self) -> int | None:
        """When the loss was noticed, None if nothing is lost."""
        times = (self._own_lost_since_ms, *(former.lost_since_ms for former in self.formers))
        return min((ms for ms in times if ms is not None), default=None)

    @property
    def _own_lost_since_ms(self) -> int | None:
        if not self._own_lost_offsets:
            return None
        since_ms = self.archived.lost_since_ms if self.archived else None
        return since_ms or self.gone_ms or (self.error.at_ms if self.error else None)

    def lost_message(self) -> str:
        """What is said of it, once."""
        return (
            f"{self.partition}: {self.lost_offsets} offsets are lost, they left the log before they were archived; see "
            "docs/operations.md, Offsets were lost"
        )

    def after(self, outcome: Outcome, now_ms: int) -> "PartitionView":
        """After a turn of one of its jobs."""
        view = self
        if outcome.waits is not None:
            view = replace(view, waits=outcome.waits, is_left_alone=False, refused=None)
        if outcome.is_recorded:
            view = replace(view, is_recorded=True)
        if outcome.is_left_alone:
            view = replace(view, is_left_alone=True, refused=None)
        if outcome.archived is not None:
            view = replace(view, archived=outcome.archived)
        if (copied := outcome.copied) is not None:
            was = view.archived or replace(NOTHING, log_start_offset=copied.base_offset, end_offset=copied.base_offset)
            view = replace(view, archived=outcome.archived or was.after(copied), copied_ms=now_ms)
        if view is not self:
            view = view._with_lag()
        if outcome.refused is not None:
            view = replace(view, refused=ErrorRecord.of(outcome.refused, now_ms))
        if outcome.error is not None:
            return replace(view, error=ErrorRecord.of(outcome.error, now_ms))
        if outcome.is_only_begun:
            return view  # what has failed before may fail again
        return replace(view, error=None, seen_ms=now_ms)

    def noted_by(self, now_ms: int) -> "PartitionView":
        """After the clock was set back to this time: what was noted while it was ahead was noted now."""
        seen_ms, copied_ms, gone_ms = (min(ms, now_ms) for ms in (self.seen_ms, self.copied_ms, self.gone_ms))
        return replace(self, seen_ms=seen_ms, copied_ms=copied_ms, gone_ms=gone_ms)

    @property
    def is_failing(self) -> bool:
        """Whether it has an error that is not over."""
        return self.error is not None or self.refused is not None

    def row(self, now_ms: int) -> dict[str, Any]:
        """For JSON and tables."""
        archived, error, unprotected = self.archived, self.error or self.refused, self.unprotected(now_ms)
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "log_dir": self.log_dir,
            "lag_segments": self.lag.segments,
            "lag_bytes": self.lag.bytes,
            "lag_ms": self.lag.age_ms(now_ms),
            "waiting_segments": self.lag.waiting,
            "unprotected_records": unprotected.records,
            "unprotected_bytes": unprotected.bytes,
            "unprotected_ms": unprotected.age_ms(now_ms),
            "unprotected_deleted_ms": unprotected.deleted_ms,
            "archived_up_to": archived.end_offset if archived else None,
            "archived_segments": archived.segments if archived else 0,
            "archived_bytes": archived.bytes if archived else 0,
            "deleting_segments": archived.deleting_segments if archived else 0,
            "deleting_bytes": archived.deleting_bytes if archived else 0,
            "lost_offsets": self.lost_offsets,
            "lost_since_ms": self.lost_since_ms,
            "copied_ms": self.copied_ms or None,
            "error": error.message if error else (self.lag.reason or None),
            "error_ms": error.at_ms if error else None,
        }


def with_formers(here: Iterable[PartitionView], gone: Iterable[PartitionView]) -> tuple[Views, Views]:
    """The views of both kinds, one of each name and topic, and with the former topics of a name within the view of its last one.

    A metric has one value of a name. What has moved to another log directory is told there.
    """
    gone_of: dict[TopicPartition, dict[str | None, PartitionView]] = {}
    for one in gone:
        gone_of.setdefault(one.partition, {})[one.topic_id] = one
    told = []
    for one in here:
        of_name = gone_of.pop(one.partition, None)
        if of_name is None:
            told.append(one)
        else:
            told.append(replace(one, formers=tuple(of for topic_id, of in of_name.items() if topic_id != one.topic_id)))
    left = ([*of_name.values()] for of_name in gone_of.values())
    return tuple(told), tuple(replace(last, formers=tuple(formers)) for *formers, last in left)


@dataclass(frozen=True, slots=True)
class Counts:
    """What a topic's jobs have done since the agent started, as Kafka's meters count it."""

    copy_bytes: int = 0
    copy_requests: int = 0
    copy_errors: int = 0
    replaced_segments: int = 0
    delete_requests: int = 0
    delete_errors: int = 0

    def after(self, outcome: Outcome) -> "Counts":
        """With one more turn counted: copies and deletions, each with their errors."""
        failed = int(outcome.error is not None) + int(outcome.refused is not None)
        if outcome.job.kind in (Kind.copy, Kind.lost):
            size = outcome.copied.log_size if outcome.copied else 0
            return replace(
                self,
                copy_bytes=self.copy_bytes + size,
                copy_requests=self.copy_requests + outcome.requests,
                copy_errors=self.copy_errors + failed,
                replaced_segments=self.replaced_segments + int(outcome.copied is not None and outcome.archived is not None),
            )
        if outcome.job.kind in (Kind.scrub, Kind.local):
            return self
        return replace(self, delete_requests=self.delete_requests + outcome.requests, delete_errors=self.delete_errors + failed)


@dataclass(frozen=True, slots=True)
class Scrub:
    """What the last scrub came to: when it began and ended, how many topics it took and what was wrong.

    `unreadable` are segments whose content it could not check, with the reason: a key or rights are missing.
    """

    started_ms: int
    ended_ms: int = 0
    topics: int = 0
    failed: int = 0
    findings: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "started_ms": self.started_ms,
            "ended_ms": self.ended_ms,
            "topics": self.topics,
            "failed": self.failed,
            "findings": list(self.findings),
            "unreadable": list(self.unreadable),
        }


@dataclass(frozen=True, slots=True)
class AgentView:
    """The agent at `now_ms`; `looped_ms` is the time of its loop's last iteration, `waiting` the number of due jobs.

    `store` is the store's error if it does not respond, and since when. `scrubs` says whether it has to scrub. `gone` are
    partitions that are gone from their log directories with offsets that were not archived. `local_tier` is the state of log
    directories that the agent owns.
    """

    started_ms: int
    now_ms: int
    looped_ms: int
    log_dirs: tuple[str, ...]
    archive: str
    is_paused: bool = False
    is_stopping: bool = False
    has_looked: bool = False
    store: ErrorRecord | None = None
    running: int = 0
    waiting: int = 0
    swept_ms: int = 0
    scrub: Scrub | None = None
    scrubs: bool = False
    error: ErrorRecord | None = None
    partitions: tuple[PartitionView, ...] = ()
    gone: tuple[PartitionView, ...] = ()
    counts: Mapping[str, Counts] = field(default_factory=dict)
    local_tier: "TierStatus | None" = None

    @property
    def state(self) -> str:
        """stopping, paused, starting, failing (the store does not respond) or running."""
        if self.is_stopping:
            return "stopping"
        if self.is_paused:
            return "paused"
        if not self.has_looked:
            return "starting"
        return "failing" if self.store else "running"

    @property
    def last_error(self) -> ErrorRecord | None:
        """The newest of the current errors; of those of one time, the store's."""
        errors = [t for p in self.partitions for t in (p.error, p.refused) if t is not None]
        return max((*(t for t in (self.store, self.error) if t), *errors), key=lambda t: t.at_ms, default=None)

    def row(self) -> dict[str, Any]:
        """For JSON."""
        return {
            **self.summary(),
            "local_tier": self.local_tier.row() if self.local_tier else None,
            "partitions": [p.row(self.now_ms) for p in self.partitions],
            "gone": [p.row(p.gone_ms) for p in self.gone if p.lost_offsets],
        }

    def summary(self) -> dict[str, Any]:
        """Of all partitions together, for JSON."""
        error = self.last_error
        unprotected = [p.unprotected(self.now_ms) for p in self.partitions]
        return {
            "state": self.state,
            "started_ms": self.started_ms,
            "now_ms": self.now_ms,
            "log_dirs": list(self.log_dirs),
            "archive": self.archive,
            "running": self.running,
            "lag_segments": sum(p.lag.segments for p in self.partitions),
            "lag_bytes": sum(p.lag.bytes for p in self.partitions),
            "lag_ms": max((p.lag.age_ms(self.now_ms) for p in self.partitions), default=0),
            "unprotected_records": sum(u.records for u in unprotected),
            "unprotected_bytes": sum(u.bytes for u in unprotected),
            "unprotected_ms": max((u.age_ms(self.now_ms) for u in unprotected), default=0),
            "unprotected_deleted_ms": min((u.deleted_ms for u in unprotected if u.deleted_ms is not None), default=None),
            "lost_offsets": sum(p.lost_offsets for p in (*self.partitions, *self.gone)),
            "lost_since_ms": min((ms for p in (*self.partitions, *self.gone) if (ms := p.lost_since_ms)), default=None),
            "store_failing_since_ms": self.store.at_ms if self.store else None,
            "store_problem": self.store.message if self.store else None,
            "last_error": error.row() if error else None,
            "last_sweep_ms": self.swept_ms or None,
            "last_scrub": self.scrub.row() if self.scrub else None,
        }
