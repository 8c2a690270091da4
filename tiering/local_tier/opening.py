"""Where local tiers are built: the engine that writes is loaded only by what owns log directories."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from local_log.disk import make_missing_folder
from local_log.engine.manager.config import ManagerConfig
from local_log.log_dir import LogDir
from remote.clock import jitter
from tiering.local_tier.deletion_policies import KAFKAS, load_policies
from tiering.local_tier.local_tier import LocalTier, Settings
from tiering.local_tier.own_log_dir import OwnLogDir
from tiering.machine import CLOCK, IDS, local_disk, writable_disk


def local_tier(config: ManagerConfig, settings: Settings, policies: Iterable[str] = KAFKAS) -> LocalTier:
    """The log directories of a configuration on this machine's disk, not started yet. `policies` are names of deletion policies.

    Raises Invalid for an unknown policy, and FaultyPolicy.
    """
    return LocalTier(writable_disk(), config, CLOCK.now_ms, jitter, IDS.new_id, settings, policies=load_policies(policies))


def own_log_dirs(tier: LocalTier) -> tuple[LogDir, ...]:
    """The log directories of a local tier, as a broker's are read."""
    return tuple(OwnLogDir(local_disk(), path, tier) for path in tier.directories)


def make_folders(paths: Iterable[str]) -> None:
    """Creates missing folders, so that they can be locked. Raises Unreadable."""
    disk = writable_disk()
    for path in paths:
        make_missing_folder(disk, path.rstrip("/") or "/")


@contextmanager
def owned(path: str, settings: Settings, report: Callable[[str], None]) -> Iterator[LogDir]:
    """One log directory as its owner has it, recovered, for as long as the block runs. `report` gets what went wrong with a log.

    Raises Invalid if a broker or an agent has the directory, Unreadable.
    """
    tier = local_tier(ManagerConfig(log_dirs=(path,), cleaner_enable=False), settings)
    started = tier.start()
    try:
        for problem in (*tier.notes, *(str(unopened.error) for unopened in started.unopened)):
            report(problem)
        yield own_log_dirs(tier)[0]
    finally:
        for error in tier.stop():
            report(str(error))
