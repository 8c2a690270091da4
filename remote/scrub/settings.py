"""What a scrub is asked for."""

from dataclasses import dataclass
from hashlib import sha256

_HASHES = 1 << 64


@dataclass(frozen=True, slots=True)
class ScrubSettings:
    """`deep` reads segments from end to end: all of them, or the `sample` of them (0 to 1) that `seed` picks."""

    deep: bool = False
    sample: float = 1.0
    seed: int = 0

    def includes(self, segment_id: str) -> bool:
        """Whether a segment is of the sample; the same ones each time, others with another seed."""
        hashed = sha256(f"{self.seed}:{segment_id}".encode()).digest()
        return int.from_bytes(hashed[:8], "big") < self.sample * _HASHES
