"""A fresh environment that has the wheel and what it asks for, no extras: made once a run, whichever processes share its tests.

What the kernels compile to is kept there too, so that only the first who needs them waits for it.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import quick
from built_wheel import ROOT, built_wheel
from file_lock import alone

_NO_NETWORK = (
    *("error sending request", "dns error", "connection refused", "failed to fetch", "timed out"),
    *("newconnectionerror", "failed to resolve", "connection broken"),
)
"""What uv says where a registry cannot be reached, and what pip does."""


@dataclass(frozen=True)
class Installed:
    """The programs of the environment, and the variables of somebody who has set none of Python's and none of ours."""

    programs: Path
    environment: dict[str, str]

    def start(self, cwd: Path, program: str, *args: object, **pipes: Any) -> "subprocess.Popen[str]":
        """A program of the environment, begun in a folder."""
        command = [str(self.programs / program), *map(str, args)]
        return subprocess.Popen(command, cwd=cwd, env=self.environment, text=True, **pipes)

    def run(self, cwd: Path, program: str, *args: object) -> str:
        """What a program says, which has to end well."""
        process = self.start(cwd, program, *args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = process.communicate(timeout=300)
        assert process.returncode == 0, err
        return out


@contextmanager
def shared(factory: pytest.TempPathFactory) -> Iterator[Installed]:
    """The environment; who comes first makes it, and who goes last removes it. Skips where it cannot be made."""
    quick.starts_a_server()
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "installed"
    users = folder / "users"
    users.mkdir(parents=True, exist_ok=True)
    with alone(folder / "lock"):
        if not (folder / "is-whole").exists():
            _make(folder)
            (folder / "is-whole").touch()
        (users / str(os.getpid())).touch()
    own = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TIERING"))}
    try:
        yield Installed(folder / "venv" / "bin", own)
    finally:
        with alone(folder / "lock"):
            (users / str(os.getpid())).unlink()
            if not any(users.iterdir()):
                shutil.rmtree(folder / "venv")
                (folder / "is-whole").unlink()


def _make(folder: Path) -> None:
    wheel = built_wheel(folder)
    try:
        new_environment(folder / "venv", str(wheel), "--constraints", str(ROOT / "requirements.txt"))
    finally:
        wheel.unlink()


def new_environment(venv: Path, *wanted: str) -> None:
    """Makes an environment with nothing but what is wanted, of wheels alone. Skips where that cannot be."""
    subprocess.run([uv(), "venv", "--quiet", "--clear", "--python", sys.executable, venv], check=True)
    of_wheels = ["--link-mode", "symlink", "--only-binary", ":all:"]  # to copy them takes as long as to look for them
    well([uv(), "pip", "install", "--quiet", "--python", str(venv / "bin" / "python"), *of_wheels, *wanted])
    _share_bytecode(venv)


def _share_bytecode(venv: Path) -> None:
    """Spares Python to compile what this environment has compiled: it looks whether time and size of the source are the same."""
    ours = Path(sysconfig.get_path("purelib"))
    theirs = venv / ours.relative_to(sys.prefix)
    for folder, folders, files in os.walk(theirs):
        compiled = ours / Path(folder).relative_to(theirs) / "__pycache__"
        if "__pycache__" not in folders and compiled.is_dir():
            Path(folder, "__pycache__").mkdir()
            for file in compiled.iterdir():
                if f"{file.name.partition('.')[0]}.py" in files:
                    Path(folder, "__pycache__", file.name).symlink_to(file)


def uv() -> str:
    """The program. Skips where there is none."""
    beside = Path(sys.executable).parent / "uv"
    found = shutil.which("uv") or (str(beside) if beside.exists() else None)
    if found is None:
        pytest.skip("no uv here, which makes an environment in seconds")
    return found


def well(command: Sequence[str], told: str = "") -> str:
    """What an installer prints, which has to end well. Skips where it reaches no registry and has not kept all packages."""
    done = subprocess.run(command, input=told, capture_output=True, text=True, check=False)
    if done.returncode and any(words in done.stderr.lower() for words in _NO_NETWORK):
        pytest.skip("no registry can be reached, and not all packages were kept")
    assert done.returncode == 0, done.stderr
    return done.stdout
