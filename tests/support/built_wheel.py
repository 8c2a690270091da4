"""The wheel, built as `make wheel` builds it."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def built_wheel(folder: Path) -> Path:
    """The wheel of this tree, made in `folder`."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel
