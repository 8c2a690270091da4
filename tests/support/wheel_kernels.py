"""A plugin of pytest, `-p wheel_kernels`: its tests run with the wheel's libraries of kernels instead of numba."""

from importlib import import_module
from pathlib import Path

from kernel_build.kept import libraries

for package in ("local_log", "tiering.endpoint"):
    folder = libraries(Path(__file__).parents[2]).joinpath(*package.split("."))
    import_module(package).__path__.append(str(folder))
# Only now, as each looks for a library when it is imported.
for module in ("local_log.compiled", "tiering.endpoint.fetch_loop.compiled"):
    assert import_module(module).LIBRARY is not None, "no library for this processor, or of other sources"
