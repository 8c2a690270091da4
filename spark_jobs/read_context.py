"""The read context of an executor's Python process: one key ring and one index cache for all splits of an archive.

A task reads up to 256 splits, and Spark reuses the process for other tasks. With a key ring for each split, AWS KMS would unwrap
the data key of a segment again for each of its splits.

Only what cannot become wrong is kept: unwrapped data keys and the indexes of immutable segments, both within bounds. Manifests,
store clients and errors are not. A context ends after CONTEXT_SECONDS_MAX, so that a process that lives for weeks, as a stream's
does, takes notice of new credentials and of keys that were revoked; and at once when its key file changes.
"""

import os
from dataclasses import dataclass
from threading import Lock
from typing import Final

from remote.clock import Stopwatch, stopwatch
from remote.read.context import ReadContext, decoder_with
from remote.read.index_cache import IndexCache
from remote.transforms.key_rings import revision_of

CONTEXTS_MAX: Final = 4
"""Archives, and addresses of keys, that one process reads in turn."""
CONTEXT_SECONDS_MAX: Final = 900
INDEX_BYTES_MAX: Final = 16 << 20
"""Indexes kept in memory by a context."""

_Key = tuple[int, str, str | None, str]
"""The process, the archive, the address of its keys, and the revision of these keys."""


@dataclass(frozen=True, slots=True)
class _Opened:
    context: ReadContext
    at_seconds: float


class ReadContexts:
    """Contexts by archive and keys, the oldest first. Calls of several threads are fine."""

    def __init__(self, clock: Stopwatch = stopwatch) -> None:
        self._clock = clock
        self._lock = Lock()
        self._opened: dict[_Key, _Opened] = {}

    def of(self, archive_url: str, keys_address: str | None) -> ReadContext:
        """The context for an archive. Raises Invalid, BadAddress for keys that cannot be had; that is not kept."""
        # A process that was forked from this one must not share its connections.
        key = os.getpid(), archive_url, keys_address, "" if keys_address is None else revision_of(keys_address)
        with self._lock:
            now = self._clock()
            opened = self._opened.pop(key, None)
            if opened is None or now - opened.at_seconds > CONTEXT_SECONDS_MAX:
                opened = _Opened(ReadContext(decoder_with(keys_address), IndexCache(INDEX_BYTES_MAX)), now)
            self._opened[key] = opened
            while len(self._opened) > CONTEXTS_MAX:
                del self._opened[next(iter(self._opened))]
            return opened.context


_contexts = ReadContexts()


def read_context(archive_url: str, keys_address: str | None) -> ReadContext:
    """This process's context for an archive whose keys are at an address. Raises as `ReadContexts.of`."""
    return _contexts.of(archive_url, keys_address)
