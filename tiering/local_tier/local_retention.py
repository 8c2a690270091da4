"""Deletes segments of a tiered log of ours once a committed manifest names them, or its archive's retention has dropped them.

As in Kafka, local.retention.ms and local.retention.bytes count the local log alone, -2 stands for the limit of both tiers, and an
active segment that breaks a limit is rolled, so that it is archived and can be deleted, too.
"""

from collections.abc import Callable, Sequence

from local_log.engine.manager.retention import KAFKAS, DeletionPolicy, delete_old_segments
from local_log.engine.unified_log import UnifiedLog
from local_log.formats.primitives import INT64_MAX
from local_log.log_reader import LogReader
from remote.read.context import Decoder
from remote.store.api import ObjectStore
from remote.transforms.decoded_bytes import DecodedBytes
from tiering.retention.local import Held, held, planned, refuse_others

_EVERYTHING = Held(INT64_MAX, 0)


def is_due(log: UnifiedLog, reader: LogReader, now_ms: int, policies: Sequence[DeletionPolicy] = KAFKAS) -> bool:
    """Whether something would be deleted if all of the log were archived. Asks no store."""
    return bool(planned(reader, log.folder.config, _EVERYTHING, now_ms, policies))


# Seven parameters: the log as its writer and its reader have it, its archive and how that is read, and what belongs to its owner.
def retain(
    log: UnifiedLog,
    reader: LogReader,
    store: ObjectStore,
    now_ms: int,
    policies: Sequence[DeletionPolicy] = KAFKAS,
    decoded: Decoder = DecodedBytes,
    keep_starts: Callable[[], None] = lambda: None,
) -> int:
    """Asks the archive and deletes; returns the number of deleted segments. The log start offset follows the archive's.

    `keep_starts` writes the log start offsets down: what lies below one need not be archived, so after a crash that brought an
    earlier one back, nobody would have what was deleted. While the store does not answer nothing is deleted. Raises Unavailable,
    as `held` and `refuse_others`, and what `keep_starts` raises.
    """
    known = held(store, reader)
    compared = refuse_others(store, reader, known, planned(reader, log.folder.config, known, now_ms, policies), decoded)
    log.maybe_increment_log_start_offset(min(known.log_start_offset, log.high_watermark))
    while True:
        start = log.log_start_offset
        keep_starts()
        with log.lock:
            if log.log_start_offset != start:
                continue
            log.highest_offset_in_archive = min(compared, known.through)  # what is due only since then was not compared
            deleted = delete_old_segments(log, now_ms, policies)
            log.highest_offset_in_archive = known.through
            return deleted
