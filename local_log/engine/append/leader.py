"""Prepares a leader's append: checks it and assigns offsets, epoch and timestamp (see `analyze` and `validator`)."""

from local_log.engine.append.analyze import AppendInfo, analyze, check_sizes
from local_log.engine.append.validator import rules_of, validate
from local_log.engine.config import LogConfig
from local_log.engine.memory_records import MemoryBatch, memory_batches
from local_log.engine.producers.state import Origin
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec


# Seven parameters: the log's state that the append is checked against.
def prepare(
    records: Buffer, origin: Origin, leader_epoch: int, *, log_start: int, log_end: int, now_ms: int, config: LogConfig
) -> tuple[AppendInfo, bytes, list[MemoryBatch]]:
    """The batches to write from offset `log_end` on. Those of `RAFT_LEADER` already have their offsets.

    If the result's `valid_bytes` are 0, nothing may be written. Raises Refused.
    """
    info, batches = analyze(records, origin, leader_epoch, log_start, config)
    if info.valid_bytes <= 0 or origin is Origin.RAFT_LEADER:
        return info, bytes(records), batches
    rules = rules_of(config)
    valid = validate(
        records[: info.valid_bytes],
        batches,
        log_end,
        now_ms,
        rules,
        source_codec=Codec(info.source_codec),
        leader_epoch=leader_epoch,
        origin=origin,
    )
    batches = memory_batches(valid.records)
    info = info._replace(
        first_offset=log_end,
        last_offset=valid.last_offset,
        max_timestamp=valid.max_timestamp,
        log_append_time=valid.max_timestamp if rules.is_append_time else info.log_append_time,
    )
    if valid.is_rebuilt:
        check_sizes(batches, config)
    return info, valid.records, batches
