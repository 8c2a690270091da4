"""What the commands that recover, append to and truncate a log share: settings, copying batches, describing a log."""

from collections.abc import Sequence
from typing import Any

from local_log.engine.config import LogConfig, read_config
from local_log.engine.errors import Refused
from local_log.engine.memory_records import MemoryBatch, memory_batches
from local_log.engine.producers.state import Origin
from local_log.engine.unified_log import UnifiedLog
from local_log.errors import Invalid, NotFound
from local_log.formats.filenames import LOG, parse_offset_file
from local_log.log_0_7 import open_log_0_7
from tiering.log_tools import import_0_7
from tiering.machine import local_disk


def config_of(settings: Sequence[str]) -> LogConfig:
    """The settings of a log, given as `name=value`. Raises Invalid."""
    pairs = [setting.partition("=") for setting in settings]
    for name, equals, _ in pairs:
        if not equals:
            raise Invalid(f"{name}: expected name=value, such as segment.bytes=1048576")
    return read_config({name.strip(): value for name, _, value in pairs})


def append_all(source: str, log: UnifiedLog, leader_epoch: int | None) -> None:
    """Appends every batch of the segments in `source`, one by one, as a follower or as a leader with this epoch.

    A log of Kafka 0.7 is appended as a leader, converted to record batches. Raises NotFound, Invalid, Corrupt, Refused.
    """
    disk = local_disk()
    old = open_log_0_7(disk, source)
    if old.segments:
        if leader_epoch is None:
            raise Invalid(f"{source}: a log of Kafka 0.7, whose messages have other offsets today; append it with --leader-epoch")
        for records in import_0_7.batches(old):
            log.append_as_leader(records, leader_epoch)
        return
    names = [name for name in disk.names(source) if (parsed := parse_offset_file(name)) and parsed[1] == LOG]
    if not names:
        raise NotFound(f"{source}: no segment files there; name one partition's folder, such as orders-0 in a log directory")
    for name in names:
        file, position = f"{source}/{name}", 0
        data = disk.read(file)
        try:
            for batch in memory_batches(data):
                position = batch.position
                _append(data[position : position + batch.size], batch, log, leader_epoch)
        except Refused as e:
            raise type(e)(f"{file} at byte {position}: {e}", record_errors=e.record_errors) from e


def _append(records: bytes, batch: MemoryBatch, log: UnifiedLog, leader_epoch: int | None) -> None:
    if leader_epoch is None:
        log.append_as_follower(records, batch.leader_epoch)
    else:
        log.append_as_leader(_from_offset_0(records), leader_epoch, Origin.COORDINATOR if batch.is_control else Origin.CLIENT)


def _from_offset_0(records: bytes) -> bytes:
    """A batch as its producer sent it, with base offset 0; no checksum covers the base offset."""
    return bytes(8) + records[8:]


def state(log: UnifiedLog) -> dict[str, Any]:
    """The state of the log with the high watermark at its end."""
    log.update_high_watermark(log.log_end_offset)
    return describe(log)


def describe(log: UnifiedLog) -> dict[str, Any]:
    """Offsets, leader epoch, segments and producers of the log, as a JSON object."""
    return {
        "log_start_offset": log.log_start_offset,
        "log_end_offset": log.log_end_offset,
        "last_stable_offset": log.last_stable_offset,
        "high_watermark": log.high_watermark,
        "latest_epoch": -1 if log.epochs.latest_epoch is None else log.epochs.latest_epoch,
        "segments": [[s.base_offset, s.size] for s in log.local.segments],
        "producers": {
            str(p.producer_id): [
                p.epoch,
                p.last_sequence,
                p.last_timestamp,
                p.coordinator_epoch,
                -1 if p.txn_first_offset is None else p.txn_first_offset,
            ]
            for p in sorted(log.producers.producers.values(), key=lambda p: p.producer_id)
        },
    }
