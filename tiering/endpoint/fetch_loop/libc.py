"""The functions of the C library that the compiled loop calls.

The linker of the compiled code finds their symbols in every process on Linux.
"""

from typing import Any, Final

import numpy as np

from tiering.endpoint.fetch_loop.compiled import types

_int, _long, _size, _ssize = types.int32, types.int64, types.uintp, types.intp


def _of_libc(name: str, *signature: Any) -> Any:
    return types.ExternalFunction(name, signature[-1](*signature[:-1]))


recv = _of_libc("recv", _int, _size, _size, _int, _ssize)
send = _of_libc("send", _int, _size, _size, _int, _ssize)
sendmsg = _of_libc("sendmsg", _int, _size, _int, _ssize)
sendfile = _of_libc("sendfile", _int, _int, _size, _size, _ssize)
pread = _of_libc("pread", _int, _size, _size, _long, _ssize)
statx = _of_libc("statx", _int, _size, _int, types.uint32, _size, _int)
epoll_wait = _of_libc("epoll_wait", _int, _size, _int, _int, _int)
ppoll = _of_libc("ppoll", _size, types.uint64, _size, _size, _int)
clock_gettime = _of_libc("clock_gettime", _int, _size, _int)
memcmp = _of_libc("memcmp", _size, _size, _size, _int)
memcpy = _of_libc("memcpy", _size, _size, _size, _size)

MONOTONIC: Final = np.int32(1)
NOW: Final = np.int32(0)
READABLE: Final = 1
WRITABLE: Final = 4
DONTWAIT: Final = np.int32(0x40)
NOSIGNAL: Final = np.int32(0x4000)
MORE: Final = np.int32(0x8000)
NONE: Final = np.int32(0)
EMPTY_PATH: Final = np.int32(0x1000)
"""To `statx`: the file is its descriptor."""
SIZE_AND_MODIFIED: Final = np.uint32(0x240)
