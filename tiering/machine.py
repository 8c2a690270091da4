"""This machine's disk, clock, ids and way to stores: the only place that knows which of each are used. A test holds it.

What is built of them is in `tiering.wiring` and `tiering.agent.wiring`. Each command imports this module before it knows what
it is asked for: a disk and its checksums, keys and signatures are loaded by the calls that open one.
"""

import gc
import resource
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from remote.clock import Clock, Ids, RandomIds, Randomness, SystemClock, SystemRandomness, Time

if TYPE_CHECKING:
    from local_log.folder_lock import FolderHolder
    from local_log.os_disk import OsDisk, OsWritableDisk
    from remote.store.api import ObjectStore
    from remote.store.instrumented import Meter

CLOCK: Final[Time] = SystemClock()
IDS: Final[Ids] = RandomIds()
RANDOMNESS: Final[Randomness] = SystemRandomness()

__all__ = [
    "CLOCK",
    "IDS",
    "RANDOMNESS",
    "allow_open_files",
    "collect_seldom",
    "folder_holder",
    "local_disk",
    "open_archive_store",
    "open_backend",
    "open_store",
    "opened_stores",
    "writable_disk",
]


_opened: "WeakKeyDictionary[Meter, str]" = WeakKeyDictionary()


def allow_open_files() -> int:
    """Lets this process open as many files as its user may have, and gives their number: a connection is one, too."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def collect_seldom() -> None:
    """Has Python look for garbage that refers to itself among new objects only, for all that will be in sight.

    A look at all objects stops every thread: 400 ms while somebody asks for 200,000 partitions. What was loaded up to now is left
    out for good.
    """
    gc.freeze()
    gc.set_threshold(1_000, 5, 100_000)


def local_disk() -> "OsDisk":
    """A disk that is only read; it keeps files open."""
    from local_log.os_disk import OsDisk

    return OsDisk()


def writable_disk() -> "OsWritableDisk":
    """A disk that may be written, too."""
    from local_log.os_disk import OsWritableDisk

    return OsWritableDisk()


def folder_holder() -> "FolderHolder":
    """Holds folders for as long as it, or this process, lives."""
    from local_log.folder_lock import OsFolderHolder

    return OsFolderHolder()


def open_backend(url: str) -> "ObjectStore":
    """As `remote.store.open.open_backend`."""
    from remote.store.open import open_backend as opened

    return opened(url)


def open_store(
    url: str, *, bytes_per_second: int | None = None, meter: "Meter | None" = None, clock: Clock = CLOCK
) -> "ObjectStore":
    """As `remote.store.open.open_store`, and `opened_stores` has it."""
    from remote.store.instrumented import Meter
    from remote.store.open import open_store as opened

    meter = meter or Meter()
    _opened[meter] = url
    return opened(url, bytes_per_second=bytes_per_second, meter=meter, clock=clock)


def opened_stores() -> "Iterable[tuple[str, Meter]]":
    """The addresses of the stores that this process uses, and what counts their calls."""
    return [(url, meter) for meter, url in list(_opened.items())]


def open_archive_store(
    url: str,
    keys_address: str | None,
    *,
    bytes_per_second: int | None = None,
    meter: "Meter | None" = None,
    unverified_allowed: bool = False,
) -> "ObjectStore":
    """An archive's store; with keys, manifests are held against their signatures. Raises BadAddress, Invalid."""
    from remote.signed_store import trusted

    store = open_store(url, bytes_per_second=bytes_per_second, meter=meter)
    return trusted(store, keys_address, unverified_allowed=unverified_allowed)
