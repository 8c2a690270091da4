"""A log directory with one compacted topic, which our own engine writes and its cleaner compacts, to be archived in between."""

from dataclasses import dataclass, field
from pathlib import Path

from hand_made import batch, record
from small_logs import NOW, Clock, marker, opened

from local_log.engine.cleaner import OffsetMap, clean
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.checkpoints import write_offsets
from local_log.formats.filenames import (
    CLEANER_OFFSET_CHECKPOINT,
    HIGH_WATERMARK_CHECKPOINT,
    PARTITION_METADATA,
    TopicPartition,
)
from local_log.formats.partition_metadata import write_topic_id
from local_log.log_dir import LogDir
from local_log.log_reader import LogReader
from local_log.os_disk import OsDisk

PARTITION = TopicPartition("keyed", 0)
TOPIC_ID = "K" * 22


@dataclass
class KeyedLog:
    """The log of `keyed-0` in the log directory `root`, which an owner writes; `cleaned_to` is where its cleaner has come to."""

    root: Path
    segment_bytes: int = 2_000
    cleaned_to: int = 0
    clock: Clock = field(default_factory=Clock)
    log: UnifiedLog = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True)
        (self.folder / PARTITION_METADATA).write_bytes(write_topic_id(TOPIC_ID))
        self.log = opened(self.folder, clock=self.clock, segment_bytes=self.segment_bytes)

    @property
    def folder(self) -> Path:
        return self.root / str(PARTITION)

    def put(self, *pairs: tuple[bytes, bytes | None], **fields: int) -> None:
        """Appends a batch with these keys and values."""
        made = (record(delta, key=key, value=value) for delta, (key, value) in enumerate(pairs))
        data = batch(*made, base_timestamp=NOW, max_timestamp=NOW, **fields)  # type: ignore[arg-type]
        self.log.append_as_leader(data, 0, Origin.CLIENT)

    def end_transaction(self, producer_id: int, *, commit: bool) -> None:
        """Ends a transaction of a producer."""
        made = marker(0, producer_id, commit=commit, epoch=0, time=self.clock())
        self.log.append_as_leader(made, 0, Origin.COORDINATOR)

    def fill(self, segments: int, keys: int = 3, *, begin: int = 0) -> None:
        """Writes that many closed segments of 6 batches, in which few keys come again and again, and one that does not."""
        for n in range(begin, begin + segments):
            for b in range(5):
                at = (n * 5 + b) * 2
                self.put(*((b"key-%d" % (i % keys), b"value %d of some length" % i) for i in (at, at + 1)))
            self.put((b"only %d" % n, b"once"))
            self.log.roll()

    def clean(self, memory: int = 24_000) -> None:
        """A round of cleaning up to the active segment."""
        self.replicate()
        self.cleaned_to = clean(self.log, self.cleaned_to, self.log.last_stable_offset, OffsetMap(memory))
        self.checkpoint(CLEANER_OFFSET_CHECKPOINT, self.cleaned_to)

    def replicate(self) -> None:
        """Moves the high watermark to the log end."""
        self.log.update_high_watermark(self.log.log_end_offset)
        self.checkpoint(HIGH_WATERMARK_CHECKPOINT, self.log.log_end_offset)

    def checkpoint(self, name: str, offset: int) -> None:
        """Writes a checkpoint file of the log directory."""
        (self.root / name).write_bytes(write_offsets({PARTITION: offset}))

    def reader(self) -> LogReader:
        """The log as an offload finds it."""
        self.replicate()
        (found,) = LogDir(OsDisk(), str(self.root)).logs()
        return found

    def segment(self, base: int, suffix: str = ".log") -> Path:
        """A file of a segment."""
        return self.folder / f"{base:020d}{suffix}"
