"""What fsspec reaches keeps the promises: a file system in memory and an asynchronous one."""

import itertools
from collections.abc import Iterator
from functools import cache

import pytest
from botocore.loaders import create_loader
from store_promises import ObjectStoreConformance

from local_log.errors import Invalid
from remote.store.api import ObjectStore
from remote.store.fsspec.store import FsspecStore, upload_bytes_max
from remote.store.open import open_backend

_numbers = itertools.count(1)


class TestMemory(ObjectStoreConformance):
    contestants = 8
    race_rounds = 300  # memory:// by itself lets two win about one round in thirty, with more threads at once in fewer

    @pytest.fixture
    def store(self) -> ObjectStore:
        return open_backend(f"memory://archive-{next(_numbers)}/prefix")

    def test_an_upload_larger_than_a_segment_can_be_is_refused_before_it_is_read(self, store: ObjectStore) -> None:
        with pytest.raises(Invalid, match="smaller"):
            store.upload("key", iter(()), size=upload_bytes_max + 1, crc32c=0)


class TestFsspecOverS3(ObjectStoreConformance):
    """An asynchronous file system with a listing cache and errors of its own."""

    race_rounds = 2

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def _services_read_once(cls) -> Iterator[None]:
        """A file system is made in each test: what its SDK reads of all of AWS's services takes longer than the test."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("botocore.session.create_loader", cache(create_loader))
            yield

    @pytest.fixture
    def store(self, s3_bucket: str) -> ObjectStore:
        return FsspecStore(f"s3://{s3_bucket}/prefix")

    def test_a_bucket_that_is_not_there_is_invalid_for_a_put(self, s3_server: str) -> None:
        with pytest.raises(Invalid, match="create the bucket"):
            FsspecStore("s3://no-such-bucket/prefix").put_if_absent("key", b"")
