import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from local_log.kernel_cache import kernel_sources

ROOT = Path(__file__).parents[3]
BESIDE = "local_log/formats/kernels/__pycache__"
MANY, FEW = "local_log.formats.kernels.decode", "local_log.formats.kernels.scan"
"""Modules that compile kernels which are inlined into each other, in seconds, and two small ones."""


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code as executors get it, in a folder that nobody else has."""
    zipped = tmp_path_factory.mktemp("shipped") / "code.whl"
    with zipfile.ZipFile(zipped, "w") as z:
        for file in sorted((ROOT / "local_log").rglob("*.py")):
            z.write(file, file.relative_to(ROOT))
    return zipped


def compiled(code: Path, tmp_path: Path, module: str = FEW, **environment: str) -> dict[Path, int]:
    """Imports kernels from `code` in a process of its own; gives what there is of compiled code then, and since when."""
    cleared = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "NUMBA_CACHE_DIR", "PYTHONPATH")}
    env = {**cleared, "PYTHONPATH": str(code), "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path), **environment}
    compiling = f"import {module} as c; print(c.__file__)"
    done = subprocess.run([sys.executable, "-c", compiling], env=env, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(code))
    return {f: f.stat().st_mtime_ns for f in tmp_path.rglob("*.nb?")}


def folder_of(files: dict[Path, int]) -> Path:
    (folder,) = {f.parent for f in files}
    return folder


@pytest.mark.slow
def test_code_in_a_zip_is_compiled_once_wherever_the_zip_lies(shipped: Path, tmp_path: Path) -> None:
    first = compiled(shipped, tmp_path, MANY)
    assert folder_of(first).parent == tmp_path / ".cache" / "kafka-tiering"
    elsewhere = tmp_path / "another.zip"
    elsewhere.write_bytes(shipped.read_bytes())
    assert compiled(elsewhere, tmp_path, MANY) == first


@pytest.mark.slow
def test_a_user_without_a_home_to_write_in_compiles_to_a_temporary_folder_of_his(shipped: Path, tmp_path: Path) -> None:
    folder = folder_of(compiled(shipped, tmp_path, HOME="/dev/null", TMPDIR=str(tmp_path)))
    assert folder.parent == tmp_path / f"kafka-tiering-{os.getuid()}"
    assert folder.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.slow
def test_the_folder_that_the_user_names_comes_first(shipped: Path, tmp_path: Path) -> None:
    assert folder_of(compiled(shipped, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "named"))).parent == tmp_path / "named"


@pytest.mark.slow
def test_code_in_a_plain_folder_is_compiled_beside_itself(shipped: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(shipped) as z:
        z.extractall(tmp_path / "plain")
    assert folder_of(compiled(tmp_path / "plain", tmp_path)) == tmp_path / "plain" / BESIDE


@pytest.mark.slow
def test_code_that_lies_where_nobody_may_write_is_compiled_all_the_same(shipped: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(shipped) as z:
        z.extractall(tmp_path / "plain")
    (tmp_path / "plain" / BESIDE).write_text("no folder can be made in place of this file")
    folder = folder_of(compiled(tmp_path / "plain", tmp_path, HOME="/dev/null", TMPDIR=str(tmp_path)))
    assert folder.parent == tmp_path / f"kafka-tiering-{os.getuid()}"


def test_the_place_goes_by_every_source_that_is_compiled() -> None:
    sources = [ROOT / "local_log" / "formats" / "header_layout.py", *(ROOT / "local_log").rglob("*.py")]
    compiled = {str(f) for f in sources if "@njit(" in f.read_text()} | {str(sources[0])}
    assert len(compiled) > 5
    assert compiled <= {str(f) for f in kernel_sources()}
