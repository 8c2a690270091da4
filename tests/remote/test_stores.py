"""What every store promises, as one class that each backend runs; then what is particular to one of them."""

import dataclasses
import io
import itertools
import multiprocessing
import os
import pickle
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any

import pytest
from botocore import exceptions as sdk
from crc32c import crc32c

from local_log.errors import Corrupt
from remote.errors import AlreadyExists, BadAddress, Invalid, NotFound, RemoteError, Unavailable, Unknown
from remote.object_store import Body, ObjectMeta, ObjectStore
from remote.stores import open_store, probe
from remote.stores.folder import FolderStore
from remote.stores.fsspec_store import FsspecStore, upload_bytes_max
from remote.stores.s3 import S3Store, conflict_attempts_max, parts_in_flight_max, parts_max
from remote.stores.shared import key_bytes_max

MIB = 1024 * 1024
_numbers = itertools.count(1)


def upload(store: ObjectStore, key: str, *parts: bytes) -> None:
    body = b"".join(parts)
    store.upload(key, iter(parts), size=len(body), crc32c=crc32c(body))


def race(contestants: int, create: Callable[[int], None]) -> list[int]:
    """Those who created, out of so many threads that start at once and are made to switch often."""
    start = threading.Barrier(contestants)

    def run(number: int) -> bool:
        start.wait()
        try:
            create(number)
        except AlreadyExists:
            return False
        return True

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(contestants) as pool:
            return [number for number, won in enumerate(pool.map(run, range(contestants))) if won]
    finally:
        sys.setswitchinterval(interval)


