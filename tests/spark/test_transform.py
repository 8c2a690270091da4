"""Queries and functions that a user names."""

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.reprocess.transform import by_function, by_sql, unchanged
from spark_jobs.source.options import OptionError


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that Python finds, with functions of a user."""
    (tmp_path / "made_by_a_user.py").write_text(
        "def evens(records): return records.where('n % 2 = 0')\ndef number(records): return 7\nthree = 3\n"
    )
    (tmp_path / "needs_another.py").write_text("import that_is_nowhere\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield "made_by_a_user"
    for name in ("made_by_a_user", "needs_another"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["made_by_a_user", "made_by_a_user:", ":evens", "made_by_a_user:odds", "made_by_a_user:three"])
def test_a_name_that_is_no_function_is_refused(module: str, name: str) -> None:
    with pytest.raises(OptionError):
        by_function(name)


def test_a_module_that_is_nowhere_is_refused_and_one_that_fails_is_the_users_own_error(module: str) -> None:
    with pytest.raises(OptionError, match="--py-files"):
        by_function("nowhere.at.all:f")
    with pytest.raises(ModuleNotFoundError, match="that_is_nowhere"):
        by_function("needs_another:f")


@pytest.mark.spark
def test_a_query_selects_from_records_and_a_function_takes_and_gives_a_dataframe(spark: SparkSession, module: str) -> None:
    records = spark.createDataFrame([(n,) for n in range(6)], "n int")
    evens = [(0,), (2,), (4,)]
    assert [tuple(row) for row in by_sql("SELECT n FROM records WHERE n % 2 = 0")(records).collect()] == evens
    assert [tuple(row) for row in by_function(f"{module}:evens")(records).collect()] == evens
    assert unchanged(records) is records
    with pytest.raises(OptionError, match="gave a int"):
        by_function(f"{module}:number")(records)
