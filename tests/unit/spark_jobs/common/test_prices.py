"""The price table, and a user's in its place."""

import re

import pytest

from spark_jobs.common.prices import prices_of, table
from spark_jobs.errors import OptionError

OURS = """
[cellar]
schemes = ["s3"]
as_of = 2026-01-31
region = "below the office"
reads_per_1000 = 1
writes_per_1000 = 2.5
retrieval_per_gb = 0
egress_per_gb = 0.25
"""


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("/data/archive", "folder"),
        ("file:///data/archive", "folder"),
        ("s3://bucket/prefix", "s3-standard"),
        ("S3A://bucket/prefix", "s3-standard"),
        ("gs://bucket", "gcs-standard"),
        ("abfs://container@account/prefix", "azure-hot"),
    ],
)
def test_a_url_has_the_prices_of_its_stores_usual_class(url: str, name: str) -> None:
    assert prices_of(table(), url).name == name


def test_what_was_not_held_against_a_price_list_is_named() -> None:
    ours = table()
    assert ours["gcs-standard"].unverified == ()
    assert ours["s3-standard"].unverified == ("egress_per_gb",)
    assert table(OURS)["cellar"].unverified == ()


def test_a_class_that_is_named_comes_before_the_url() -> None:
    assert prices_of(table(), "s3://bucket", "s3-glacier-ir").retrieval_per_gb > 0


def test_a_users_table_comes_before_ours() -> None:
    cellar = prices_of(table(OURS), "s3://bucket")
    assert (cellar.name, cellar.as_of.isoformat(), cellar.writes_per_1000) == ("cellar", "2026-01-31", 2.5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no storage class"),
        ("cellar = ", "not TOML"),
        ("cellar = 1", "'cellar' have to state"),
        (OURS.replace("region", "place"), "'cellar' have to state"),
        (OURS.replace("2.5", "-1"), "writes_per_1000 of 'cellar' is -1"),
        (OURS.replace("2.5", "true"), "writes_per_1000 of 'cellar' is True"),
        (OURS + 'unverified = ["price"]', "unverified of 'cellar' names price"),
        (OURS.replace("2026-01-31", '"soon"'), "as_of of 'cellar' is 'soon'"),
    ],
)
def test_a_table_that_is_none_is_refused_with_what_is_wrong(text: str, message: str) -> None:
    with pytest.raises(OptionError, match=re.escape(message)):
        table(text)


def test_a_store_without_prices_is_refused_and_the_classes_are_named() -> None:
    with pytest.raises(OptionError, match=r"'hdfs://host/folder'.*s3-standard"):
        prices_of(table(), "hdfs://host/folder")
    with pytest.raises(OptionError, match=r"'s3-lukewarm'.*s3-standard"):
        prices_of(table(), "s3://bucket", "s3-lukewarm")
