"""What a user sees of an error of ours in Spark: the sentence that helps, without a traceback of Spark's and ours before it."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

from local_log.errors import Corrupt, NotFound
from spark_jobs.errors import OptionError, error_of

pytestmark = pytest.mark.spark

LINES_MAX = 3
READS: list[tuple[dict[str, str], type[Exception], str]] = [
    ({"subscribe": "g-nowhere"}, NotFound, "topic g-nowhere is not in the archive"),
    (
        {"subscribe": "g-tiny", "startingTimestamp": "yesterday"},
        OptionError,
        "expected ms since 1970, a time such as 2026-11-20T10:00Z",
    ),
    ({"subscribe": "g-tiny", "includeHeaders": "x"}, OptionError, "option includeHeaders is 'x': must be true or false"),
    ({"subscribe": "g-tiny", "startingOffsets": '{"g-tiny":{"0":9}}'}, NotFound, "offset 9 is outside [0, 1)"),
    ({"archive": "/nowhere", "subscribe": "g-tiny"}, NotFound, "/nowhere"),
    ({"archive": "nope://bucket", "subscribe": "g-tiny"}, Exception, "nope"),
]


@pytest.fixture
def damaged(archive: str, tmp_path: Path) -> str:
    """An archive with a damaged segment."""
    folder = Path(shutil.copytree(archive, tmp_path / "archive"))
    segment = sorted((folder / "g-txn").rglob("*.log"))[1]
    segment.chmod(0o644)
    body = bytearray(segment.read_bytes())
    body[5000] ^= 1
    segment.write_bytes(body)
    return str(folder)


def shown(act: Callable[[], Any]) -> tuple[str, Exception]:
    """What is shown, and the error of ours in it."""
    with pytest.raises(PySparkException) as raised:
        act()
    text = str(raised.value)
    assert "Traceback" not in text
    assert len(text.splitlines()) <= LINES_MAX, text
    return text, error_of(raised.value)


@pytest.mark.parametrize(("options", "kind", "sentence"), READS)
def test_a_read_that_cannot_be_shows_what_is_wrong_and_no_traceback(
    spark: SparkSession, archive: str, options: dict[str, str], kind: type[Exception], sentence: str
) -> None:
    text, error = shown(lambda: spark.read.format("tiering").options(**{"archive": archive, **options}).load().collect())
    assert sentence in text
    assert isinstance(error, kind)
    assert sentence in str(error)


def test_damage_that_a_task_finds_is_shown_with_its_object(spark: SparkSession, damaged: str, tmp_path: Path) -> None:
    frame = spark.read.format("tiering").options(archive=damaged, subscribe="g-txn").load().select("value")
    for act in (frame.collect, lambda: frame.write.parquet(str(tmp_path / "out"))):
        text, error = shown(act)
        assert "/segments/" in text
        assert isinstance(error, Corrupt)


def test_a_write_that_is_refused_shows_why(spark: SparkSession, archive: str) -> None:
    rows = spark.createDataFrame([(b"v",)], "value binary")
    text, _ = shown(lambda: rows.write.format("tiering").options(archive=archive, topic="g-tiny").mode("append").save())
    assert "topic g-tiny is archived from a broker's logs" in text


def test_an_error_of_a_users_function_keeps_its_traceback(spark: SparkSession, archive: str) -> None:
    @udf("int", useArrow=False)
    def fails(offset: int) -> int:
        raise ValueError("this is the user's own")

    frame = spark.read.format("tiering").options(archive=archive, subscribe="g-tiny").load()
    with pytest.raises(PySparkException) as raised:
        frame.select(fails("offset")).collect()
    assert "Traceback" in str(raised.value)
    assert "the user's own" in str(raised.value)
    assert error_of(raised.value) is raised.value
    assert "SPARK_HIDE_TRACEBACK" not in os.environ
