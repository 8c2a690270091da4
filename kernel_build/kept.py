"""The libraries of kernels as they were compiled last, in `build/` of the checkout: compiling them takes half a minute."""

import fcntl
import shutil
import subprocess
import sys
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Final

_SOURCES: Final = (
    *("kernel_build/*.py", "local_log/kernel_library.py", "local_log/compiled.py"),
    *("local_log/formats/kernels/*.py", "local_log/formats/header_layout.py"),
    *("tiering/endpoint/fetch_loop/*.py", "local_log/checked_files.py"),
)
_COMPILERS: Final = ("numba", "llvmlite", "ziglang")


def libraries(root: Path) -> Path:
    """The folder that has the libraries as they lie in the wheel, compiled unless they are there. Raises CalledProcessError."""
    kept = folder(root)
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (kept / "is-whole").exists():
            shutil.rmtree(kept / "libraries", ignore_errors=True)
            # In a process of its own: hatch may have loaded numba with other settings.
            subprocess.run([sys.executable, "-m", "kernel_build.compile", kept / "libraries"], cwd=root, check=True)
            (kept / "is-whole").touch()
    return kept / "libraries"


def folder(root: Path) -> Path:
    """Where they are kept: the name depends on all that the libraries are made of, and by."""
    return root / "build" / f"kernels-{_digest(root)[:16]}"


def _digest(root: Path) -> str:
    digest = sha256(" ".join(version(name) for name in _COMPILERS).encode())
    for path in sorted(path for pattern in _SOURCES for path in root.glob(pattern)):
        digest.update(path.read_bytes())
    return digest.hexdigest()
