"""A log to try things on: segments of a few batches, small indexes, batches in one line each, a clock that is moved by hand."""

from dataclasses import dataclass, field
from pathlib import Path

from hand_made import TRANSACTIONAL, batch, decoded, record
from small_logs import NOW, Clock

from local_log.engine.config import LogConfig, read_config
from local_log.engine.folder import LogFolder
from local_log.engine.local_log import LocalLog
from local_log.engine.memory_records import memory_batches
from local_log.engine.scan import scan_any
from local_log.engine.segments import Segments
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.os_disk import OsWritableDisk

FOLLOWED_EPOCH = 1 << 30
"""A leader epoch that no batch of a test is above."""


def settings(**given: object) -> LogConfig:
    """Settings with underscores for their dots. Indexes are small; segments are as large as Kafka's own tests may make them."""
    named = {name.replace("_", "."): str(value).lower() for name, value in given.items()}
    if "segment.bytes" in named:
        named["internal.segment.bytes"] = named.pop("segment.bytes")
    return read_config({"segment.index.bytes": "1200"} | named)


def batch_of(
    *values: bytes | str,
    offset: int = 0,
    time: int = NOW,
    leader_epoch: int = 0,
    keys: tuple[bytes | None, ...] | None = None,
    producer: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
    codec: int = 0,
) -> bytes:
    """A batch of a record for each value, all of the same time, without keys unless given."""
    keys = (None,) * len(values) if keys is None else keys
    texts = [value.encode() if isinstance(value, str) else value for value in values]
    return batch(
        *(record(delta, key=key, value=value) for delta, (key, value) in enumerate(zip(keys, texts, strict=True))),
        base_offset=offset,
        attributes=codec | (TRANSACTIONAL if transactional else 0),
        base_timestamp=time,
        max_timestamp=time,
        epoch=leader_epoch,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 and epoch < 0 else epoch,
        base_sequence=sequence,
    )


def values_of(records: bytes) -> list[tuple[int, str]]:
    """Offsets and values of the records in whole batches."""
    if not records:
        return []
    batches, stop, _ = scan_any(records, len(records))
    rows = decoded(records[:stop], batches).to_pylist()
    return [(row["offset"], row["value"].decode()) for row in rows]


def offsets_of(records: bytes) -> list[int]:
    """Base offsets of the whole batches."""
    return [b.base_offset for b in memory_batches(records)]


@dataclass
class Log:
    """A folder with a log in it. `log` is what is open now."""

    folder: Path
    config: LogConfig = field(default_factory=settings)
    clock: Clock = field(default_factory=Clock)
    start: int = 0
    point: int = 0
    clean: bool = True
    log: UnifiedLog = field(init=False)

    def __post_init__(self) -> None:
        self.log = self._opened(self.start, self.point, clean=self.clean)

    def _opened(self, start: int, point: int, *, clean: bool) -> UnifiedLog:
        return open_log(
            OsWritableDisk(),
            str(self.folder),
            self.config,
            self.clock,
            lambda: 0.5,
            log_start_offset=start,
            recovery_point=point,
            clean=clean,
        )

    def reopen(self, *, start: int = 0, point: int = 0, clean: bool = True) -> UnifiedLog:
        """Closes the log and opens it."""
        self.log.close()
        self.log = self._opened(start, point, clean=clean)
        return self.log

    def follow(self, *batches: bytes, leader_epoch: int = FOLLOWED_EPOCH) -> None:
        """Appends batches as a follower, one at a time."""
        for one in batches:
            self.log.append_as_follower(one, leader_epoch)

    @property
    def bases(self) -> list[int]:
        """Where the segments start."""
        return list(self.log.local.segments.base_offsets)

    def read(self, offset: int, size_max: int = 1 << 20) -> list[tuple[int, str]]:
        """Offsets and values from the batch on that holds an offset, up to the log's end."""
        return values_of(self.log.local.read(offset, size_max, self.log.local.end, one_batch_at_least=True).records)

    def files(self, suffix: str) -> list[int]:
        """The offsets of the files whose name ends so."""
        return sorted(int(file.name.partition(".")[0]) for file in self.folder.iterdir() if file.name.endswith(suffix))


def segmented(folder: Path, clock: Clock, config: LogConfig) -> LocalLog:
    """An empty log as a row of segments."""
    shared = LogFolder(OsWritableDisk(), str(folder), config, clock, lambda: 0.5)
    segments = Segments()
    segments.add(shared.segment(0))
    return LocalLog(shared, segments, recovery_point=0, log_end_offset=0)


def write(log: LocalLog, *batches: bytes) -> None:
    """Appends batches as they are, one at a time."""
    for one in batches:
        found = memory_batches(one)
        log.append(found[-1].last_offset, one, found)
