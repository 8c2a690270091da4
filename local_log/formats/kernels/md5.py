"""MD5 of a range of bytes, for the kernels that hash keys; see `kernels.scan` for the rules of such code. Source: RFC 1321."""

import math
from typing import Any

import numpy as np

from local_log.compiled import njit
from local_log.formats.kernels.encode import is_null

_0, _1, _2, _3, _4, _32, _56, _64 = (np.uint64(n) for n in (0, 1, 2, 3, 4, 32, 56, 64))
_MASK = np.uint64(0xFFFFFFFF)
_A, _B, _C, _D = (np.uint32(n) for n in (0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476))
_SINES = np.array([int(abs(math.sin(i + 1)) * (1 << 32)) for i in range(64)], np.uint32)
_SHIFTS = np.array([[7, 12, 17, 22], [5, 9, 14, 20], [4, 11, 16, 23], [6, 10, 15, 21]], np.uint32)

BLOCK_WORDS = 16
_LANES = 8
_LANED_MAX = np.uint64(55)
"""The most bytes that one block has room for."""


def room(count: int) -> tuple[Any, Any, Any, Any, Any]:
    """The arrays for `digests` of so many keys: a kernel allocates none."""
    single, block = np.empty(BLOCK_WORDS, np.uint32), np.zeros((BLOCK_WORDS, _LANES), np.uint32)
    return np.empty(2 * count, np.uint64), single, block, np.empty((4, _LANES), np.uint32), np.zeros(_LANES, np.uint64)


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


@njit(inline="always", boundscheck=False)
def _round_of_lanes(state: Any, block: Any, i: Any, word: Any, sine: Any, shift: Any, which: Any) -> Any:
    """One of the 64 steps for all lanes: a loop that the compiler turns into vector instructions."""
    a, b, c, d = (0 - i) & 3, (1 - i) & 3, (2 - i) & 3, (3 - i) & 3
    for lane in range(_LANES):
        x, y, z = state[b, lane], state[c, lane], state[d, lane]
        if which == 0:
            f = np.uint32(z ^ (x & (y ^ z)))
        elif which == 1:
            f = np.uint32(y ^ (z & (x ^ y)))
        elif which == 2:
            f = np.uint32(x ^ y ^ z)
        else:
            f = np.uint32(y ^ (x | ~z))
        state[a, lane] = _turned(state[a, lane], f, x, block[word, lane], sine, shift)


@njit(boundscheck=False)
def _digest_lanes(state: Any, block: Any) -> None:
    """The digests of one block in each lane."""
    for lane in range(_LANES):
        state[0, lane], state[1, lane], state[2, lane], state[3, lane] = _A, _B, _C, _D
    for i in range(16):
        _round_of_lanes(state, block, i, i, _SINES[i], _SHIFTS[0, i & 3], 0)
    for i in range(16):
        _round_of_lanes(state, block, i, (5 * i + 1) & 15, _SINES[16 + i], _SHIFTS[1, i & 3], 1)
    for i in range(16):
        _round_of_lanes(state, block, i, (3 * i + 5) & 15, _SINES[32 + i], _SHIFTS[2, i & 3], 2)
    for i in range(16):
        _round_of_lanes(state, block, i, (7 * i) & 15, _SINES[48 + i], _SHIFTS[3, i & 3], 3)
    for lane in range(_LANES):
        state[0, lane] += _A
        state[1, lane] += _B
        state[2, lane] += _C
        state[3, lane] += _D


@njit(boundscheck=False)
def digests(
    ends: Any, keys: Any, bits: Any, bit: Any, out: Any, single: Any, block: Any, state: Any, rows: Any
) -> None:  # fmt: skip
    """Writes the digest of each row's key, two words as `md5` has them; nothing for a null key. Columns are Arrow's buffers.

    Keys that fit into one block are hashed several at a time. `out` and the arrays behind it are those of `room`.
    """
    used = 0
    count = np.uint64(ends.size) - _1
    for row in range(_0, count):
        if is_null(bits, bit + row):
            continue
        start = np.uint64(ends[row])
        size = np.uint64(ends[row + _1]) - start
        if size > _LANED_MAX:
            out[row + row], out[row + row + _1] = md5(keys, start, size, single)
            continue
        _fill(single, keys, start, size)
        single[14] = np.uint32(size << _3)
        for word in range(BLOCK_WORDS):
            block[word, used] = single[word]
        rows[used] = row
        used += 1
        if used == _LANES:
            _put_lanes(state, block, rows, used, out)
            used = 0
    _put_lanes(state, block, rows, used, out)


@njit(boundscheck=False)
def _put_lanes(state: Any, block: Any, rows: Any, used: Any, out: Any) -> None:
    _digest_lanes(state, block)
    for lane in range(used):
        at = rows[lane] + rows[lane]
        out[at] = np.uint64(state[0, lane]) | (np.uint64(state[1, lane]) << _32)
        out[at + _1] = np.uint64(state[2, lane]) | (np.uint64(state[3, lane]) << _32)
