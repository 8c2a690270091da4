"""MD5 of a range of bytes, for the kernels that hash keys; see `kernels.scan` for the rules of such code. Source: RFC 1321."""

import math
from typing import Any

import numpy as np
from numba import njit

_0, _1, _2, _3, _4, _32, _56, _64 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 32, 56, 64))
_MASK = np.uint64(0xFFFFFFFF)
_A, _B, _C, _D = (np.uint32(n) for n in (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476))
_SINES = np.array([int(abs(math.sin(i + 1)) * (1 << 32)) for i in range(64)], np.uint32)
_SHIFTS = np.array([[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]], np.uint32)

BLOCK_WORDS = 16


@njit(inline="always", boundscheck=False)
def _turned(a: Any, f: Any, b: Any, word: Any, sine: Any, shift: Any) -> Any:
    total = np.uint32(np.uint32(a + f) + np.uint32(word + sine))
    return np.uint32(b + np.uint32(np.uint32(total << shift) | np.uint32(total >> np.uint32(np.uint32(32) - shift))))


@njit(boundscheck=False)
def _digest_block(a: Any, b: Any, c: Any, d: Any, block: Any) -> Any:
    """The state after one block of 16 words."""
    a0, b0, c0, d0 = a, b, c, d
    for i in range(16):
        f = np.uint32(d ^ (b & (c ^ d)))
        a, d, c, b = d, c, b, _turned(a, f, b, block[i], _SINES[i], _SHIFTS[0, i & 3])
    for i in range(16):
        f = np.uint32(c ^ (d & (b ^ c)))
        a, d, c, b = d, c, b, _turned(a, f, b, block[(5 * i + 1) & 15], _SINES[16 + i], _SHIFTS[1, i & 3])
    for i in range(16):
        f = np.uint32(b ^ c ^ d)
        a, d, c, b = d, c, b, _turned(a, f, b, block[(3 * i + 5) & 15], _SINES[32 + i], _SHIFTS[2, i & 3])
    for i in range(16):
        f = np.uint32(c ^ (b | ~d))
        a, d, c, b = d, c, b, _turned(a, f, b, block[(7 * i) & 15], _SINES[48 + i], _SHIFTS[3, i & 3])
    return np.uint32(a0 + a), np.uint32(b0 + b), np.uint32(c0 + c), np.uint32(d0 + d)


@njit(inline="always", boundscheck=False)
def _fill(block: Any, data: Any, at: Any, left: Any) -> Any:
    """The next 64 bytes, of which `left` are data: the byte 0x80 follows the last one, then zeros."""
    for word in range(BLOCK_WORDS):
        block[word] = np.uint32(0)
    size = left if left < _64 else _64
    whole = size & ~_3
    i = _0
    while i < whole:
        low = np.uint32(data[at + i]) | (np.uint32(data[at + i + _1]) << np.uint32(8))
        high = (np.uint32(data[at + i + _2]) << np.uint32(16)) | (np.uint32(data[at + i + _3]) << np.uint32(24))
        block[i >> _2] = np.uint32(low | high)
        i += _4
    while i < size:
        block[i >> _2] |= np.uint32(np.uint32(data[at + i]) << np.uint32((i & _3) << _3))
        i += _1
    if left < _64:
        block[left >> _2] |= np.uint32(np.uint32(0x80) << np.uint32((left & _3) << _3))


@njit(boundscheck=False)
def md5(data: Any, start: Any, size: Any, block: Any) -> Any:
    """The digest of `data[start:start + size]` as two words of its bytes in little-endian order.

    `block` is room for BLOCK_WORDS words of uint32.
    """
    a, b, c, d = _A, _B, _C, _D
    at, left = start, size
    while left >= _64:
        _fill(block, data, at, left)
        a, b, c, d = _digest_block(a, b, c, d, block)
        at += _64
        left -= _64
    _fill(block, data, at, left)
    if left >= _56:
        a, b, c, d = _digest_block(a, b, c, d, block)
        for word in range(BLOCK_WORDS):
            block[word] = np.uint32(0)
    bits = size << _3
    block[14] = np.uint32(bits & _MASK)
    block[15] = np.uint32(bits >> _32)
    a, b, c, d = _digest_block(a, b, c, d, block)
    return np.uint64(a) | (np.uint64(b) << _32), np.uint64(c) | (np.uint64(d) << _32)
