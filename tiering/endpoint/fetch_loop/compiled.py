"""Where the machine code of the loop comes from, as for the kernels of `local_log`: a library in the wheel, else numba."""

from typing import Final

from local_log.compiled import declarations

SOURCES: Final = (
    *(("tiering.endpoint", f"fetch_loop/{name}.py") for name in ("kernel", "lookup", "libc", "big_endian", "tables")),
    ("local_log", "checked_files.py"),
)
"""The loop, and its constants."""

LIBRARY, njit, types, _, from_dtype = declarations("tiering.endpoint", SOURCES)
