"""An archive on S3, or on a server that speaks its protocol and honours If-None-Match.

Two boto3 clients. One retries by itself and serves what may be repeated: reads, listings, deletions, the parts of an
upload. The other sends once, for what If-None-Match guards: were the SDK to repeat a put whose answer was lost, the
caller would hear "taken" of its own object and never learn that a try went unanswered. Every body travels with its
CRC-32C, computed here, so that neither `awscrt` nor a server's default is needed.

Credentials, region and endpoint are boto3's own affair (AWS_PROFILE, AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, …).
"""

import threading
import time
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from itertools import chain, islice
from typing import Any

import boto3.session
from botocore import exceptions as sdk
from botocore.config import Config

from local_log.formats.checksum import crc32c as crc_of
from remote.errors import AlreadyExists, Invalid, NotFound, RemoteError, Unavailable, Unknown
from remote.object_store import Body, ObjectMeta
from remote.stores.shared import check_folder, check_key, check_prefix, checked

parts_max = 10_000
"""S3's limit on the parts of one object."""
parts_in_flight_max = 4
"""Parts of one upload that are held and sent at once."""
listing_page_max = 1_000
"""S3's limit on the keys in one answer."""
connections_max = 32
read_attempts_max = 5
conflict_attempts_max = 6
"""How often a conditional put is sent while S3 answers 409: another one on the same key is still under way."""
conflict_wait_s = 0.05
"""The wait after the first 409; each next one is twice as long."""
connect_timeout_s = 5
read_timeout_s = 60
region_default = "us-east-1"

_repeating = Config(
    retries={"mode": "standard", "total_max_attempts": read_attempts_max},
    connect_timeout=connect_timeout_s,
    read_timeout=read_timeout_s,
    max_pool_connections=connections_max,
)
_once = _repeating.merge(Config(retries={"mode": "standard", "total_max_attempts": 1}))

_not_applied = {"RequestTimeout", "BadDigest", "XAmzContentSHA256Mismatch", "NoSuchUpload", "OperationAborted"}
"""Refusals below 500 of a request that might pass when it is made again: nothing was changed."""
_never_sent = (sdk.EndpointConnectionError, sdk.ConnectTimeoutError, sdk.ProxyConnectionError)
_broken_off = (sdk.HTTPClientError, sdk.ConnectionError, sdk.IncompleteReadError, sdk.FlexibleChecksumError)
_remedies = {
    "NoSuchBucket": "make the bucket, or correct its name",
    "AuthorizationHeaderMalformed": "set AWS_DEFAULT_REGION to the bucket's region",
    "PermanentRedirect": "set AWS_DEFAULT_REGION to the bucket's region",
    "RequestTimeTooSkewed": "set this machine's clock",
}
_remedies_by_status = {
    403: "check the credentials, and that they have s3:GetObject, s3:PutObject, s3:DeleteObject, "
    "s3:AbortMultipartUpload and s3:ListBucket (without the last, S3 says 403 of a missing object too)",
    501: "use a store that knows If-None-Match and CRC32C",
}

_making = threading.Lock()  # boto3 makes no two clients at once; one for all stores, since a lock cannot be pickled


class _Busy(Unavailable):
    """409: another conditional request on this key is under way; ours changed nothing."""