class ObjectStoreConformance:
    """The promises of `remote.object_store`."""

    race_rounds = 8

    @pytest.fixture
    def store(self) -> ObjectStore:
        raise NotImplementedError

    # reading

    def test_get_gives_what_was_put(self, store: ObjectStore) -> None:
        store.put_if_absent("a/b.json", b"body")
        assert store.get("a/b.json") == b"body"

    @pytest.mark.parametrize("body", [b"bytes", bytearray(b"bytes"), memoryview(b"a bytes")[2:], memoryview(b"bytes")])
    def test_any_bytes_like_body_is_stored_as_its_bytes(self, store: ObjectStore, body: Body) -> None:
        store.put_if_absent("put", body)
        store.upload("upload", [body], size=5, crc32c=crc32c(b"bytes"))
        assert store.get("put") == store.get("upload") == b"bytes"

    def test_an_empty_object_is_an_object(self, store: ObjectStore) -> None:
        store.put_if_absent("put", b"")
        upload(store, "upload")
        assert store.get("put") == store.get("upload") == b""
        assert [meta.size for meta in store.list("")] == [0, 0]
        assert store.get_range("put", 0, 0) == b""

    def test_get_range_gives_exactly_the_bytes_from_start_to_before_end(self, store: ObjectStore) -> None:
        store.put_if_absent("key", b"0123456789")
        for start in range(11):
            for end in range(start, 11):
                assert store.get_range("key", start, end) == b"0123456789"[start:end]

    @pytest.mark.parametrize(("start", "end"), [(0, 11), (9, 11), (10, 11), (11, 11), (20, 30), (5, 4), (-1, 3), (-3, -1)])
    def test_a_range_that_the_object_does_not_have_is_invalid(self, store: ObjectStore, start: int, end: int) -> None:
        store.put_if_absent("key", b"0123456789")
        with pytest.raises(Invalid):
            store.get_range("key", start, end)

    def test_an_object_that_is_not_there_is_not_found(self, store: ObjectStore) -> None:
        store.put_if_absent("folder/object", b"")
        for key in ("missing", "missing/too", "folder", "folder/object2", "folder/object/below"):
            with pytest.raises(NotFound):
                store.get(key)
            with pytest.raises(NotFound):
                store.get_range(key, 0, 1)
            with pytest.raises(NotFound):
                store.get_range(key, 0, 0)
            with pytest.raises(NotFound):
                store.head(key)

    def test_head_gives_the_size_and_if_any_the_checksum_of_the_whole_object(self, store: ObjectStore) -> None:
        body = b"0123456789"
        store.put_if_absent("key", body)
        meta = store.head("key")
        assert (meta.key, meta.size) == ("key", 10)
        assert meta.crc32c in (None, crc32c(body))

    # writing

    def test_put_if_absent_leaves_the_first_object_when_the_key_is_taken(self, store: ObjectStore) -> None:
        store.put_if_absent("a/key", b"first")
        with pytest.raises(AlreadyExists) as raised:
            store.put_if_absent("a/key", b"second")
        assert raised.value.args[0] == "a/key"
        assert store.get("a/key") == b"first"

    def test_upload_leaves_the_first_object_when_the_key_is_taken(self, store: ObjectStore) -> None:
        store.put_if_absent("a/key", b"first")
        with pytest.raises(AlreadyExists) as raised:
            upload(store, "a/key", b"second")
        assert raised.value.args[0] == "a/key"
        assert store.get("a/key") == b"first"

    def test_a_deleted_key_is_free_again(self, store: ObjectStore) -> None:
        store.put_if_absent("key", b"first")
        store.delete("key")
        store.put_if_absent("key", b"second")
        assert store.get("key") == b"second"

    def test_upload_joins_its_parts(self, store: ObjectStore) -> None:
        parts = [os.urandom(5 * MIB), os.urandom(5 * MIB), os.urandom(5 * MIB - 7)]
        upload(store, "a/segment", *parts)
        assert store.get("a/segment") == b"".join(parts)
        assert store.get_range("a/segment", 5 * MIB - 2, 5 * MIB + 2) == parts[0][-2:] + parts[1][:2]
        assert store.head("a/segment").crc32c in (None, crc32c(b"".join(parts)))

    def test_an_upload_of_one_part_may_be_of_any_size(self, store: ObjectStore) -> None:
        upload(store, "key", b"small")
        assert store.get("key") == b"small"

    def test_a_failed_upload_leaves_nothing_and_its_reason_comes_through(self, store: ObjectStore) -> None:
        def parts() -> Iterator[bytes]:
            yield bytes(5 * MIB)
            yield bytes(5 * MIB)
            raise OSError("the disk broke")

        with pytest.raises(OSError, match="the disk broke"):
            store.upload("a/key", parts(), size=15 * MIB, crc32c=0)
        with pytest.raises(NotFound):
            store.get("a/key")
        assert list(store.list("")) == []

    @pytest.mark.parametrize(("size", "checksum"), [(4, 0), (6, 0), (5, 1)])
    def test_an_upload_of_other_bytes_than_promised_is_corrupt(self, store: ObjectStore, size: int, checksum: int) -> None:
        with pytest.raises(Corrupt, match="key"):
            store.upload("key", [b"bytes"], size=size, crc32c=crc32c(b"bytes") ^ checksum)
        assert list(store.list("")) == []

    def test_of_many_that_create_one_key_at_once_exactly_one_wins(self, store: ObjectStore) -> None:
        for key in (f"race/{n}" for n in range(self.race_rounds)):
            winners = race(32, lambda n, key=key: store.put_if_absent(key, b"writer %d" % n))
            assert [b"writer %d" % n for n in winners] == [store.get(key)]

    def test_of_many_that_upload_one_key_at_once_exactly_one_wins(self, store: ObjectStore) -> None:
        winners = race(8, lambda n: upload(store, "race/key", bytes([n]) * 5 * MIB, b"end"))
        assert [bytes([n]) * 5 * MIB + b"end" for n in winners] == [store.get("race/key")]

    # deleting

    def test_deleting_what_is_not_there_counts_as_deleted(self, store: ObjectStore) -> None:
        store.put_if_absent("a/key", b"")
        for key in ("a/key", "a/key", "a", "missing/key"):
            store.delete(key)
        assert list(store.list("")) == []

    # listing

    def test_list_gives_keys_in_the_order_of_their_bytes(self, store: ObjectStore) -> None:
        keys = ["a-b", "a.c/x", "a/0", "a/b/c/d", "a/b/e", "a/z", "a0", "B", "z/é", "z/\U00010000", "z/\uffff", "ä/1"]
        for key in keys:
            store.put_if_absent(key, key.encode())
        assert [(meta.key, meta.size) for meta in store.list("")] == [
            (key, len(key.encode())) for key in sorted(keys, key=str.encode)
        ]

    @pytest.mark.parametrize(
        ("prefix", "keys"),
        [
            ("a/b", ["a/b", "a/bc", "a/bd/e"]),
            ("a/", ["a/b", "a/bc", "a/bd/e", "a/c"]),
            ("a", ["a/b", "a/bc", "a/bd/e", "a/c", "ab"]),
            ("a/bd/", ["a/bd/e"]),
            ("a/b/", []),
            ("missing/", []),
            ("a/c/d", []),
        ],
    )
    def test_list_gives_the_keys_that_start_with_the_prefix(self, store: ObjectStore, prefix: str, keys: list[str]) -> None:
        for key in ("a/b", "a/bc", "a/bd/e", "a/c", "ab", "b"):
            store.put_if_absent(key, b"")
        assert [meta.key for meta in store.list(prefix)] == keys

    @pytest.mark.parametrize("limit", [0, 1, 2, 5, 6, 1_001])
    def test_list_gives_the_first_ones_up_to_its_limit(self, store: ObjectStore, limit: int) -> None:
        keys = ["a", "b/1", "b/2", "b/3", "c"]
        for key in reversed(keys):
            store.put_if_absent(key, b"")
        assert [meta.key for meta in store.list("", limit=limit)] == keys[:limit]

    def test_list_sees_at_once_what_another_handle_has_done(self, store: ObjectStore) -> None:
        other = pickle.loads(pickle.dumps(store))
        assert list(store.list("a/")) == list(store.list_folders("")) == []
        other.put_if_absent("a/1", b"")
        assert [meta.key for meta in store.list("a/")] == ["a/1"]
        assert list(store.list_folders("")) == ["a"]
        other.put_if_absent("a/2", b"")
        assert [meta.key for meta in store.list("a/")] == ["a/1", "a/2"]
        other.delete("a/1")
        assert [meta.key for meta in store.list("a/")] == ["a/2"]
        assert store.head("a/2") == other.head("a/2")

    def test_list_folders_gives_each_next_part_once_and_in_order(self, store: ObjectStore) -> None:
        for key in ("t/b/0/x", "t/b/1/x", "t/a/0/x", "t/a-b/0/x", "t/file", "u/0/x"):
            store.put_if_absent(key, b"")
        assert list(store.list_folders("")) == ["t", "u"]
        assert list(store.list_folders("t/")) == ["a-b", "a", "b"]  # "-" comes before "/"
        assert list(store.list_folders("t/b/")) == ["0", "1"]
        assert list(store.list_folders("t/b/0/")) == list(store.list_folders("missing/")) == []

    def test_list_folders_gives_no_folder_whose_objects_are_all_deleted(self, store: ObjectStore) -> None:
        store.put_if_absent("a/b/c", b"")
        store.put_if_absent("d/e", b"")
        store.delete("a/b/c")
        assert list(store.list_folders("")) == ["d"]

    # all

    @pytest.mark.parametrize("key", ["", "/a", "a/", "a//b", ".", "a/../b", "..", "a/.", "a\0b", "\udc80", "k" * 1_025])
    def test_what_is_no_key_is_refused(self, store: ObjectStore, key: str) -> None:
        for ask in (store.get, store.head, store.delete):
            with pytest.raises(Invalid):
                ask(key)
        with pytest.raises(Invalid):
            store.get_range(key, 0, 1)
        with pytest.raises(Invalid):
            store.put_if_absent(key, b"")
        with pytest.raises(Invalid):
            upload(store, key, b"")

    @pytest.mark.parametrize("prefix", ["/", "/a", "a//", "../", "a/..", "a/../b"])
    def test_a_prefix_that_no_key_can_start_with_is_refused(self, store: ObjectStore, prefix: str) -> None:
        with pytest.raises(Invalid):
            list(store.list(prefix))
        with pytest.raises(Invalid):
            list(store.list_folders("a"))

    def test_a_pickled_store_is_the_same_store(self, store: ObjectStore) -> None:
        store.put_if_absent("key", b"body")
        copy = pickle.loads(pickle.dumps(store))
        assert copy.url == store.url
        assert copy.get("key") == b"body"

    def test_the_probe_passes_and_leaves_nothing(self, store: ObjectStore) -> None:
        probe(store, "probes/1")
        assert list(store.list("")) == []


