"""Memory for large bodies, used again when nobody has a view of it any more (Kafka's BufferPool).

The system clears memory that is new to a process, which takes as long as to copy a body into it.
"""

import sys
import weakref
from collections import deque
from typing import Any, Final

import numpy as np

STEP_BYTES: Final = 1 << 20
"""Sizes are rounded up to it, so that bodies of nearly one size share memory."""
POOLED_BYTES_MIN: Final = 4 << 20
"""Smaller bodies have memory of their own."""
_REFERENCES: Final = 2
"""By a variable and by the call that counts them."""


class BufferPool:
    """For many threads. At most `kept_max` buffers that nobody uses are kept."""

    def __init__(self, kept_max: int) -> None:
        self._kept: deque[np.ndarray[Any, np.dtype[np.uint8]]] = deque(maxlen=kept_max)

    def take(self, size: int) -> memoryview:
        """`size` bytes of any content. They are the caller's for as long as there is a view of them."""
        if size < POOLED_BYTES_MIN:
            return np.empty(size, np.uint8).data
        rounded = -(-size // STEP_BYTES) * STEP_BYTES
        memory = self._unused(rounded)
        if memory is None:
            memory = np.empty(rounded, np.uint8)
        # Made of a memoryview, so that each view of it, by numpy too, keeps it and not `memory` alone.
        found = np.frombuffer(memory.data, np.uint8, size)
        weakref.finalize(found, self._kept.append, memory).atexit = False
        return found.data

    def _unused(self, size: int) -> "np.ndarray[Any, np.dtype[np.uint8]] | None":
        for _ in range(len(self._kept)):
            try:
                memory = self._kept.popleft()
            except IndexError:  # others have taken them
                break
            if len(memory) != size:
                self._kept.append(memory)
            elif sys.getrefcount(memory) <= _REFERENCES:
                return memory
        return None
