"""The kernels as the wheel has them: they pass the tests that hold numba's to Kafka's bytes."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from golden_logs import broker_logs

from kernel_build.kept import libraries
from local_log import compiled, kernel_cache, kernel_library
from tiering.endpoint.fetch_loop import compiled as compiled_loop

ROOT = Path(__file__).parents[2]
FORMATS = ROOT / "tests" / "unit" / "local_log" / "formats"
LOOP = ROOT / "tests" / "unit" / "tiering" / "endpoint" / "fetch_loop"
V2 = {"SSE42": True}


def with_libraries(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """What Python does that finds `wheel_kernels`."""
    if kernel_library.library_name(sys.platform, os.uname().machine, V2) is None:
        pytest.skip("the wheel has no library for this platform")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support")}
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.timeout(600)  # who comes first compiles them
def test_the_formats_are_read_and_written_and_fetches_answered_as_with_numba() -> None:
    tests = [FORMATS / "kernels", FORMATS / "record_batch", FORMATS / "messages", FORMATS / "test_offset_map.py"]
    tests += [LOOP / "test_fetch_loop.py", LOOP / "test_larger_answers.py"]
    done = with_libraries(
        "-m", "pytest", "-p", "wheel_kernels", "-p", "no:cacheprovider", "-q", "-k", "not keys_have_the_md5", *map(str, tests)
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("platform", "machine", "features", "name"),
    [
        ("linux", "x86_64", V2, "linux_x86_64_v2"),
        ("linux", "x86_64", {**V2, "AVX512_SKX": True}, "linux_x86_64_v4"),
        ("linux", "x86_64", {}, None),
        ("linux", "aarch64", {}, "linux_aarch64"),
        ("linux", "riscv64", {}, None),
        ("darwin", "arm64", {}, None),
    ],
)
def test_a_processor_gets_the_library_that_it_can_run(
    platform: str, machine: str, features: dict[str, bool], name: str | None
) -> None:
    assert kernel_library.library_name(platform, machine, features) == name


def test_a_library_that_cannot_be_loaded_is_told_of_and_one_that_is_missing_is_not(tmp_path: Path) -> None:
    folder = tmp_path / "kernel_libraries"
    folder.mkdir()
    look = f"import local_log as l; l.__path__.append({str(tmp_path)!r}); from local_log.compiled import LIBRARY; print(LIBRARY)"
    missing = with_libraries("-c", look)
    assert (missing.stdout, missing.stderr) == ("None\n", "")
    for name in ("linux_x86_64_v2", "linux_x86_64_v4", "linux_aarch64"):
        (folder / f"{name}.abi3.so").write_bytes(b"no library")
    broken = with_libraries("-c", look)
    assert broken.stdout == "None\n"
    assert "library cannot be used" in broken.stderr
    assert str(folder) in broken.stderr


def test_a_library_that_was_cut_is_told_of_and_does_not_end_the_process(tmp_path: Path) -> None:
    copied = shutil.copytree(libraries(ROOT) / "local_log", tmp_path / "local_log")
    look = f"import local_log as l; l.__path__.append({str(copied)!r}); from local_log.compiled import LIBRARY; print(LIBRARY)"
    assert "<module 'local_log.kernel_libraries.linux_" in with_libraries("-c", look).stdout
    for library in copied.rglob("*.so"):
        os.truncate(library, library.stat().st_size // 2)
    cut = with_libraries("-c", look)
    assert (cut.returncode, cut.stdout) == (0, "None\n")
    assert cut.stderr.endswith(".abi3.so is damaged: install kafka-tiering again\n")


@pytest.mark.parametrize("python", ["", "del os.memfd_create; "], ids=["this Python", "a Python for older systems"])
def test_code_that_is_shipped_as_a_zip_brings_its_kernels(python: str, tmp_path: Path) -> None:
    shipped = tmp_path / "kafka_tiering.zip"
    with zipfile.ZipFile(shipped, "w") as packed:
        for folder, pattern in ((ROOT, "local_log/**/*.py"), (libraries(ROOT), "local_log/**/*.so")):
            for file in folder.glob(pattern):
                packed.write(file, file.relative_to(folder))
    asked = (
        f"import os, sys; {python}sys.path.insert(0, sys.argv[1]); "
        "from local_log.formats.record_batch import columns; columns.warm_up(); "
        "child = os.fork() or os._exit(columns.warm_up() or 0); "
        "print(os.waitpid(child, 0)[1], columns.__file__, 'numba' in sys.modules)"
    )
    done = with_libraries("-P", "-c", asked, str(shipped))
    assert done.stdout == f"0 {shipped}/local_log/formats/record_batch/columns.py False\n", done.stderr


def test_where_nothing_compiles_kernels_and_there_are_none_it_is_said_what_to_install(tmp_path: Path) -> None:
    asked = "import sys; sys.modules['numba'] = None; from tiering.cli import main; main()"
    fetched = with_libraries("-c", asked, "fetch", "--log-dir", str(broker_logs(tmp_path, "g-tiny-0")), "--topic", "g-tiny")
    assert (fetched.returncode, fetched.stdout) == (1, "")
    assert fetched.stderr.endswith("): pip install 'kafka-tiering[numba]'\n")
    assert fetched.stderr.count("\n") == 1


def test_every_source_of_a_kernel_is_known() -> None:
    kernels = {Path(str(file)).relative_to(ROOT) for file in kernel_cache.kernel_sources()}
    assert {Path(*source) for source in compiled.SOURCES} == kernels
    declare = "tiering.endpoint.fetch_loop.compiled import"
    loop = [path for path in (ROOT / "tiering" / "endpoint" / "fetch_loop").glob("*.py") if declare in path.read_text()]
    assert {("tiering.endpoint", f"fetch_loop/{path.name}") for path in loop} < set(compiled_loop.SOURCES)


WRONG = {
    "floats": "walk(np.zeros(80), 0, 80, at, headers)",
    "big-endian numbers": "walk(data, 0, 80, at.astype('>u8'), headers)",
    "an array of another number of dimensions": "walk(data, 0, 80, at, headers.ravel())",
    "an array that is not in one piece": "walk(data[::2], 0, 40, at, headers)",
    "an array that may not be written": "walk(data, 0, 80, frozen, headers)",
    "too few arguments": "walk(data, 0, 80, at)",
    "no number": "walk(data, 0.5, 80, at, headers)",
}


@pytest.mark.slow
def test_a_kernel_refuses_arguments_of_another_kind_and_forgets_none_that_it_was_given() -> None:
    asked = "\n".join(
        (
            "import wheel_kernels, sys, numpy as np; from local_log.formats.kernels.scan import walk",
            "data, at, headers = np.zeros(80, np.uint8), np.zeros(2, np.uint64), np.zeros((2, 61), np.uint8)",
            "frozen = at.copy(); frozen.flags.writeable = False",
            "before = [sys.getrefcount(one) for one in (data, at, headers)]",
            f"for wrong in {list(WRONG.values())!r}:",
            "    try: print(wrong, eval(wrong))",
            "    except (TypeError, ValueError, BufferError): pass",
            "assert before == [sys.getrefcount(one) for one in (data, at, headers)]",
            "print(walk(data, 0, 80, at, headers))",
        )
    )
    done = with_libraries("-c", asked)
    assert (done.stdout, done.returncode) == ("(1, 0, 0)\n", 0), done.stderr
