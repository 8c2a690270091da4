"""Randomness that a test can repeat, for keys and nonces."""

import hashlib
import itertools


class SeededRandomness:
    """Bytes that look random and are the same in every run with the same seed."""

    def __init__(self, seed: int = 0) -> None:
        self.numbers = itertools.count(seed << 32)

    def random_bytes(self, count: int) -> bytes:
        return hashlib.shake_256(str(next(self.numbers)).encode()).digest(count)
