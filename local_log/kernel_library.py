"""Finds the library of a package's kernels for this processor: an extension module that the wheel has, installed or as a zip.

It needs neither numba nor llvmlite: loading it takes a millisecond, loading numba a third of a second. It is imported as any
module of its package is, from the package's own folder and never from one for caches; out of a zip, which Spark ships to its
executors, it is loaded from memory.

Its file ends with a digest of what comes before, where the system does not look: a library that was cut would end the process.
"""

import hashlib
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any, Final

FOLDER: Final = "kernel_libraries"
"""The package of the libraries, in the package whose kernels they have; `kernel_build` puts it into the wheel."""
SUFFIX: Final = ".abi3.so"
_DIGEST_BYTES: Final = 32

Source = tuple[str, str]
"""A package, and a file of it."""


def library_name(platform: str, machine: str, features: dict[str, bool]) -> str | None:
    """The library for a processor with these features, as numpy names them; None if the wheel has none."""
    if platform != "linux":
        return None
    if machine == "aarch64":
        return "linux_aarch64"
    if machine != "x86_64" or not features.get("SSE42"):
        return None
    return "linux_x86_64_v4" if features.get("AVX512_SKX") else "linux_x86_64_v2"


def library(package: str, sources: Sequence[Source]) -> ModuleType | None:
    """The library of a package that was compiled of these sources as they are now, None if there is none.

    One that is there and cannot be loaded is logged.
    """
    name = library_name(sys.platform, os.uname().machine, _features())
    if name is None or SUFFIX not in EXTENSION_SUFFIXES:
        return None
    try:
        found = _loaded(package, name)
        return found if found is not None and sources_digest(sources) == found.SOURCES else None
    except (ImportError, OSError) as e:
        import logging

        logging.getLogger(__name__).warning("numba compiles the kernels, as their library cannot be used: %s", e)
        return None


def sources_digest(sources: Sequence[Source]) -> str:
    """Of all that is compiled: kernels, which are inlined into each other, and their constants. Raises OSError."""
    digest = hashlib.sha256()
    for package, file in sources:
        digest.update(_read(package, file))
    return digest.hexdigest()


def with_digest(body: bytes) -> bytes:
    """A library as its file has it."""
    return body + hashlib.sha256(body).digest()


def _features() -> dict[str, bool]:
    try:
        found: dict[str, bool] = import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):  # numpy's own, and not promised: without it the library for every processor will do
        return {"SSE42": True}
    return found


def _loaded(package: str, name: str) -> ModuleType | None:
    full_name, spec = f"{package}.{FOLDER}.{name}", None
    with suppress(ModuleNotFoundError):
        spec = find_spec(full_name)
    if spec is not None and spec.origin is not None:
        with open(spec.origin, "rb") as file:
            _check(spec.origin, file.read())
        return import_module(full_name)
    file_name = os.path.join(FOLDER, f"{name}{SUFFIX}")
    try:
        body = _read(package, file_name)
    except OSError:  # a checkout
        return None
    _check(file_name, body)
    return _from_memory(full_name, body)


def _check(file: str, body: bytes) -> None:
    if with_digest(body[:-_DIGEST_BYTES]) != body:
        raise ImportError(f"{file} is damaged: install kafka-tiering again")


def _from_memory(full_name: str, body: bytes) -> ModuleType:
    """The descriptor stays open: for the system a library is the one that it has loaded by this name before."""
    descriptor = _descriptor(full_name)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(body)
    path = f"/proc/self/fd/{descriptor}"
    spec = spec_from_file_location(full_name, path, loader=ExtensionFileLoader(full_name, path))
    assert spec is not None
    found = module_from_spec(spec)
    assert spec.loader is not None
    spec.loader.exec_module(found)
    return found


def _descriptor(name: str) -> int:
    """Of a file without a place in a folder."""
    try:
        return os.memfd_create(name)
    except (AttributeError, OSError):  # a Python that was built for older systems, as those of conda; a sandbox that refuses it
        import tempfile

        with tempfile.TemporaryFile() as file:
            return os.dup(file.fileno())


def _read(package: str, file: str) -> bytes:
    module: Any = sys.modules[package]
    body: bytes = module.__spec__.loader.get_data(os.path.join(os.path.dirname(module.__file__), file))
    return body
