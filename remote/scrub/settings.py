"""Settings of a scrub."""

from dataclasses import dataclass
from hashlib import sha256

_HASHES = 1 << 64


@dataclass(frozen=True, slots=True)
class ScrubSettings:
    """`deep` reads segments completely: all of them, or a random `sample` (0 to 1) that `seed` determines."""

    deep: bool = False
    sample: float = 1.0
    seed: int = 0

    def includes(self, segment_id: str) -> bool:
        """Whether a segment is in the sample. The same seed gives the same sample."""
        hashed = sha256(f"{self.seed}:{segment_id}".encode()).digest()
        return int.from_bytes(hashed[:8], "big") < self.sample * _HASHES
