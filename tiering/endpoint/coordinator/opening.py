"""The directory of `__consumer_offsets`, opened by its owner for as long as a block lasts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from local_log.engine.manager.config import ManagerConfig
from local_log.errors import Invalid
from local_log.log_dir import LogDir
from tiering.endpoint.coordinator.config import GroupCoordinatorConfig
from tiering.endpoint.coordinator.offsets_log import NAME
from tiering.endpoint.coordinator.offsets_topic import OffsetsTopic
from tiering.local_tier.opening import local_tier, make_folders
from tiering.local_tier.service import TierService
from tiering.machine import CLOCK, local_disk

_DEDUPE_BYTES = 8 << 20
"""`log.cleaner.dedupe.buffer.size`: room for 350,000 offsets at a time."""


@contextmanager
def offsets_topic(path: str, config: GroupCoordinatorConfig, report: Callable[[str], None]) -> Iterator[OffsetsTopic]:
    """The topic in the directory at `path`, which is made if it is missing. The log cleaner runs as long as the block.

    Raises Invalid if the directory has other topics, or if another process has it; Corrupt, Unreadable.
    """
    make_folders([path])
    others = [str(found) for found in LogDir(local_disk(), path).partitions() if found.topic != NAME]
    if others:
        raise Invalid(f"{path} has the log {others[0]}: choose a directory for committed offsets alone")
    manager = ManagerConfig(log_dirs=(path,), cleaner_dedupe_buffer_size=_DEDUPE_BYTES)
    service = TierService(local_tier(manager, lambda topic: {}), CLOCK.now_ms, report)
    service.start()
    try:
        topic = OffsetsTopic.of(service.tier, config)
        service.run_in_background(lambda: report(f"offsets are no longer kept in {path}: {service.failure}"))
        yield topic
    finally:
        service.stop()
