"""What each answer of S3 means, by a client that gives scripted ones; how many parts are in flight."""

import io
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import exceptions as sdk
from crc32c import crc32c
from store_promises import upload

from local_log.errors import AlreadyExists, Invalid, LogError, Unavailable, Unknown, Unreachable
from remote.store.api import AbandonedUpload, ObjectMeta
from remote.store.s3.client import part_attempts_max
from remote.store.s3.store import S3Store, parts_in_flight_max, parts_max


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
    sdk.ConnectTimeoutError(endpoint_url="…"),
    refusal(400, "RequestTimeout"),
    refusal(400, "BadDigest"),
    refusal(404, "NoSuchKey"),
    refusal(409, "ConditionalRequestConflict"),
    refusal(429, "TooManyRequests"),
]
to_be_fixed = [
    refusal(403, "AccessDenied"),
    refusal(403, "InvalidObjectState"),
    refusal(403, "RequestTimeTooSkewed"),
    refusal(404, "NoSuchBucket"),
    refusal(301, "PermanentRedirect"),
    refusal(400, "InvalidArgument"),
    refusal(501, "NotImplemented"),
    refusal(400, "ExpiredToken"),
    sdk.NoCredentialsError(),
    sdk.ProfileNotFound(profile="nobody"),
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
            (sdk.EndpointConnectionError(endpoint_url="…"), Unreachable),
            *((error, Invalid) for error in to_be_fixed),
            (refusal(412, "PreconditionFailed"), AlreadyExists),
        ],
        ids=lambda value: _name(value) if isinstance(value, Exception) else None,
    )
    def test_a_put_is_sent_once_and_its_failure_names_the_remedy(self, error: Exception, expected: type[LogError]) -> None:
        client = ScriptedS3(error)
        with pytest.raises(expected, match="key") as raised:
            S3Store("bucket", client=client).put_if_absent("key", b"")
        assert type(raised.value) is expected
        assert raised.value.__cause__ is error
        assert client.requests == ["put_object"]
        assert client.attempts == {1}

    def test_a_head_that_is_refused_without_a_word_may_come_of_credentials_that_have_expired(self) -> None:
        with pytest.raises(Invalid, match="renew them"):
            S3Store("bucket", client=ScriptedS3(refusal(400, "400"))).head("key")

    @pytest.mark.parametrize("error", lost_answers, ids=_name)
    def test_a_read_whose_answer_was_lost_is_unavailable_and_sent_once(self, error: Exception) -> None:
        client = ScriptedS3(error, error, error, error, error, error)
        store = S3Store("bucket", client=client)
        for ask in (store.get, store.head, store.delete):
            with pytest.raises(Unavailable):
                ask("key")
        for ask in (store.list, store.list_folders, lambda prefix: store.abandoned_uploads(prefix, 0)):
            with pytest.raises(Unavailable):
                next(ask(""))
        assert len(client.requests) == 6
        assert client.attempts == {1}

    def test_only_the_requests_inside_an_upload_are_repeated_by_the_sdk(self) -> None:
        client = ScriptedS3({"UploadId": "1"}, {"ETag": "a"}, {"ETag": "b"}, {})
        store = S3Store("bucket", client=client)
        upload(store, "key", b"a", b"b")
        assert client.attempts == {1, part_attempts_max}

    def test_an_upload_that_has_gone_meanwhile_counts_as_freed(self) -> None:
        client = ScriptedS3(refusal(404, "NoSuchUpload"))
        S3Store("bucket", client=client).abort_upload(AbandonedUpload("key", "1", 0))
        assert client.requests == ["abort_multipart_upload"]

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
        self, error: Exception, expected: type[LogError]
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
        client = ScriptedS3(
            {"ContentLength": 7, "ChecksumCRC32C": "AAAAAA==-3", "LastModified": datetime(1970, 1, 2, tzinfo=UTC)}
        )
        assert S3Store("bucket", client=client).head("key") == ObjectMeta("key", 7, None, 24 * 3600 * 1000)

    def test_a_range_that_is_not_kept_to_is_not_read(self) -> None:
        client = ScriptedS3({"ContentLength": 10**9, "Body": io.BytesIO()})
        with pytest.raises(Invalid):
            S3Store("bucket", client=client).get_range("key", 0, 5)

    def test_an_object_has_no_more_parts_than_s3_allows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("remote.store.s3.store.parts_max", 2)
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
