"""Puts the libraries of kernels into the wheel; see `kernel_build`. An editable install has none: numba compiles there."""

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).parent))


class CustomBuildHook(BuildHookInterface):
    """Hatch's interface of a build hook."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compiles the libraries, unless they were compiled from these sources before, and adds them to the wheel."""
        if version == "editable":
            return
        from kernel_build.kept import libraries

        folder = libraries(Path(self.root))
        for library in folder.rglob("*.so"):
            build_data["force_include"][str(library)] = str(library.relative_to(folder))
