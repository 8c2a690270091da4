"""The log directories of this machine by their paths, and what their brokers say of topics."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from local_log.log_dir import LogDir
from remote.clock import Clock
from tiering.machine import CLOCK, local_disk

if TYPE_CHECKING:
    from tiering.cluster import Cluster


def log_dir(path: str) -> LogDir:
    """The log directory at a path of this machine."""
    return LogDir(local_disk(), path.rstrip("/") or "/")


def cluster_of(paths: Iterable[str | None], clock: Clock | None = None) -> "Cluster":
    """What the brokers whose log directories these are say of topics."""
    from tiering.cluster import Cluster  # most that open a log directory ask its broker for nothing

    return Cluster(tuple(log_dir(path) for path in dict.fromkeys(paths) if path is not None), clock or CLOCK)