class S3Store:
    """Objects below `prefix` in `bucket`.

    `client` makes an S3 client from a botocore Config, boto3's own by default. `sleep` takes seconds.
    """

    def __init__(
        self,
        bucket: str,
        prefix: str = "",
        client: Callable[[Config], Any] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        prefix = prefix.strip("/")
        if prefix:
            check_key(prefix)
        self.bucket = bucket
        self.prefix = f"{prefix}/" if prefix else ""
        self.url = f"s3://{bucket}/{prefix}"
        self._make = client
        self._sleep = sleep
        self._clients: dict[Config, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        """All but the clients, which the next process makes anew."""
        return {**self.__dict__, "_clients": {}}

    def get(self, key: str) -> bytes:
        """The whole object. Raises NotFound, Unavailable, Invalid."""
        with self._translated(key):
            body: bytes = self._client(_repeating).get_object(**self._at(key))["Body"].read()
            return body

    def get_range(self, key: str, start: int, end: int) -> bytes:
        """Bytes `[start, end)`. Raises NotFound, Unavailable, Invalid (a range that the object does not have)."""
        if not 0 <= start < end:
            # HTTP has no empty range, so that one is answered here.
            if start == end and 0 <= end <= self.head(key).size:
                return b""
            raise Invalid(f"{self.url}: {key} cannot have bytes [{start}, {end}); ask for a range inside it")
        with self._translated(key):
            answer = self._client(_repeating).get_object(**self._at(key), Range=f"bytes={start}-{end - 1}")
            # Looked at before the body is read: a server that ignores ranges would send all of a large object.
            if answer["ContentLength"] != end - start:
                answer["Body"].close()
                found = answer.get("ContentRange", f"{answer['ContentLength']} bytes")
                raise Invalid(f"{self.url}: {key} gave {found} for [{start}, {end}); ask for a range inside it")
            body: bytes = answer["Body"].read()
            return body

    def head(self, key: str) -> ObjectMeta:
        """Size, and the CRC-32C if S3 holds one of the whole object. Raises NotFound, Unavailable, Invalid."""
        with self._translated(key):
            answer = self._client(_repeating).head_object(**self._at(key), ChecksumMode="ENABLED")
        return ObjectMeta(key, answer["ContentLength"], _decoded(answer.get("ChecksumCRC32C", "")))

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[ObjectMeta]:
        """A request a page, made when its first object is asked for. Raises Unavailable, Invalid."""
        check_prefix(prefix)
        page = listing_page_max if limit is None else max(1, min(limit, listing_page_max))
        found = (
            ObjectMeta(item["Key"].removeprefix(self.prefix), item["Size"])
            for answer in self._pages(prefix, MaxKeys=page)
            for item in answer.get("Contents", ())
            if not item["Key"].endswith("/")  # consoles mark a "folder" so
        )
        return islice(found, limit)

    def list_folders(self, prefix: str) -> Iterator[str]:
        """One request for a thousand folders. Raises Unavailable, Invalid."""
        check_folder(prefix)
        start = len(self.prefix + prefix)
        return (
            name
            for answer in self._pages(prefix, Delimiter="/")
            for item in answer.get("CommonPrefixes", ())
            if (name := item["Prefix"][start:-1])
        )

    def put_if_absent(self, key: str, body: Body) -> None:
        """One conditional request, and again after a 409. Raises AlreadyExists, Unknown, Unavailable, Invalid."""
        data = _as_bytes(body)
        request = {**self._at(key), "Body": data, "IfNoneMatch": "*", **_checksum(crc_of(data))}
        for attempt in range(conflict_attempts_max):
            if attempt:
                self._sleep(conflict_wait_s * 2 ** (attempt - 1))
            with suppress(_Busy), self._translated(key, Unknown):
                self._client(_once).put_object(**request)
                return
        raise Unavailable(f"{self.url}: {key}: 409 to each of {conflict_attempts_max} puts; try again later")

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        """One request for one part, else a multipart upload of which a failure leaves nothing.

        Raises AlreadyExists, Unknown, Unavailable, Invalid, and Corrupt when the parts are not as promised.
        """
        stream = checked(key, parts, size, crc32c)
        first = next(stream, b"")
        second = next(stream, None)
        if second is None:
            self.put_if_absent(key, first)
            return
        with self._translated(key):
            upload = self._client(_repeating).create_multipart_upload(
                **self._at(key), ChecksumAlgorithm="CRC32C", ChecksumType="FULL_OBJECT"
            )
        request = {**self._at(key), "UploadId": upload["UploadId"]}
        try:
            sent = self._send_parts(key, request, chain((first, second), stream))
            with self._translated(key, Unknown):
                self._client(_once).complete_multipart_upload(
                    **request,
                    MultipartUpload={"Parts": sent},
                    ChecksumCRC32C=_encoded(crc32c),
                    ChecksumType="FULL_OBJECT",
                    IfNoneMatch="*",
                )
        except BaseException as error:
            self._abort(key, request, error)
            raise

    def delete(self, key: str) -> None:
        """Removes the object, if it is there. Raises Unavailable, Invalid."""
        with suppress(NotFound), self._translated(key):
            self._client(_repeating).delete_object(**self._at(key))

    def _send_parts(self, key: str, request: dict[str, Any], parts: Iterable[Body]) -> tuple[dict[str, Any], ...]:
        """Sends a few parts at a time, and returns or raises only when none is under way any more."""
        sent: deque[dict[str, Any]] = deque()
        flying: deque[Future[dict[str, Any]]] = deque()
        with ThreadPoolExecutor(parts_in_flight_max, thread_name_prefix="s3-part") as pool:
            try:
                for number, part in enumerate(parts, 1):
                    if len(flying) == parts_in_flight_max:
                        sent.append(flying.popleft().result())
                    flying.append(pool.submit(self._send_part, key, request, number, part))
                sent.extend(future.result() for future in flying)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        return tuple(sent)

    def _send_part(self, key: str, request: dict[str, Any], number: int, part: Body) -> dict[str, Any]:
        if number > parts_max:
            raise Invalid(f"{self.url}: {key} has more than {parts_max} parts; send larger ones")
        data = _as_bytes(part)
        checksum = _checksum(crc_of(data))
        with self._translated(key):
            answer = self._client(_repeating).upload_part(**request, PartNumber=number, Body=data, **checksum)
        return {"PartNumber": number, "ETag": answer["ETag"], "ChecksumCRC32C": checksum["ChecksumCRC32C"]}

    def _abort(self, key: str, request: dict[str, Any], error: BaseException) -> None:
        """Frees what was sent. After an unknown completion too: if that has won, there is nothing left to abort."""
        try:
            with self._translated(key):
                self._client(_repeating).abort_multipart_upload(**request)
        except RemoteError as failure:
            error.add_note(
                f"its parts remain as multipart upload {request['UploadId']} ({failure}); "
                "let the bucket's lifecycle rule for incomplete uploads remove them"
            )

    def _pages(self, prefix: str, **request: Any) -> Iterator[dict[str, Any]]:
        request = {"Bucket": self.bucket, "Prefix": self.prefix + prefix, **request}
        while True:
            with self._translated(prefix):
                answer = self._client(_repeating).list_objects_v2(**request)
            yield answer
            if not answer.get("IsTruncated"):
                return
            request["ContinuationToken"] = answer["NextContinuationToken"]

    def _at(self, key: str) -> dict[str, str]:
        check_key(key)
        return {"Bucket": self.bucket, "Key": self.prefix + key}

    def _client(self, config: Config) -> Any:
        if config not in self._clients:
            with _making:
                if config not in self._clients:
                    self._clients[config] = (self._make or _client_of_boto3)(config)
        return self._clients[config]

    @contextmanager
    def _translated(self, key: str, otherwise: type[RemoteError] = Unavailable) -> Iterator[None]:
        """Turns the SDK's errors into ours; `otherwise` is for a request that may have been applied."""
        where = f"{self.url}: {key}"
        try:
            yield
        except sdk.ClientError as error:
            raise _refusal(error.response, where, key, otherwise) from error
        except _never_sent as error:
            raise Unavailable(f"{where}: {error}") from error
        except _broken_off as error:
            raise otherwise(f"{where}: {error}") from error
        except (sdk.CredentialRetrievalError, sdk.MetadataRetrievalError) as error:
            raise Unavailable(f"{where}: {error}") from error
        except sdk.BotoCoreError as error:
            raise Invalid(f"{where}: {error}; correct the address, the credentials or boto3's settings") from error


def _refusal(response: dict[str, Any], where: str, key: str, otherwise: type[RemoteError]) -> RemoteError:
    code = response.get("Error", {}).get("Code", "")
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    text = f"{where}: {status} {code}: {response.get('Error', {}).get('Message', '')}"
    if status == 412:
        return AlreadyExists(key)
    if status == 409:
        return _Busy(text)
    if code in _not_applied or status == 429:
        return Unavailable(text)
    if status == 404 and code != "NoSuchBucket":
        # A conditional write says so when a deletion of its key crosses it.
        return Unavailable(text) if otherwise is Unknown else NotFound(text)
    if status >= 500 and status != 501:
        return otherwise(text)
    remedy = _remedies.get(code) or _remedies_by_status.get(status, "correct the address, the key or the range")
    return Invalid(f"{text}; {remedy}")


def _client_of_boto3(config: Config) -> Any:
    session = boto3.session.Session()
    region = session.region_name or region_default
    try:
        client = session.client("s3", region_name=region, config=config)
        if ".amazonaws." in client.meta.endpoint_url:
            return client
        # Elsewhere than at AWS a bucket seldom has a host name of its own.
        return session.client("s3", region_name=region, config=config.merge(Config(s3={"addressing_style": "path"})))
    except ValueError as error:
        raise Invalid(f"{error}; give AWS_ENDPOINT_URL as http://host:port") from error


def _checksum(crc: int) -> dict[str, str]:
    return {"ChecksumAlgorithm": "CRC32C", "ChecksumCRC32C": _encoded(crc)}


def _encoded(crc: int) -> str:
    return b64encode(crc.to_bytes(4, "big")).decode()


def _decoded(checksum: str) -> int | None:
    """None for a checksum of checksums, which S3 writes with the number of parts behind a hyphen."""
    if not checksum or "-" in checksum:
        return None
    return int.from_bytes(b64decode(checksum), "big")


def _as_bytes(body: Body) -> bytes:
    return body if isinstance(body, bytes) else bytes(body)
