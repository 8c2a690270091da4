"""Work spread over executors; failures come back as values."""

import pytest
from pyspark.sql import SparkSession

from local_log.errors import Corrupt
from spark_jobs.common.tasks import TaskLimits, run_tasks

pytestmark = pytest.mark.spark


def test_every_item_is_done_once(spark: SparkSession) -> None:
    done, error = run_tasks("test", list(range(20)), lambda n: n * n, lambda n: n)
    assert sorted(done) == [n * n for n in range(20)]
    assert error is None


def test_no_items_need_no_master() -> None:
    assert run_tasks("test", [], lambda n: n, lambda n: 1, limits=TaskLimits("no such master")) == ([], None)


def test_an_item_that_fails_stops_no_other_and_corruption_is_told_first(spark: SparkSession) -> None:
    def act(n: int) -> int:
        if n % 4 == 0:
            raise Corrupt("wrong CRC", file="segment", position=n) if n == 8 else FileNotFoundError(n)
        return n

    done, error = run_tasks("test", list(range(12)), act, lambda n: 1)
    assert sorted(done) == [n for n in range(12) if n % 4]
    assert isinstance(error, Corrupt)
    assert error.__notes__ == ["3 of 12 parts failed"]
