"""A log as a broker keeps it on a disk that may crash: with checkpoints, and with a mark of a clean shutdown."""

from dataclasses import dataclass

import hand_made
from simulated_disk import SimulatedDisk

from local_log.disk import WritableDisk, replace_file
from local_log.engine.config import read_config
from local_log.engine.memory_records import MemoryBatch, memory_batches
from local_log.engine.unified_log import UnifiedLog, open_log
from local_log.errors import NotFound
from local_log.formats.checkpoints import read_offsets
from local_log.formats.filenames import LOG_START_OFFSET_CHECKPOINT, RECOVERY_POINT_CHECKPOINT, TopicPartition

NOW = 1_800_000_000_000
LOGS = "/logs"
PARTITION = TopicPartition("orders", 0)
FOLDER = f"{LOGS}/{PARTITION}"
CLEAN = f"{LOGS}/.kafka_cleanshutdown"
SETTINGS = {
    "internal.segment.bytes": "10000",
    "segment.index.bytes": "600",
    "index.interval.bytes": "300",
    "max.message.bytes": "10000",
}


@dataclass(frozen=True)
class Written:
    """A batch with what its header says."""

    data: bytes
    header: MemoryBatch

    @property
    def end(self) -> int:
        return self.header.last_offset + 1


def batch(
    offset: int, records: int = 1, *, epoch: int = 0, time: int = NOW, size: int = 0, is_keyed: bool = False, **fields: int
) -> Written:
    """A batch of records at `offset`, of about `size` bytes; with `is_keyed` each has a key that no other has."""
    value = bytes([65 + offset % 26]) * (size // records)
    made = [hand_made.record(i, key=b"%d" % (offset + i) if is_keyed else None, value=value) for i in range(records)]
    return _written(
        hand_made.batch(*made, base_offset=offset, base_timestamp=time, max_timestamp=time, epoch=epoch, **fields)  # type: ignore[arg-type]
    )


def marker(offset: int, *, commits: bool, epoch: int = 0, coordinator: int = 0, time: int = NOW, **fields: int) -> Written:
    """The end of a transaction at `offset`."""
    key = hand_made.COMMIT_KEY if commits else hand_made.ABORT_KEY
    value = bytes(2) + coordinator.to_bytes(4, "big")
    return _written(
        hand_made.batch(
            hand_made.record(0, key=key, value=value),
            base_offset=offset,
            base_timestamp=time,
            max_timestamp=time,
            epoch=epoch,
            attributes=hand_made.TRANSACTIONAL | hand_made.CONTROL,
            **fields,  # type: ignore[arg-type]
        )
    )


def _written(data: bytes) -> Written:
    (header,) = memory_batches(data)
    return Written(data, header)


def start(disk: WritableDisk, settings: dict[str, str] = SETTINGS) -> UnifiedLog:
    """Opens the log as a broker does at its start, by what is written down beside it."""
    disk.make_folder(LOGS)
    disk.sync_folder("/")
    clean = disk.exists(CLEAN)
    if clean:
        disk.delete(CLEAN)
        disk.sync_folder(LOGS)
    return open_log(
        disk,
        FOLDER,
        read_config(settings),
        lambda: NOW,
        lambda: 0.0,
        log_start_offset=checkpointed(disk, LOG_START_OFFSET_CHECKPOINT),
        recovery_point=checkpointed(disk, RECOVERY_POINT_CHECKPOINT),
        clean=clean,
    )


def checkpointed(disk: WritableDisk, name: str) -> int:
    """The log's offset in a checkpoint; 0 without one."""
    try:
        return read_offsets(disk.read(f"{LOGS}/{name}")).get(PARTITION, 0)
    except NotFound:
        return 0


def checkpoint(disk: WritableDisk, name: str, offset: int) -> None:
    """Writes an offset down for the next start."""
    replace_file(disk, f"{LOGS}/{name}", f"0\n1\n{PARTITION.topic} {PARTITION.partition} {offset}\n".encode())


def checkpoint_recovery_point(log: UnifiedLog) -> None:
    """As a broker does once a minute, and after it has truncated."""
    checkpoint(log.folder.disk, RECOVERY_POINT_CHECKPOINT, log.recovery_point)


def stop(log: UnifiedLog) -> None:
    """Shuts down cleanly."""
    disk = log.folder.disk
    log.flush(also_active=True)
    log.close()
    checkpoint(disk, RECOVERY_POINT_CHECKPOINT, log.recovery_point)
    checkpoint(disk, LOG_START_OFFSET_CHECKPOINT, log.log_start_offset)
    replace_file(disk, CLEAN, b'{"version":0,"brokerEpoch":-1}')


def empty_disk() -> SimulatedDisk:
    """A disk at the time NOW."""
    disk = SimulatedDisk()
    disk.now_ms = NOW
    return disk
