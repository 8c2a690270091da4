"""The folder of a log, shared by its components: disk, path, settings, clock, and the files to delete later."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from local_log.disk import WritableDisk
from local_log.engine.config import LogConfig
from local_log.engine.producers.manager import ProducerStateManager
from local_log.engine.segment import Segment
from local_log.formats.filenames import DELETED, SEGMENT_SUFFIXES


@dataclass(slots=True)
class LogFolder:
    """A partition's folder. `random` returns numbers in [0, 1), for the jitter of rolls."""

    disk: WritableDisk
    path: str
    config: LogConfig
    now_ms: Callable[[], int]
    random: Callable[[], float]
    doomed: list[tuple[int, list[str]]] = field(default_factory=list)
    """Files with the suffix .deleted and the times in ms to delete them: a reader may still use them."""

    def segment(self, base_offset: int, suffix: str = "") -> Segment:
        """Opens a segment, or creates it if it is missing."""
        config = self.config
        jitter = int(self.random() * min(config.segment_jitter_ms, config.segment_ms))
        return Segment(self.disk, self.path, base_offset, config, self.now_ms, suffix=suffix, jitter_ms=jitter)

    def delete_later(self, segments: Iterable[Segment]) -> None:
        """Renames the segments' files with the suffix .deleted, and deletes them after file.delete.delay.ms."""
        files: list[str] = []
        for segment in segments:
            if segment.suffix != DELETED:
                segment.rename(DELETED)
            files += [segment.path(of) for of in SEGMENT_SUFFIXES]
        self._doom(files)

    def delete_snapshots_later(self, producers: ProducerStateManager, segments: Iterable[Segment]) -> None:
        """As `delete_later`, for the producer snapshots at the segments' base offsets."""
        marked = (producers.mark_snapshot_deleted(s.base_offset) for s in segments)
        self._doom([file for file in marked if file is not None])

    def _doom(self, files: list[str]) -> None:
        if files:
            self.doomed.append((self.now_ms() + self.config.file_delete_delay_ms, files))

    def delete_due(self) -> None:
        """Deletes the files whose delay has passed, the longest one after the clock was set back.

        Other threads may add files meanwhile.
        """
        now = self.now_ms()
        latest = now + self.config.file_delete_delay_ms
        for one in tuple(self.doomed):
            due, files = one
            if now < due <= latest:
                continue
            for file in files if due <= now else ():
                self.disk.delete(file)
            with suppress(ValueError):  # another thread was as fast
                self.doomed.remove(one)
                if due > latest:
                    self.doomed.append((latest, files))
