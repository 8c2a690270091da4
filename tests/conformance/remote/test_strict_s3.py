"""S3 keeps the promises against a server that refuses what moto lets pass."""

import time
from base64 import b64encode
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError
from crc32c import crc32c
from store_promises import MIB, ObjectStoreConformance, upload

from local_log.errors import AlreadyExists, Invalid
from remote.store.api import ObjectStore
from remote.store.open import open_backend, open_store
from remote.store.store_time import store_time_ms

pytestmark = pytest.mark.strict_s3


def encoded(checksum: int) -> str:
    return b64encode(checksum.to_bytes(4, "big")).decode()


class TestStrictS3(ObjectStoreConformance):
    race_rounds = 2
    strange_keys = ("z/é", "z/\U00010000", "ä/1")  # U+FFFF has no place in XML, and this server does not encode it

    @pytest.fixture
    def store(self, strict_bucket: str) -> ObjectStore:
        return open_backend(f"s3://{strict_bucket}/some/prefix")

    def test_the_checksum_of_the_whole_object_is_kept(self, store: ObjectStore) -> None:
        parts = [bytes(5 * MIB), b"end"]
        store.put_if_absent("put", b"body")
        upload(store, "upload", *parts)
        assert store.head("put").crc32c == crc32c(b"body")
        assert store.head("upload").crc32c == crc32c(b"".join(parts))

    def test_an_upload_that_nobody_ended_is_found_by_its_age_and_freed(
        self, store: ObjectStore, strict_client: Any, strict_bucket: str
    ) -> None:
        key = "some/prefix/a/key"
        old = strict_client.create_multipart_upload(Bucket=strict_bucket, Key=key)["UploadId"]
        time.sleep(1.1)  # its clock has whole seconds
        between_ms = store_time_ms(store, "probe")
        young = strict_client.create_multipart_upload(Bucket=strict_bucket, Key=key)["UploadId"]
        assert [(u.key, u.upload_id) for u in store.abandoned_uploads("", between_ms)] == [("a/key", old)]
        assert {u.upload_id for u in store.abandoned_uploads("a/", between_ms + 60_000)} == {old, young}
        assert list(store.abandoned_uploads("b", between_ms + 60_000)) == []
        for left in [*store.abandoned_uploads("", between_ms)] * 2:
            store.abort_upload(left)
        assert [u.upload_id for u in store.abandoned_uploads("", between_ms + 60_000)] == [young]

    def test_a_wrong_secret_key_is_named_as_such(self, strict_bucket: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
        with pytest.raises(Invalid, match="give the secret key that belongs to the access key"):
            open_store(f"s3://{strict_bucket}").get("key")


# What this server is relied on for, asked with boto3 alone.


def test_the_server_honours_if_none_match_on_a_put(strict_client: Any, strict_bucket: str) -> None:
    strict_client.put_object(Bucket=strict_bucket, Key="key", Body=b"first", IfNoneMatch="*")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        strict_client.put_object(Bucket=strict_bucket, Key="key", Body=b"second", IfNoneMatch="*")
    assert strict_client.get_object(Bucket=strict_bucket, Key="key")["Body"].read() == b"first"


def test_the_server_honours_if_none_match_on_a_completion(strict_client: Any, strict_bucket: str) -> None:
    at = {"Bucket": strict_bucket, "Key": "key"}
    started = strict_client.create_multipart_upload(**at)
    request = {**at, "UploadId": started["UploadId"]}
    part = strict_client.upload_part(**request, PartNumber=1, Body=b"late")
    strict_client.put_object(**at, Body=b"first")
    with pytest.raises(ClientError, match="PreconditionFailed"):
        strict_client.complete_multipart_upload(
            **request, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}, IfNoneMatch="*"
        )
    assert strict_client.get_object(**at)["Body"].read() == b"first"


@pytest.fixture
def asked_once(strict_client: Any) -> Iterator[Any]:
    """A client that does not repeat what was refused: the SDK takes BadDigest for a broken line, and waits in between."""
    with closing(boto3.client("s3", config=Config(retries={"mode": "standard", "total_max_attempts": 1}))) as client:
        yield client


def test_the_server_refuses_a_body_that_is_not_what_its_checksum_says(asked_once: Any, strict_bucket: str) -> None:
    request = {"Bucket": strict_bucket, "Key": "key", "Body": b"body", "ChecksumAlgorithm": "CRC32C"}
    with pytest.raises(ClientError, match="BadDigest"):
        asked_once.put_object(**request, ChecksumCRC32C=encoded(crc32c(b"ydob")))
    with pytest.raises(ClientError, match="404"):
        asked_once.head_object(Bucket=strict_bucket, Key="key")


def test_the_server_refuses_a_completion_whose_parts_are_not_what_its_checksum_says(asked_once: Any, strict_bucket: str) -> None:
    at = {"Bucket": strict_bucket, "Key": "key"}
    started = asked_once.create_multipart_upload(**at, ChecksumAlgorithm="CRC32C", ChecksumType="FULL_OBJECT")
    request = {**at, "UploadId": started["UploadId"]}
    checksum = encoded(crc32c(b"body"))
    part = asked_once.upload_part(**request, PartNumber=1, Body=b"body", ChecksumAlgorithm="CRC32C", ChecksumCRC32C=checksum)
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"], "ChecksumCRC32C": checksum}]}
    with pytest.raises(ClientError, match="BadDigest"):
        asked_once.complete_multipart_upload(
            **request, MultipartUpload=parts, ChecksumType="FULL_OBJECT", ChecksumCRC32C=encoded(crc32c(b"ydob"))
        )


def test_two_stores_that_meet_on_one_key_have_one_winner(strict_bucket: str) -> None:
    one, other = (open_store(f"s3://{strict_bucket}/prefix") for _ in range(2))
    upload(one, "key", bytes(5 * MIB), b"one")
    with pytest.raises(AlreadyExists):
        upload(other, "key", bytes(5 * MIB), b"other")
    with pytest.raises(AlreadyExists):
        other.put_if_absent("key", b"other")
    assert one.get_range("key", 5 * MIB, 5 * MIB + 3) == b"one"
