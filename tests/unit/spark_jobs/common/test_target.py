"""Where jobs write."""

import sys

import pytest
from fsspec.registry import _registry

from spark_jobs.common.target import Target
from spark_jobs.errors import OptionError


@pytest.mark.parametrize("url", ["s3://bucket/parquet", "s3a://bucket/parquet"])
def test_a_target_whose_package_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.delitem(_registry, url.partition("://")[0], raising=False)
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(OptionError, match=r"; pip install 'kafka-tiering\[s3fs\]'$"):
        Target(url).names(".parquet")
