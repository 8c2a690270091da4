"""Logs as tests write them: small segments and indexes, hand-made batches, a clock that goes when it is told to."""

import struct
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from hand_made import ABORT_KEY, COMMIT_KEY, CONTROL, GZIP, TRANSACTIONAL, batch, compressed, record

from local_log.engine.config import LogConfig, read_config
from local_log.engine.memory_records import BatchFacts, memory_batches
from local_log.engine.segment import Segment
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.formats.primitives import Buffer
from local_log.os_disk import OsWritableDisk

NOW = 1_700_000_000_000
SMALL = {"segment.index.bytes": "1200", "index.interval.bytes": "1"}
INT32_MAX = (1 << 31) - 1

Make = Callable[[int], bytes]
"""Makes the batch at an offset."""


class Clock:
    """The time, which stands still until it is told to go on."""

    def __init__(self, now: int = NOW) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now

    def sleep(self, ms: int) -> None:
        """It is `ms` milliseconds later."""
        self.now += ms


class LogReads(OsWritableDisk):
    """A disk that notes which log files are read, by their base offsets."""

    def __init__(self) -> None:
        super().__init__()
        self.read_bases: set[int] = set()

    def read(self, file: str, start: int = 0, end: int | None = None) -> bytes:
        """See Disk."""
        if file.endswith(".log"):
            self.read_bases.add(int(Path(file).stem))
        return super().read(file, start, end)

    def read_large(self, file: str, start: int, end: int) -> Buffer:
        """See Disk."""
        return self.read(file, start, end)


def small_config(**settings: int | bool) -> LogConfig:
    """Settings with small indexes that get an entry for each batch but the first."""
    return LogConfig(**{"segment_index_bytes": 1200, "index_interval_bytes": 1} | settings)  # type: ignore[arg-type]


def opened(
    folder: Path,
    *,
    clock: Callable[[], int] | None = None,
    disk: OsWritableDisk | None = None,
    start: int = 0,
    point: int = 0,
    clean: bool = False,
    segment_bytes: int = 1 << 20,
    **settings: object,
) -> UnifiedLog:
    """The log in a folder, opened as after a crash unless `clean`; settings with underscores for their dots."""
    given = {name.replace("_", "."): str(value).lower() for name, value in settings.items()}
    config = read_config(SMALL | {"internal.segment.bytes": str(segment_bytes)} | given)
    return open_log(
        disk or OsWritableDisk(),
        str(folder),
        config,
        clock or Clock(),
        lambda: 0.0,
        log_start_offset=start,
        recovery_point=point,
        clean=clean,
    )


def records(offset: int, count: int = 1, *, value: bytes = b"value", time: int = NOW, epoch: int = 0) -> bytes:
    """A batch of `count` records from `offset` on, by no producer."""
    made = (record(i, value=value) for i in range(count))
    return batch(*made, base_offset=offset, base_timestamp=time, max_timestamp=time, epoch=epoch)


def produced(
    offset: int, producer_id: int, sequence: int, count: int = 1, *, time: int = NOW, transactional: bool = False
) -> bytes:
    """A batch of a producer with epoch 0."""
    return batch(
        *(record(i) for i in range(count)),
        base_offset=offset,
        attributes=TRANSACTIONAL if transactional else 0,
        base_timestamp=time,
        max_timestamp=time,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
    )


def marker(offset: int, producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0, time: int = NOW) -> bytes:
    """A batch that ends a producer's transaction."""
    return batch(
        record(key=COMMIT_KEY if commit else ABORT_KEY, value=struct.pack(">hi", 0, coordinator_epoch)),
        base_offset=offset,
        attributes=TRANSACTIONAL | CONTROL,
        base_timestamp=time,
        max_timestamp=time,
        producer_id=producer_id,
        producer_epoch=epoch,
    )


def old_records(
    offset: int, *, value: bytes | None = b"value", time: int = NOW, attributes: int = 0, magic: int = 1, key: bytes | None = None
) -> bytes:
    """A message of magic 1 or 0; one of magic 0 has no time."""
    tail = struct.pack(">bb", magic, attributes) + (struct.pack(">q", time) if magic else b"")
    for data in (key, value):
        tail += struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data
    return struct.pack(">qiI", offset, 4 + len(tail), zlib.crc32(tail)) + tail


def old_compressed(first_offset: int, count: int, *, time: int = NOW, codec: int = GZIP, attributes: int = 0) -> bytes:
    """A message of magic 1 that holds `count` others, a millisecond apart; it has offset and time of the last of them."""
    inner = b"".join(old_records(i, time=time + i) for i in range(count))
    value = compressed(codec, inner)
    last = count - 1
    return old_records(first_offset + last, value=value, time=time + last, attributes=codec | attributes)


def follow(log: UnifiedLog, *batches: bytes) -> None:
    """Appends batches, one at a time, as a follower does."""
    for one in batches:
        log.append_as_follower(one, 1 << 30)


def append(segment: Segment, *batches: bytes) -> None:
    """Appends batches to a segment, all at once."""
    data = b"".join(batches)
    made = memory_batches(data)
    segment.append(made[-1].last_offset, data, [BatchFacts(b.last_offset, b.max_timestamp, b.size) for b in made])


def base_offsets(segments: Iterable[Segment]) -> list[int]:
    """Base offsets of the batches in log files, in order."""
    return [int(offset) for segment in segments for scanned in segment.scan(0) for offset in scanned.batches.base_offset]


def suffixed(folder: Path, suffix: str) -> list[int]:
    """The offsets that the names of the files with a suffix begin with, in order."""
    return sorted(int(file.name.partition(".")[0]) for file in folder.iterdir() if file.name.endswith(suffix))


ONE = len(records(0))
"""Bytes of a batch."""


def file_of(folder: Path, base_offset: int, of: str) -> Path:
    """A file of a segment, by what its name ends in."""
    return folder / f"{base_offset:020d}{of}"


def bases(log: UnifiedLog) -> list[int]:
    """The base offsets of its segments."""
    return list(log.local.segments.base_offsets)


def found_at(log: UnifiedLog, time: int) -> int | None:
    """The offset that a log finds by a time."""
    found = log.offset_for(time)
    return None if found is None else found.offset


def a_segment_each(log: UnifiedLog, count: int) -> None:
    """Appends `count` batches of one record and rolls after each."""
    for _ in range(count):
        follow(log, records(log.log_end_offset))
        log.roll()
