"""What is appended on the thread of the sockets, so that a small append is not handed to another thread and back.

Such an append takes little time: it is small, what it may inflate to is bounded, and it makes no segment and syncs nothing. Only
the write may take long, while the system holds up who writes more than its disk takes. Then others do so for a while.
"""

from dataclasses import dataclass
from typing import Final

from local_log.formats.header_layout import ATTRIBUTES_AT, BATCH_HEADER_BYTES, CODEC
from local_log.formats.primitives import Buffer
from local_log.formats.record import Codec

BYTES_MAX: Final = 256 << 10
"""Of a request: a write of about 0.1 ms."""
COMPRESSED_BYTES_MAX: Final = 32 << 10
"""Of a batch that is compressed: with these codecs it inflates to 8 MiB at most."""
_CODECS: Final = frozenset({Codec.lz4, Codec.snappy})
LONG_MS: Final = 50
PAUSE_MS: Final = 1_000


def is_short(records: Buffer) -> bool:
    """Whether a batch is validated in little time."""
    if len(records) < BATCH_HEADER_BYTES:
        return True
    codec = records[ATTRIBUTES_AT + 1] & CODEC
    return not codec or (codec in _CODECS and len(records) <= COMPRESSED_BYTES_MAX)


@dataclass(slots=True)
class AppendsAtOnce:
    """For the thread of the sockets."""

    _paused_ms: int = -PAUSE_MS

    def may(self, now_ms: int) -> bool:
        """Whether no append has taken long of late."""
        return not 0 <= now_ms - self._paused_ms < PAUSE_MS

    def took(self, began_ms: int, ended_ms: int) -> None:
        """An append was made."""
        if ended_ms - began_ms >= LONG_MS:
            self._paused_ms = ended_ms
