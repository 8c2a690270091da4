"""A plugin of pytest, `-p wheel_kernels`: its tests run with the wheel's libraries of kernels instead of numba."""

from importlib import import_module
from pathlib import Path

import local_log
from kernel_build.kept import libraries

local_log.__path__.append(str(libraries(Path(__file__).parents[2])[0].parents[1]))
# Only now, as it looks for a library when it is imported.
assert import_module("local_log.compiled").LIBRARY is not None, "no library for this processor, or of other sources"
