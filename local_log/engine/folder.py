"""What a log's components share: its disk, its folder, its settings, its clock, and what is to be deleted in a while."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from local_log.disk import WritableDisk
from local_log.engine.config import LogConfig
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.segment import Segment
from local_log.formats.filenames import DELETED, SEGMENT_SUFFIXES


@dataclass(slots=True)
class LogFolder:
    """A partition's folder. `random` gives numbers in [0, 1), for what is spread in time."""

    disk: WritableDisk
    path: str
    config: LogConfig
    now_ms: Callable[[], int]
    random: Callable[[], float]
    doomed: list[tuple[int, list[str]]] = field(default_factory=list)
    """Files with the suffix .deleted and when they go, in milliseconds: a reader may still be at them."""

    def segment(self, base_offset: int, suffix: str = "") -> Segment:
        """Opens a segment, or makes it where there is none."""
        config = self.config
        jitter = int(self.random() * min(config.segment_jitter_ms, config.segment_ms))
        return Segment(self.disk, self.path, base_offset, config, self.now_ms, suffix=suffix, jitter_ms=jitter)

    def delete_later(self, segments: Iterable[Segment]) -> None:
        """Gives the segments' files the suffix .deleted now and deletes them after file.delete.delay.ms."""
        files: list[str] = []
        for segment in segments:
            if segment.suffix != DELETED:
                segment.rename(DELETED)
            files += [segment.path(of) for of in SEGMENT_SUFFIXES]
        self._doom(files)

    def delete_snapshots_later(self, producers: ProducerStateManager, segments: Iterable[Segment]) -> None:
        """As `delete_later`, for the snapshots taken where the segments start."""
        marked = (producers.mark_snapshot_deleted(s.base_offset) for s in segments)
        self._doom([file for file in marked if file is not None])

    def _doom(self, files: list[str]) -> None:
        if files:
            self.doomed.append((self.now_ms() + self.config.file_delete_delay_ms, files))

    def delete_due(self) -> None:
        """Deletes the files whose time has come."""
        now = self.now_ms()
        for due, files in self.doomed:
            if due <= now:
                for file in files:
                    self.disk.delete(file)
        self.doomed = [(due, files) for due, files in self.doomed if due > now]
