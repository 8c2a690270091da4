"""Where local tiers are built: the engine that writes is loaded only by what owns log directories."""

from collections.abc import Iterable

from local_log.engine.manager.config import ManagerConfig
from local_log.log_dir import LogDir
from remote.clock import jitter
from tiering.local_tier.local_tier import LocalTier, Settings
from tiering.local_tier.own_log_dir import OwnLogDir
from tiering.machine import CLOCK, IDS, local_disk, writable_disk


def local_tier(config: ManagerConfig, settings: Settings) -> LocalTier:
    """The log directories of a configuration on this machine's disk, not started yet."""
    return LocalTier(writable_disk(), config, CLOCK.now_ms, jitter, IDS.new_id, settings)


def own_log_dirs(tier: LocalTier) -> tuple[LogDir, ...]:
    """The log directories of a local tier, as a broker's are read."""
    return tuple(OwnLogDir(local_disk(), path, tier) for path in tier.directories)


def make_folders(paths: Iterable[str]) -> None:
    """Creates missing folders, so that they can be locked. Raises Unreadable."""
    disk = writable_disk()
    for path in paths:
        disk.make_folder(path.rstrip("/") or "/")
