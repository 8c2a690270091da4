"""The wheel: what it holds, and that it is enough by itself, in an environment that has nothing but it and what it asks for."""

import json
import os
import sys
import tomllib
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from built_wheel import ROOT, built_wheel
from golden_logs import broker_logs
from installed_wheel import Installed

from local_log import kernel_library
from tiering import __version__

pytestmark = pytest.mark.timeout(900)  # the first time on a machine uv brings 300 MB of packages

Run = Callable[..., str]

LIBRARIES = ("local_log/kernel_libraries/", "tiering/endpoint/kernel_libraries/")
FIND_SPEC = "from importlib.util import find_spec as f"


RUNS = """
import json, sys
from tiering.cli import main
codes = []
for words in json.loads(sys.argv[1]):
    try:
        main(words)
    except SystemExit as end:
        codes.append(end.code)
print(json.dumps({"codes": codes, "numba": "numba" in sys.modules}))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def names(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def sources(*folders: str) -> set[str]:
    return {str(path.relative_to(ROOT)) for folder in folders for path in (ROOT / folder).rglob("*.py")}


def test_it_has_every_module_of_the_product_and_nothing_else_at_the_top(names: set[str]) -> None:
    ours = sources("local_log", "remote", "tiering", "spark_jobs") | {"pyspark_tiering.py"}
    assert ours <= names
    assert {name.split("/")[0] for name in names} == {
        "local_log", "remote", "tiering", "spark_jobs", "pyspark_tiering.py", f"kafka_tiering-{__version__}.dist-info",
    }  # fmt: skip


def test_it_has_what_is_no_code(names: set[str]) -> None:
    assert {
        "tiering/agent/http/overview.html",
        "tiering/metrics/dashboard.json",
        "tiering/metrics/endpoint_dashboard.json",
        "tiering/metrics/alerts.yaml",
        "tiering/agent/kafka-tiering-agent.service",
        "tiering/endpoint/kafka-tiering-endpoint.service",
        "spark_jobs/common/prices.toml",
        "spark_jobs/log4j2.properties",
    } <= names


def test_it_has_every_dag_where_nothing_of_anybody_s_can_be_hidden_by_it(names: set[str]) -> None:
    dags = sources("dags")
    assert dags
    assert {f"tiering/airflow/{dag}" for dag in dags} <= names


def test_it_has_no_test_no_state_and_nothing_that_was_compiled_or_left_lying_about(names: set[str]) -> None:
    odd = ("tests/", "test_", ".tfstate", ".terraform", ".pyc", "__pycache__", ".env", "demo")
    assert [name for name in names if any(part in name for part in odd)] == []


def test_each_file_is_byte_for_byte_the_tree_s(wheel: Path, names: set[str]) -> None:
    with zipfile.ZipFile(wheel) as packed:
        for name in names:
            if ".dist-info/" not in name and not name.startswith(LIBRARIES):
                path = ROOT / name.replace("tiering/airflow/dags/", "dags/")
                assert packed.read(name) == path.read_bytes(), name


def test_it_says_what_it_needs_what_it_may_need_and_what_it_is_found_by(wheel: Path) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    with zipfile.ZipFile(wheel) as packed:
        info = f"kafka_tiering-{__version__}.dist-info"
        metadata, entries = packed.read(f"{info}/METADATA").decode(), packed.read(f"{info}/entry_points.txt").decode()
    needed = [line for line in metadata.splitlines() if line.startswith("Requires-Dist: ") and "extra ==" not in line]
    assert len(needed) == len(project["dependencies"])
    assert {f"Provides-Extra: {extra}" for extra in project["optional-dependencies"]} <= set(metadata.splitlines())
    assert "tiering = tiering.__main__:main" in entries
    assert "[apache_airflow_provider]" in entries


@pytest.fixture
def installed(environment: Installed, tmp_path: Path) -> Run:
    """Runs a program of the environment in an empty folder; gives its output."""
    (tmp_path / "empty").mkdir()
    return partial(environment.run, tmp_path / "empty")


def test_the_command_is_found_and_every_page_of_its_manual_is_there(installed: Run) -> None:
    assert installed("tiering", "--version") == f"tiering {__version__}\n"
    assert "offload" in installed("tiering", "--help")
    every = (
        "from tiering.cli import main; from tiering.command.manual import commands, page; [page(main, w) for w in commands(main)]"
    )
    installed("python", "-c", every)


def test_a_store_is_tried_and_what_is_shipped_is_printed(installed: Run, tmp_path: Path) -> None:
    checks = json.loads(installed("tiering", "doctor", "--archive", tmp_path / "archive", "--output", "json"))
    assert checks
    assert not [check for check in checks if "FAIL" in check.values()]
    assert json.loads(installed("tiering", "metrics", "dashboard"))["panels"]
    assert "groups:" in installed("tiering", "metrics", "alerts")


def test_it_has_the_kernels_for_every_processor_that_it_knows(wheel: Path, names: set[str]) -> None:
    processors = ("linux_x86_64_v2", "linux_x86_64_v4", "linux_aarch64")
    libraries = {f"{folder}{name}.abi3.so" for folder in LIBRARIES for name in processors}
    assert {name for name in names if name.startswith(LIBRARIES)} == libraries
    with zipfile.ZipFile(wheel) as packed:
        assert all(1 << 13 < packed.getinfo(name).file_size < 1 << 18 for name in libraries)


def test_commands_that_read_and_write_records_need_no_numba(installed: Run, tmp_path: Path) -> None:
    if kernel_library.library_name(sys.platform, os.uname().machine, {"SSE42": True}) is None:
        pytest.skip("numba compiles the kernels here")
    logs, archive = broker_logs(tmp_path / "logs", "g-txn-0"), tmp_path / "archive"
    both = ("--log-dir", logs, "--archive", archive)
    run = (
        ("offload", *both),
        ("describe", *both, "g-txn"),
        ("offsets", *both, "--topic", "g-txn", "--time", "0"),
        ("fetch", *both, "--topic", "g-txn", "--partition", "0", "--offset", "0", "--output", "jsonl"),
        ("scrub", "--archive", archive, "--deep"),
        ("restore", "--archive", archive, "--to", tmp_path / "restored"),
        ("log", "dump", logs / "g-txn-0", "--records"),
        ("log", "recover", tmp_path / "restored" / "g-txn-0"),
    )
    told = installed("python", "-c", RUNS, json.dumps(run, default=str)).splitlines()[-1]
    assert json.loads(told) == {"codes": [0] * len(run), "numba": False}


def test_the_endpoint_s_loop_needs_no_numba(installed: Run) -> None:
    if kernel_library.library_name(sys.platform, os.uname().machine, {"SSE42": True}) is None:
        pytest.skip("numba compiles the loop here")
    asked = "from tiering.endpoint.fetch_loop.loading import answer_ready; print(answer_ready(print))"
    assert installed("python", "-c", asked) == "<built-in function answer_ready>\n"


def test_spark_s_source_is_where_spark_looks_for_it(installed: Run) -> None:
    modules = "('pyspark_tiering', 'spark_jobs.source.data_source')"
    origins = installed("python", "-c", f"{FIND_SPEC}; print(*(f(m).origin for m in {modules}))").split()
    assert [Path(origin).name for origin in origins] == ["pyspark_tiering.py", "data_source.py"]
    assert all("site-packages" in origin for origin in origins)


def test_airflow_finds_the_provider_by_its_entry_point(installed: Run) -> None:
    asked = (
        "import json; from importlib.metadata import entry_points as e; (p,) = e(group='apache_airflow_provider'); "
        "print(json.dumps([p.name, p.dist.name, p.load()()]))"
    )
    name, package, info = json.loads(installed("python", "-c", asked))
    assert (name, package, info["package-name"]) == ("provider_info", "kafka-tiering", "kafka-tiering")
    assert info["versions"] == [__version__]
    modules = [m for kind in ("hooks", "operators", "sensors", "triggers") for one in info[kind] for m in one["python-modules"]]
    assert modules
    assert installed("python", "-c", f"{FIND_SPEC}; print([m for m in {modules} if f(m) is None])") == "[]\n"


def test_nothing_is_installed_that_only_an_extra_asks_for(installed: Run) -> None:
    of_numba = (
        () if kernel_library.library_name(sys.platform, os.uname().machine, {"SSE42": True}) is None else ("numba", "llvmlite")
    )
    others = ("pyspark", "airflow", "matplotlib", "s3fs", "aiobotocore", "aiohttp", "gcsfs", "adlfs", "pytest", *of_numba)
    assert installed("python", "-c", f"{FIND_SPEC}; print([m for m in {others} if f(m)])") == "[]\n"
