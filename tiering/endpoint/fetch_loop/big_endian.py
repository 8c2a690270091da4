"""Numbers in the protocol's bytes, for compiled code.

Who changes it has to save `kernel`, too: the compiled code is kept until that file is another.
"""

from typing import Any

import numpy as np

from tiering.endpoint.fetch_loop.compiled import njit

_1, _2, _3, _4, _7, _8, _16, _24, _32, _127, _128 = (np.uint64(n) for n in (1, 2, 3, 4, 7, 8, 16, 24, 32, 127, 128))


@njit(boundscheck=False)
def uint32(data: Any, at: Any) -> Any:
    """The number at `at`."""
    high = (np.uint64(data[at]) << _24) | (np.uint64(data[at + _1]) << _16)
    return high | (np.uint64(data[at + _2]) << _8) | np.uint64(data[at + _3])


@njit(boundscheck=False)
def int64(data: Any, at: Any) -> Any:
    """The number at `at`."""
    return np.int64((uint32(data, at) << _32) | uint32(data, at + _4))


@njit(boundscheck=False)
def put_uint32(data: Any, at: Any, value: Any) -> Any:
    """Writes it, and gives the next position."""
    data[at], data[at + _1] = np.uint8(value >> _24), np.uint8(value >> _16)
    data[at + _2], data[at + _3] = np.uint8(value >> _8), np.uint8(value)
    return at + _4


@njit(boundscheck=False)
def put_uvarint(data: Any, at: Any, value: Any) -> Any:
    """Writes it, and gives the next position."""
    while value > _127:
        data[at] = np.uint8(value | _128)
        at, value = at + _1, value >> _7
    data[at] = np.uint8(value)
    return at + _1