class TestFolder(ObjectStoreConformance):
    @pytest.fixture
    def store(self, tmp_path: Any) -> ObjectStore:
        return open_store(str(tmp_path / "new" / "archive"))

    def test_of_many_processes_that_create_one_key_at_once_exactly_one_wins(self, store: FolderStore) -> None:
        rounds, writers = 50, 4
        with ProcessPoolExecutor(writers, mp_context=multiprocessing.get_context("spawn")) as pool:
            tries = [
                (key, body, pool.submit(store.put_if_absent, key, body))
                for key in (f"race/{n}" for n in range(rounds))
                for body in (b"writer %d" % n for n in range(writers))
            ]
        winners = [(key, body) for key, body, future in tries if not isinstance(future.exception(), AlreadyExists)]
        assert winners == [(f"race/{n}", store.get(f"race/{n}")) for n in range(rounds)]

    def test_a_listing_passes_over_temporary_files_links_and_names_that_are_no_text(self, store: FolderStore) -> None:
        store.put_if_absent("a/key", b"")
        folder = os.path.join(store.root, "a")
        with open(os.path.join(folder, ".tmp-1-2"), "wb"), open(os.fsencode(folder) + b"/\xff", "wb"):
            pass
        os.symlink(store.root, os.path.join(folder, "loop"))
        os.mkfifo(os.path.join(folder, "pipe"))
        os.mkdir(os.path.join(store.root, "empty"))
        assert [meta.key for meta in store.list("")] == ["a/key"]
        assert list(store.list_folders("")) == ["a"]
        with pytest.raises(NotFound):
            store.get("a/pipe")
        with pytest.raises(Invalid):
            store.get("a/.tmp-1-2")

    def test_no_temporary_file_remains_whether_a_put_wins_loses_or_fails(self, store: FolderStore) -> None:
        store.put_if_absent("key", b"")
        with pytest.raises(AlreadyExists):
            store.put_if_absent("key", b"")
        with pytest.raises(Corrupt):
            store.upload("other", [b"x"], size=1, crc32c=0)
        assert os.listdir(store.root) == ["key"]

    def test_leftovers_with_our_process_id_are_stepped_over(self, store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
        os.makedirs(store.root)
        for number in range(3):
            with open(os.path.join(store.root, f".tmp-{os.getpid()}-{number}"), "wb"):
                pass
        monkeypatch.setattr("remote.stores.folder._counter", itertools.count())
        store.put_if_absent("key", b"body")
        assert [meta.key for meta in store.list("")] == ["key"]

    def test_a_file_is_synced_before_its_link_and_its_folders_after(
        self, store: FolderStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = []
        fsync, link = os.fsync, os.link

        def recording_fsync(descriptor: int) -> None:
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            calls.append("file" if os.path.isfile(path) else os.path.relpath(path, os.path.dirname(store.root)))
            fsync(descriptor)

        def recording_link(source: str, target: str) -> None:
            calls.append("link")
            link(source, target)

        monkeypatch.setattr(os, "fsync", recording_fsync)
        monkeypatch.setattr(os, "link", recording_link)
        store.put_if_absent("a/b/key", b"")
        assert calls == ["file", "link", "archive/a/b", "archive/a", "archive", ".", ".."]
        calls.clear()
        with pytest.raises(AlreadyExists):
            store.put_if_absent("a/b/key", b"")
        assert calls == ["file", "link", "archive/a/b", "archive/a", "archive"]

    @pytest.mark.parametrize(
        ("call", "number", "expected"),
        [
            ("fsync", "EIO", Unavailable),
            ("write", "ENOSPC", Unavailable),
            ("write", "EIO", Unavailable),
            ("link", "EPERM", Invalid),
            ("link", "EIO", Unknown),
        ],
    )
    def test_a_put_that_fails_on_the_disk_says_what_to_do_and_leaves_nothing(
        self, store: FolderStore, monkeypatch: pytest.MonkeyPatch, call: str, number: str, expected: type[RemoteError]
    ) -> None:
        def failing(*_: object) -> None:
            raise OSError(getattr(__import__("errno"), number), number)

        os.makedirs(store.root)
        monkeypatch.setattr(os, call, failing)
        with pytest.raises(expected, match="key"):
            store.put_if_absent("key", b"body")
        assert os.listdir(store.root) == []

    def test_a_read_that_is_not_allowed_says_nothing_of_writing(
        self, store: FolderStore, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def failing(*_: object) -> None:
            raise PermissionError(13, "EACCES")

        store.put_if_absent("key", b"body")
        monkeypatch.setattr(os, "open", failing)
        monkeypatch.setattr(os, "scandir", failing)
        for read in (store.get, store.head, lambda prefix: list(store.list(prefix))):
            with pytest.raises(Invalid, match=r"give a folder that this user may read$"):
                read("key")
        with pytest.raises(Invalid, match="may write"):
            store.put_if_absent("other", b"body")

    def test_a_put_whose_folder_cannot_be_synced_is_unknown(self, store: FolderStore, monkeypatch: pytest.MonkeyPatch) -> None:
        fsync = os.fsync

        def failing_for_folders(descriptor: int) -> None:
            if os.path.isdir(f"/proc/self/fd/{descriptor}"):
                raise OSError(5, "EIO")
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", failing_for_folders)
        for _ in range(2):
            with pytest.raises(Unknown):
                store.put_if_absent("key", b"body")
        assert store.get("key") == b"body"

    def test_a_file_where_a_folder_should_be_is_invalid(self, store: FolderStore) -> None:
        store.put_if_absent("a", b"")
        with pytest.raises(Invalid):
            store.put_if_absent("a/key", b"")


class TestS3(ObjectStoreConformance):
    @pytest.fixture
    def store(self, s3_bucket: str) -> ObjectStore:
        return open_store(f"s3://{s3_bucket}/some/prefix/")

    def test_head_gives_the_checksum_of_the_whole_object_however_it_was_sent(self, store: ObjectStore) -> None:
        parts = [bytes(5 * MIB), b"\1" * 5 * MIB, b"end"]
        store.put_if_absent("put", b"body")
        upload(store, "upload", *parts)
        assert store.head("put").crc32c == crc32c(b"body")
        assert store.head("upload") == ObjectMeta("upload", 10 * MIB + 3, crc32c(b"".join(parts)))

    def test_a_failed_upload_leaves_no_multipart_upload(self, store: S3Store, s3_client: Any, s3_bucket: str) -> None:
        store.put_if_absent("taken", b"")
        with pytest.raises(AlreadyExists):
            upload(store, "taken", bytes(5 * MIB), b"end")
        with pytest.raises(Corrupt):
            store.upload("other", [bytes(5 * MIB), b"end"], size=5 * MIB + 3, crc32c=1)
        assert "Uploads" not in s3_client.list_multipart_uploads(Bucket=s3_bucket)

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
        monkeypatch.setattr("remote.stores.s3.listing_page_max", 2)
        for number in range(5):
            store.put_if_absent(f"{number}", b"")
        assert [meta.key for meta in store.list("")] == ["0", "1", "2", "3", "4"]
        assert [meta.key for meta in store.list("", limit=3)] == ["0", "1", "2"]

    def test_a_bucket_that_is_not_there_is_invalid(self, s3_server: str) -> None:
        store = open_store("s3://no-such-bucket/prefix")
        with pytest.raises(Invalid, match="make the bucket"):
            store.put_if_absent("key", b"")
        with pytest.raises(Invalid, match="make the bucket"):
            list(store.list(""))

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


class ScriptedS3:
    """An S3 client that gives each request the next of its answers, raising those that are errors."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.requests: list[str] = []
        self.attempts: set[int] = set()

    def __call__(self, config: Any) -> "ScriptedS3":
        self.attempts.add(config.retries["total_max_attempts"])
        return self

    def __getattr__(self, verb: str) -> Callable[..., Any]:
        def ask(**_: Any) -> Any:
            self.requests.append(verb)
            answer = self.answers.pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer

        return ask


def refusal(status: int, code: str) -> sdk.ClientError:
    return sdk.ClientError({"Error": {"Code": code, "Message": "…"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")


lost_answers = [
    sdk.ReadTimeoutError(endpoint_url="…"),
    sdk.ConnectionClosedError(endpoint_url="…"),
    sdk.HTTPClientError(error="…"),
    refusal(500, "InternalError"),
    refusal(503, "SlowDown"),
    refusal(504, "GatewayTimeout"),
]
nothing_changed = [
    sdk.EndpointConnectionError(endpoint_url="…"),
    sdk.ConnectTimeoutError(endpoint_url="…"),
    refusal(400, "RequestTimeout"),
    refusal(400, "BadDigest"),
    refusal(404, "NoSuchKey"),
    refusal(429, "TooManyRequests"),
]
to_be_fixed = [
    refusal(403, "AccessDenied"),
    refusal(404, "NoSuchBucket"),
    refusal(301, "PermanentRedirect"),
    refusal(400, "InvalidArgument"),
    refusal(501, "NotImplemented"),
    sdk.NoCredentialsError(),
    sdk.ParamValidationError(report="…"),
]


def _name(error: Exception) -> str:
    return error.response["Error"]["Code"] if isinstance(error, sdk.ClientError) else type(error).__name__


class TestS3Errors:
    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            *((error, Unknown) for error in lost_answers),
            *((error, Unavailable) for error in nothing_changed),
            *((error, Invalid) for error in to_be_fixed),
            (refusal(412, "PreconditionFailed"), AlreadyExists),
        ],
        ids=lambda value: _name(value) if isinstance(value, Exception) else None,
    )
    def test_a_put_is_sent_once_and_its_failure_names_the_remedy(self, error: Exception, expected: type[RemoteError]) -> None:
        client = ScriptedS3(error)
        with pytest.raises(expected, match="key") as raised:
            S3Store("bucket", client=client).put_if_absent("key", b"")
        assert type(raised.value) is expected
        assert raised.value.__cause__ is error
        assert client.requests == ["put_object"]
        assert client.attempts == {1}

    @pytest.mark.parametrize("error", lost_answers, ids=_name)
    def test_a_read_whose_answer_was_lost_is_unavailable(self, error: Exception) -> None:
        client = ScriptedS3(error, error, error, error)
        store = S3Store("bucket", client=client)
        with pytest.raises(Unavailable):
            store.get("key")
        with pytest.raises(Unavailable):
            store.head("key")
        with pytest.raises(Unavailable):
            next(store.list(""))
        with pytest.raises(Unavailable):
            store.delete("key")
        assert client.attempts != {1}

    def test_a_put_is_sent_again_after_a_conflict_with_growing_waits(self) -> None:
        waits: list[float] = []
        client = ScriptedS3(refusal(409, "ConditionalRequestConflict"), refusal(409, "ConditionalRequestConflict"), {})
        S3Store("bucket", client=client, sleep=waits.append).put_if_absent("key", b"")
        assert client.requests == ["put_object"] * 3
        assert waits == [0.05, 0.1]

    def test_a_put_that_meets_only_conflicts_is_unavailable(self) -> None:
        waits: list[float] = []
        client = ScriptedS3(*[refusal(409, "ConditionalRequestConflict")] * conflict_attempts_max)
        with pytest.raises(Unavailable):
            S3Store("bucket", client=client, sleep=waits.append).put_if_absent("key", b"")
        assert len(waits) == conflict_attempts_max - 1

    @pytest.mark.parametrize(
        ("error", "expected"),
        [
            (refusal(412, "PreconditionFailed"), AlreadyExists),
            (refusal(409, "ConditionalRequestConflict"), Unavailable),
            (refusal(500, "InternalError"), Unknown),
            (sdk.ReadTimeoutError(endpoint_url="…"), Unknown),
            (refusal(404, "NoSuchUpload"), Unavailable),
            (refusal(400, "EntityTooSmall"), Invalid),
        ],
        ids=lambda value: _name(value) if isinstance(value, Exception) else None,
    )
    def test_a_completion_that_fails_is_sent_once_and_its_parts_are_freed(
        self, error: Exception, expected: type[RemoteError]
    ) -> None:
        client = ScriptedS3({"UploadId": "1"}, {"ETag": "a"}, {"ETag": "b"}, error, {})
        with pytest.raises(expected):
            upload(S3Store("bucket", client=client), "key", b"a", b"b")
        assert client.requests[3:] == ["complete_multipart_upload", "abort_multipart_upload"]

    def test_an_upload_that_cannot_be_aborted_says_so_beside_its_reason(self) -> None:
        client = ScriptedS3({"UploadId": "1"}, {"ETag": "a"}, {"ETag": "b"}, refusal(500, ""), refusal(403, ""))
        with pytest.raises(Unknown) as raised:
            upload(S3Store("bucket", client=client), "key", b"a", b"b")
        assert "multipart upload 1" in raised.value.__notes__[0]

    def test_a_composite_checksum_is_not_taken_for_that_of_the_whole_object(self) -> None:
        client = ScriptedS3({"ContentLength": 7, "ChecksumCRC32C": "AAAAAA==-3"})
        assert S3Store("bucket", client=client).head("key") == ObjectMeta("key", 7, None)

    def test_a_range_that_is_not_kept_to_is_not_read(self) -> None:
        client = ScriptedS3({"ContentLength": 10**9, "Body": io.BytesIO()})
        with pytest.raises(Invalid):
            S3Store("bucket", client=client).get_range("key", 0, 5)

    def test_an_object_has_no_more_parts_than_s3_allows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("remote.stores.s3.parts_max", 2)
        client = ScriptedS3({"UploadId": "1"}, {"ETag": "a"}, {"ETag": "b"}, {})
        with pytest.raises(Invalid, match="parts"):
            upload(S3Store("bucket", client=client), "key", b"a", b"b", b"c")
        assert client.requests[-1] == "abort_multipart_upload"
        assert parts_max == 10_000

    def test_no_more_parts_than_allowed_are_held_at_once(self) -> None:
        gate = GatedS3()
        read = 0

        def parts() -> Iterator[bytes]:
            nonlocal read
            for _ in range(20):
                read += 1
                yield b"x"

        store = S3Store("bucket", client=lambda _: gate)
        with ThreadPoolExecutor(1) as pool:
            done = pool.submit(store.upload, "key", parts(), size=20, crc32c=crc32c(b"x" * 20))
            assert gate.full.wait(10)
            assert not done.done()
            assert read <= parts_in_flight_max + 1
            gate.opened.set()
            done.result()
        assert read == 20
        assert gate.most == parts_in_flight_max


class GatedS3:
    """An S3 client that holds parts back until it is opened, and counts how many it had at once."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.full = threading.Event()
        self.turn = threading.Lock()
        self.now = self.most = 0

    def create_multipart_upload(self, **_: Any) -> dict[str, str]:
        return {"UploadId": "1"}

    def upload_part(self, **_: Any) -> dict[str, str]:
        with self.turn:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == parts_in_flight_max:
                self.full.set()
        assert self.opened.wait(10)
        with self.turn:
            self.now -= 1
        return {"ETag": "a"}

    def complete_multipart_upload(self, **_: Any) -> None:
        pass


class TestMemory(ObjectStoreConformance):
    race_rounds = 300  # memory:// by itself lets two win about one round in thirty

    @pytest.fixture
    def store(self) -> ObjectStore:
        return open_store(f"memory://archive-{next(_numbers)}/prefix")

    def test_an_upload_larger_than_a_segment_can_be_is_refused_before_it_is_read(self, store: ObjectStore) -> None:
        with pytest.raises(Invalid, match="smaller"):
            store.upload("key", iter(()), size=upload_bytes_max + 1, crc32c=0)


class TestFsspecOverS3(ObjectStoreConformance):
    """An asynchronous file system with a listing cache and errors of its own."""

    @pytest.fixture
    def store(self, s3_bucket: str) -> ObjectStore:
        return FsspecStore(f"s3://{s3_bucket}/prefix")

    def test_a_bucket_that_is_not_there_is_invalid_for_a_put(self, s3_server: str) -> None:
        with pytest.raises(Invalid, match="make the bucket"):
            FsspecStore("s3://no-such-bucket/prefix").put_if_absent("key", b"")


class TestOpening:
    @pytest.mark.parametrize(
        ("url", "kind", "name"),
        [
            ("/archive", FolderStore, "file:///archive"),
            ("/archive/", FolderStore, "file:///archive"),
            ("file:///archive", FolderStore, "file:///archive"),
            ("s3://bucket", S3Store, "s3://bucket/"),
            ("s3://bucket/a/b/", S3Store, "s3://bucket/a/b"),
            ("s3a://bucket/a", S3Store, "s3://bucket/a"),
            ("S3://bucket/a", S3Store, "s3://bucket/a"),
            ("memory://a/b", FsspecStore, "memory://a/b"),
        ],
    )
    def test_a_url_names_its_store(self, url: str, kind: type, name: str) -> None:
        store = open_store(url)
        assert type(store) is kind
        assert store.url == name

    def test_a_relative_path_is_taken_from_where_the_process_started(
        self, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert open_store("archive").url == f"file://{tmp_path}/archive"

    @pytest.mark.parametrize(
        "url",
        [
            "",
            "s3://",
            "s3:///prefix",
            "s3:/bucket/prefix",
            "s3://bucket/a/../b",
            "file:/folder",
            "file://host/folder",
            "nonesuch://bucket",
            "://bucket",
            "local:///folder",
            "simplecache::s3://bucket/a",
            "sftp://host/folder",
        ],
    )
    def test_an_address_that_cannot_be_used_is_a_bad_one_and_named(self, url: str) -> None:
        with pytest.raises(BadAddress) as raised:
            open_store(url)
        message = str(raised.value)
        assert repr(url) in message or "a/../b" in message
        assert ";" in message  # what follows is what would do

    @pytest.mark.parametrize(
        ("protocol", "package"), [("gs", "gcsfs"), ("gcs", "gcsfs"), ("abfs", "adlfs"), ("abfss", "adlfs"), ("az", "adlfs")]
    )
    def test_an_address_whose_package_is_missing_names_the_package(
        self, monkeypatch: pytest.MonkeyPatch, protocol: str, package: str
    ) -> None:
        def missing(_: str) -> None:
            raise ImportError("install something")

        monkeypatch.setattr("fsspec.get_filesystem_class", missing)
        with pytest.raises(BadAddress, match=f"install the package {package}$") as raised:
            open_store(f"{protocol}://bucket/prefix")
        assert "give" not in str(raised.value)

    def test_a_password_in_a_url_is_refused_and_not_repeated(self) -> None:
        with pytest.raises(Invalid) as raised:
            open_store("s3://key:secret@bucket/prefix")
        assert "secret" not in str(raised.value)

    def test_the_longest_key_is_taken(self, tmp_path: Any) -> None:
        key = "/".join(["k" * 100] * 10 + ["k" * 14])
        assert len(key) == key_bytes_max
        store = open_store(str(tmp_path))
        store.put_if_absent(key, b"")
        assert [meta.key for meta in store.list("")] == [key]


@dataclasses.dataclass
class Careless:
    """A store that ignores the put-if-absent condition, as rclone's S3 server does."""

    url: str = "careless://archive"
    objects: dict[str, bytes] = dataclasses.field(default_factory=dict)

    def put_if_absent(self, key: str, body: bytes) -> None:
        self.objects[key] = body

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)


class TestProbe:
    def test_a_store_that_ignores_the_condition_is_refused_and_left_clean(self) -> None:
        store: Any = Careless()
        with pytest.raises(Invalid, match="If-None-Match"):
            probe(store, "probe")
        assert store.objects == {}

    def test_a_key_that_is_taken_proves_nothing_and_is_kept(self, tmp_path: Any) -> None:
        store = open_store(str(tmp_path))
        store.put_if_absent("probe", b"mine")
        with pytest.raises(Invalid, match="fresh"):
            probe(store, "probe")
        assert store.get("probe") == b"mine"
