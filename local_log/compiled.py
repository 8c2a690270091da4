"""Where the machine code of kernels comes from: the library in the wheel for this processor, else numba.

Kernels are declared with numba's `njit`, types and intrinsics. The wheel has a library of all kernels of a package for each
processor that `kernel_library` knows. A checkout, another platform and a kernel that was edited since have none: there numba
compiles, which the extra `numba` brings where it is not needed otherwise.

The kernels of `formats` are declared with what this module has; those of the endpoint's loop have another of this name.
"""

from collections.abc import Sequence
from types import ModuleType
from typing import Any, Final, NamedTuple

from local_log.errors import Invalid
from local_log.kernel_library import Source, library

_KERNELS: Final = (
    *("__init__", "constants", "decode", "encode", "encode_messages", "find_time", "inflate_lz4", "keys", "md5", "messages"),
    *("offset_map", "scan", "validate"),
)
SOURCES: Final = (
    *(("local_log", f"formats/kernels/{name}.py") for name in _KERNELS),
    ("local_log", "formats/header_layout.py"),
)
"""The kernels of `formats`, and their constants."""


class Declarations(NamedTuple):
    """What kernels are declared with: numba's own, or if they are in a library what stands for it."""

    library: ModuleType | None
    njit: Any
    types: Any
    intrinsic: Any
    from_dtype: Any


class _Unused:
    """Stands for numba's types, which only a compiler looks at."""

    def __getattr__(self, name: str) -> "_Unused":
        return self

    def __call__(self, *_: Any, **__: Any) -> "_Unused":
        return self

    def __getitem__(self, _: Any) -> "_Unused":
        return self


def declarations(package: str, sources: Sequence[Source]) -> Declarations:
    """For the kernels of a package in these files. Raises Invalid where there is neither a library of them nor numba."""
    found = library(package, sources)
    if found is None:
        return _of_numba()

    def intrinsic(declared: Any) -> Any:
        """As numba's: only other kernels call it."""
        return declared

    def njit(*signature: Any, **_: Any) -> Any:
        """As numba's: gives a kernel with a signature as it was compiled. Without one only other kernels call it."""
        return (lambda kernel: getattr(found, kernel.__name__)) if signature else lambda kernel: kernel

    return Declarations(found, njit, _Unused(), intrinsic, _Unused())


def _of_numba() -> Declarations:
    import logging

    try:
        from numba import from_dtype, njit, types
        from numba.extending import intrinsic
    except ModuleNotFoundError as e:
        raise Invalid(
            f"no kernels were compiled for this platform and these sources, and what compiles them is not there ({e}): "
            "pip install 'kafka-tiering[numba]'"
        ) from e
    from local_log import kernel_cache  # noqa: F401  # before the first kernel, for code that is shipped in a zip

    logging.getLogger(__name__).info("no library of kernels for this platform and these sources: numba compiles them")
    return Declarations(None, njit, types, intrinsic, from_dtype)


LIBRARY, njit, types, intrinsic, _ = declarations("local_log", SOURCES)
