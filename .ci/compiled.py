"""What one run of CI compiles is kept for the next, whose checkout is fresh: `take` before the tests, `keep` after them.

Python's bytecode, also that of packages and that of tests, which pytest rewrites; the kernels' machine code, numba's and the
wheel's, for the same sources and compilers alone; what Hypothesis and the linter of imports have read out of sources.
`take` exits with 1 where nothing is kept.

Bytecode and numba's code are held against size and time of their source. So that these say whether a source is the same in
another checkout, `take` gives each source a time that is made of its contents.
"""

import os
import sys
import tarfile
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[1]
KEPT = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kafka-tiering", "compiled")
OLDEST_TIME = 1_000_000_000
READ = (".hypothesis/constants", ".hypothesis/unicode_data", ".import_linter_cache")


def take() -> bool:
    """Whether anything was kept."""
    for source in _sources():
        time = OLDEST_TIME + int.from_bytes(sha256(source.read_bytes()).digest()[:4], "big") % (1 << 29)
        os.utime(source, (time, time))
    archives = [path for path in (KEPT / "python.tar", _of_kernels()) if path.exists()]
    for path in archives:
        with tarfile.open(path) as archive:
            archive.extractall(ROOT, filter="data")
    return bool(archives)


def keep() -> None:
    """Replaces what was kept before."""
    KEPT.mkdir(parents=True, exist_ok=True)
    _write(KEPT / "python.tar", [*_bytecode(), *(path for name in READ for path in (ROOT / name).rglob("*"))])
    kernels = _of_kernels()
    for outdated in KEPT.glob("kernels-*.tar"):
        if outdated != kernels:
            outdated.unlink()
    ours = [ROOT / "build" / kernels.stem, ROOT / "local_log", ROOT / "tiering" / "endpoint"]
    _write(kernels, [*ours[0].rglob("*"), *(path for folder in ours[1:] for path in folder.rglob("__pycache__/*.nb?"))])


def _sources() -> Iterator[Path]:
    """Ours: packages are in a hidden folder."""
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(folder, name) for name in files if name.endswith(".py"))


def _bytecode() -> Iterator[Path]:
    for path in ROOT.rglob("__pycache__/*.pyc"):
        if (path.parents[1] / f"{path.name.partition('.')[0]}.py").exists():
            yield path


def _of_kernels() -> Path:
    sys.path.insert(0, str(ROOT))
    from kernel_build.kept import folder

    return KEPT / f"{folder(ROOT).name}.tar"


def _write(path: Path, files: Iterable[Path]) -> None:
    arriving = path.with_suffix(f".{os.getpid()}")
    with tarfile.open(arriving, "w") as archive:
        for file in files:
            if file.is_file():
                archive.add(file, file.relative_to(ROOT))
    arriving.rename(path)


if __name__ == "__main__":
    if sys.argv[1:] == ["keep"]:
        keep()
    else:
        sys.exit(not take())
