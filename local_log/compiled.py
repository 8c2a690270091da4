"""Where the machine code of `formats.kernels` comes from: the library in the wheel for this processor, else numba.

Kernels are declared with numba's `njit`, types and intrinsics. The wheel has a library of all of them for each processor that
`library_name` knows, an extension module that needs neither numba nor llvmlite: loading it takes a millisecond, loading numba a
third of a second. It is imported as any module of the package is, from the package's own folder and never from one for caches.
A checkout, another platform, code in a zip and a kernel that was edited since have no such library; there numba compiles.
"""

import hashlib
import os
import sys
from importlib import import_module
from types import ModuleType
from typing import Any, Final

__all__ = ["LIBRARIES", "LIBRARY", "intrinsic", "library_name", "njit", "sources_digest", "types"]

LIBRARIES: Final = "local_log.kernel_libraries"
"""The package of the libraries; `kernel_build` puts it into the wheel."""


class _Unused:
    """Stands for numba's types, which only a compiler looks at."""

    def __getattr__(self, name: str) -> "_Unused":
        return self

    def __call__(self, *_: Any, **__: Any) -> "_Unused":
        return self

    def __getitem__(self, _: Any) -> "_Unused":
        return self


def library_name(platform: str, machine: str, features: dict[str, bool]) -> str | None:
    """The library for a processor with these features, as numpy names them; None if the wheel has none."""
    if platform != "linux":
        return None
    if machine == "aarch64":
        return "linux_aarch64"
    if machine != "x86_64" or not features.get("SSE42"):
        return None
    return "linux_x86_64_v4" if features.get("AVX512_SKX") else "linux_x86_64_v2"


def sources_digest() -> str:
    """Of all that is compiled: the kernels, which are inlined into each other, and their constants. Raises OSError in a zip."""
    formats = os.path.join(os.path.dirname(__file__), "formats")
    kernels = os.path.join(formats, "kernels")
    names = sorted(os.path.join(kernels, name) for name in os.listdir(kernels) if name.endswith(".py"))
    digest = hashlib.sha256()
    for name in (*names, os.path.join(formats, "header_layout.py")):
        with open(name, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


def _features() -> dict[str, bool]:
    try:
        found: dict[str, bool] = import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):  # numpy's own, and not promised: without it the library for every processor will do
        return {"SSE42": True}
    return found


def _library() -> ModuleType | None:
    name = library_name(sys.platform, os.uname().machine, _features())
    if name is None:
        return None
    try:
        found = import_module(f"{LIBRARIES}.{name}")
        return found if sources_digest() == found.SOURCES else None
    except ModuleNotFoundError:  # a checkout, code in a zip, a Python without the stable ABI
        return None
    except (ImportError, OSError) as e:
        import logging

        logging.getLogger(__name__).warning("numba compiles the kernels, as their library cannot be used: %s", e)
        return None


LIBRARY: Final = _library()
"""The library that is used, None where numba compiles."""

njit: Any
types: Any
intrinsic: Any

if LIBRARY is not None:
    types = _Unused()

    def intrinsic(declared: Any) -> Any:
        """As numba's: only other kernels call it."""
        return declared

    def njit(*signature: Any, **_: Any) -> Any:
        """As numba's: gives a kernel with a signature as it was compiled. Without one only other kernels call it."""
        return (lambda kernel: getattr(LIBRARY, kernel.__name__)) if signature else lambda kernel: kernel

else:
    import logging

    from numba import njit, types
    from numba.extending import intrinsic

    from local_log import kernel_cache  # noqa: F401  # before the first kernel, for code that is shipped in a zip

    logging.getLogger(__name__).info("no library of kernels for this platform and these sources: numba compiles them")
