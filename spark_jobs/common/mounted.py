"""A log directory and an archive that driver and executors share, and checks that an executor sees them. Loaded by executors.

A directory that is not mounted looks like one whose topics were all deleted, so nothing may be concluded from what is missing
there before it is known to be the driver's.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Final

from local_log.errors import NotFound
from local_log.formats.filenames import TopicPartition
from local_log.log_dir import LogDir
from remote import archive
from remote.store.api import ObjectStore
from tiering.log_dirs import log_dir
from tiering.machine import IDS

SEEN_MAX: Final = 10
_REMEDY: Final = "mount it at this path on the driver and on every executor, then run the job again"


@dataclass(frozen=True, slots=True)
class SharedLogDir:
    """A log directory as the driver saw it: its path, its id, and some of its partitions."""

    path: str
    id: str
    seen: tuple[TopicPartition, ...]

    @classmethod
    def of(cls, source: LogDir, partitions: Iterable[TopicPartition]) -> "SharedLogDir":
        """The directory on the driver. Raises Corrupt."""
        return cls(source.path, source.id(), tuple(islice(partitions, SEEN_MAX)))

    def open(self) -> LogDir:
        """The directory on this executor. Raises NotFound, with the host and the path, if it is not the one of the driver.

        Without an id in meta.properties, the partitions that the driver saw have to prove it.
        """
        source = log_dir(self.path)
        here = f"{self.path} on executor {host()}"
        if not source.disk.is_folder(self.path):
            raise NotFound(f"{here} is not there; {_REMEDY}")
        found = source.id()
        if found != self.id:
            raise NotFound(f"{here} is not the log directory of the driver: its id is {found}, not {self.id}; {_REMEDY}")
        if found == self.path and self.seen and not any(source.disk.is_folder(f"{self.path}/{p}") for p in self.seen):
            raise NotFound(f"{here} has no folder {self.seen[0]}, which the driver sees there; {_REMEDY}")
        return source


def check_archive(store: ObjectStore, *, is_dry_run: bool) -> None:
    """Raises NotFound, with the host, where this executor sees no archive: it may be a folder that is not mounted there.

    A task that writes also probes the store, once per process. Raises as `archive.open_to_write`, too.
    """
    try:
        archive.open_archive(store) if is_dry_run else archive.open_to_write(store, IDS)
    except NotFound as e:
        raise NotFound(f"executor {host()}: {e}") from e


def host() -> str:
    """The name of this machine."""
    return os.uname().nodename
