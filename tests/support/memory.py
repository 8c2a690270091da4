"""Gives memory back between two files of tests.

An exception that a test expects is part of a cycle with the frames that it passed, and their Arrow buffers: 1.5 GB after
a file of damaged reads. Python would look for such cycles only when a quarter as many objects are new as there are old ones,
and the tests themselves are a million old ones.
"""

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil

GROWN_BYTES = 256 << 20
"""Below this it is not worth the looking, which takes a tenth of a second."""


@contextmanager
def kept() -> Iterator[None]:
    """What is made here, a million objects that stay, is not looked at for cycles: not while it is made, nor ever after."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        _note()


def give_back() -> None:
    """Frees cycles, and gives what Arrow and the C library keep for later to the operating system, where there is much of it."""
    if psutil.Process().memory_info().rss < _seen_bytes + GROWN_BYTES:
        return
    gc.collect()
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)
    _note()


_seen_bytes = 0


def _note() -> None:
    global _seen_bytes
    _seen_bytes = psutil.Process().memory_info().rss
