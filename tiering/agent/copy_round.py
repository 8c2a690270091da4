"""What was copied since no copy was due: one line of a log tells of it when nothing is left to copy."""

from dataclasses import dataclass, field

from remote.manifest.segment_entry import SegmentEntry
from tiering.agent.job_queue import JobQueue
from tiering.agent.schedule import Kind


@dataclass(slots=True)
class CopyRound:
    """Counts segments and their bytes, and the partitions that they are of, by folder."""

    segments: int = 0
    bytes: int = 0
    folders: set[str] = field(default_factory=set)
    began_ms: int = 0

    def copied(self, folder: str, entry: SegmentEntry, now_ms: int) -> None:
        """A segment was archived."""
        self.began_ms = self.began_ms or now_ms
        self.segments += 1
        self.bytes += entry.log_size
        self.folders.add(folder)

    def ended(self, queue: JobQueue, now_ms: int) -> dict[str, str | int] | None:
        """What the round has copied, if it has and no copy is due or runs; the next one begins then."""
        due = [*queue.running, *(job for job, waiting in queue.waiting.items() if waiting.due_ms <= now_ms)]
        if not self.segments or any(job.kind is Kind.copy for job in due):
            return None
        counts: dict[str, str | int] = {"segments": self.segments, "bytes": self.bytes, "partitions": len(self.folders)}
        seconds = (now_ms - self.began_ms) // 1000
        self.segments, self.bytes, self.folders, self.began_ms = 0, 0, set(), 0
        return {**counts, "seconds": seconds}
