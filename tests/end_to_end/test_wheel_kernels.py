"""The kernels as the wheel has them: they pass the tests that hold numba's to Kafka's bytes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from local_log import compiled

ROOT = Path(__file__).parents[2]
FORMATS = ROOT / "tests" / "unit" / "local_log" / "formats"
V2 = {"SSE42": True}


def with_libraries(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """What Python does that finds `wheel_kernels`."""
    if compiled.library_name(sys.platform, os.uname().machine, V2) is None:
        pytest.skip("the wheel has no library for this platform")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support")}
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, capture_output=True, text=True)


@pytest.mark.slow
@pytest.mark.timeout(600)  # who comes first compiles them
def test_the_formats_are_read_and_written_as_with_numba() -> None:
    tests = [FORMATS / "kernels", FORMATS / "record_batch", FORMATS / "messages", FORMATS / "test_offset_map.py"]
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
    assert compiled.library_name(platform, machine, features) == name


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
