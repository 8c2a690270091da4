"""S3 keeps the promises, against a server on the loopback interface."""

from collections.abc import Callable
from typing import Any

import pytest
from crc32c import crc32c
from s3_servers import Truncates, serving
from store_promises import MIB, ObjectStoreConformance, upload

from local_log.errors import AlreadyExists, Corrupt, Invalid, Unavailable
from remote.store.api import ObjectStore
from remote.store.open import open_backend, open_store
from remote.store.s3.store import S3Store
from remote.store.store_time import store_time_ms


class TestS3(ObjectStoreConformance):
    race_rounds = 2

    @pytest.fixture
    def store(self, s3_bucket: str) -> ObjectStore:
        return open_backend(f"s3://{s3_bucket}/some/prefix/")

    def test_head_gives_the_checksum_of_the_whole_object_however_it_was_sent(self, store: ObjectStore) -> None:
        parts = [bytes(5 * MIB), b"\1" * 5 * MIB, b"end"]
        store.put_if_absent("put", b"body")
        upload(store, "upload", *parts)
        assert store.head("put").crc32c == crc32c(b"body")
        meta = store.head("upload")
        assert (meta.size, meta.crc32c) == (10 * MIB + 3, crc32c(b"".join(parts)))

    def test_a_failed_upload_leaves_no_multipart_upload(self, store: S3Store, s3_client: Any, s3_bucket: str) -> None:
        store.put_if_absent("taken", b"")
        with pytest.raises(AlreadyExists):
            upload(store, "taken", bytes(5 * MIB), b"end")
        with pytest.raises(Corrupt):
            store.upload("other", [bytes(5 * MIB), b"end"], size=5 * MIB + 3, crc32c=1)
        assert "Uploads" not in s3_client.list_multipart_uploads(Bucket=s3_bucket)

    def test_an_upload_that_nobody_ended_is_found_and_freed(self, store: S3Store, s3_client: Any, s3_bucket: str) -> None:
        def start(key: str) -> str:
            return s3_client.create_multipart_upload(Bucket=s3_bucket, Key=key)["UploadId"]

        start("other/prefix/a/key")
        started = {("a/key", start("some/prefix/a/key")), ("a/key", start("some/prefix/a/key")), ("b", start("some/prefix/b"))}
        now_ms = store_time_ms(store, "probe")
        assert list(store.abandoned_uploads("", 0)) == []
        found = list(store.abandoned_uploads("", now_ms + 1))
        assert {(u.key, u.upload_id) for u in found} == started
        assert [u.key for u in store.abandoned_uploads("a/", now_ms + 1)] == ["a/key"] * 2
        for left in (*found, *found):
            store.abort_upload(left)
        assert list(store.abandoned_uploads("", now_ms + 1)) == []
        assert [u["Key"] for u in s3_client.list_multipart_uploads(Bucket=s3_bucket)["Uploads"]] == ["other/prefix/a/key"]

    def test_stores_with_other_prefixes_in_one_bucket_do_not_meet(self, store: ObjectStore, s3_bucket: str) -> None:
        open_store(f"s3://{s3_bucket}/some/prefix-2").put_if_absent("key", b"")
        open_store(f"s3a://{s3_bucket}").put_if_absent("key", b"")
        assert list(store.list("")) == []
        store.put_if_absent("key", b"")
        assert [meta.key for meta in open_store(f"s3://{s3_bucket}").list("")] == [
            "key",
            "some/prefix-2/key",
            "some/prefix/key",
        ]

    def test_a_listing_goes_on_to_the_next_page(self, store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("remote.store.s3.store.listing_page_max", 2)
        for number in range(5):
            store.put_if_absent(f"{number}", b"")
        assert [meta.key for meta in store.list("")] == ["0", "1", "2", "3", "4"]
        assert [meta.key for meta in store.list("", limit=3)] == ["0", "1", "2"]

    def test_a_bucket_that_is_not_there_is_invalid(self, s3_server: str) -> None:
        store = open_backend("s3://no-such-bucket/prefix")
        with pytest.raises(Invalid, match="create the bucket"):
            store.put_if_absent("key", b"")
        with pytest.raises(Invalid, match="create the bucket"):
            list(store.list(""))

    def test_a_bucket_that_vanishes_is_invalid_for_every_verb_that_it_answers(
        self, store: S3Store, s3_client: Any, s3_bucket: str
    ) -> None:
        s3_client.delete_bucket(Bucket=s3_bucket)
        asks: list[Callable[[], Any]] = [
            lambda: store.get("key"),
            lambda: store.get_range("key", 0, 1),
            lambda: list(store.list("")),
            lambda: list(store.list_folders("")),
            lambda: list(store.abandoned_uploads("", 0)),
            lambda: store.put_if_absent("key", b""),
            lambda: upload(store, "key", bytes(5 * MIB), b"end"),
            lambda: store.delete("key"),
        ]
        for ask in asks:
            with pytest.raises(Invalid, match="create the bucket"):
                ask()

    def test_an_object_that_breaks_off_on_its_way_is_unavailable_and_never_given_in_part(
        self, store: S3Store, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        store.put_if_absent("key", bytes(100_000))
        with serving(Truncates) as url:
            monkeypatch.setenv("AWS_ENDPOINT_URL", url)
            broken = S3Store(s3_bucket, "some/prefix")
            with pytest.raises(Unavailable):
                broken.get("key")
            with pytest.raises(Unavailable):
                broken.get_range("key", 10, 90_000)

    def test_an_object_that_is_shorter_than_it_was_is_invalid_by_range(self, store: S3Store) -> None:
        store.put_if_absent("key", bytes(100))
        with pytest.raises(Invalid, match="for \\[50, 150\\); ask for a range inside it"):
            store.get_range("key", 50, 150)

    def test_an_endpoint_where_nobody_listens_is_unavailable_even_for_a_put(
        self, s3_server: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        with pytest.raises(Unavailable):
            S3Store("bucket").put_if_absent("key", b"")

    def test_an_endpoint_that_is_no_address_is_invalid(self, s3_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "localhost")
        with pytest.raises(Invalid, match="AWS_ENDPOINT_URL"):
            S3Store("bucket").put_if_absent("key", b"")
