"""An archive on S3, or on a server that speaks its protocol and honours If-None-Match.

Every body travels with its CRC-32C, computed here, so that neither `awscrt` nor a server's default is needed. A request is
sent once, but for those inside a multipart upload.
"""

import threading
from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from itertools import chain, islice
from typing import Any

from botocore.config import Config

from local_log.errors import BadRange, Invalid, LogError, NotFound, Unknown
from local_log.formats.checksum import crc32c as crc_of
from remote.store.api import AbandonedUpload, Body, BucketRule, ObjectMeta
from remote.store.s3.bucket import bucket_rules
from remote.store.s3.client import NO_S3, NoSuchUpload, make_client, once, repeating, translated
from remote.store.s3.repeated_gets import RepeatedGets
from remote.store.shared import as_ms, check_folder, check_key, check_prefix, checked

parts_max = 10_000
"""S3's limit on the parts of one object."""
parts_in_flight_max = 4
"""Parts of one upload that are held and sent at once."""
listing_page_max = 1_000
"""S3's limit on the keys in one answer."""

_making = threading.Lock()  # botocore makes no two clients at once; one for all stores, since a lock cannot be pickled


class S3Store:
    """Objects below `prefix` in `bucket`.

    `client` makes an S3 client from a botocore Config, for where the environment says by default.
    """

    def __init__(self, bucket: str, prefix: str = "", client: Callable[[Config], Any] | None = None) -> None:
        prefix = prefix.strip("/")
        if prefix:
            check_key(prefix)
        self.bucket = bucket
        self.prefix = f"{prefix}/" if prefix else ""
        self.url = f"s3://{bucket}/{prefix}"
        self._make = client
        self._clients: dict[Config, Any] = {}
        self._repeated: RepeatedGets | None = None

    def __getstate__(self) -> dict[str, Any]:
        """All but the clients, which the next process makes anew."""
        return {**self.__dict__, "_clients": {}, "_repeated": None}

    def get(self, key: str) -> bytes:
        """All bytes of an object. Raises NotFound, Unavailable, Invalid."""
        with translated(self.url, key):
            answer = self._client(once).get_object(**self._at(key))
            body: bytes = answer["Body"].read()
        if "ETag" not in answer and "LastModified" not in answer:
            raise Invalid(f"{self.url}: {key}: {NO_S3}")
        return body

    def get_range(self, key: str, start: int, end: int) -> Body:
        """Bytes `[start, end)`. Raises NotFound, Unavailable, Invalid, BadRange."""
        if not 0 <= start < end:
            # HTTP has no empty range, so that one is answered here.
            if start == end and 0 <= end <= self.head(key).size:
                return b""
            raise BadRange(f"{self.url}: {key} cannot have bytes [{start}, {end}); ask for a range inside it")
        with translated(self.url, key):
            client, repeated = self._client(once), self._repeated
            found = None if repeated is None else repeated.get(key, start, end)
            if found is not None:
                return found
            answer = client.get_object(**self._at(key), Range=f"bytes={start}-{end - 1}")
            # Looked at before the body is read: a server that ignores ranges would send all of a large object.
            if answer["ContentLength"] != end - start:
                answer["Body"].close()
                found = answer.get("ContentRange", f"{answer['ContentLength']} bytes")
                raise BadRange(f"{self.url}: {key} gave {found} for [{start}, {end}); ask for a range inside it")
            body: bytes = answer["Body"].read()
            if repeated is not None:
                repeated.remember(key)
            return body

    def head(self, key: str) -> ObjectMeta:
        """Size, time, and the CRC-32C if S3 has one of all its bytes. Raises NotFound, Unavailable, Invalid."""
        with translated(self.url, key):
            answer = self._client(once).head_object(**self._at(key), ChecksumMode="ENABLED")
        checksum = _decoded(answer.get("ChecksumCRC32C", ""))
        return ObjectMeta(key, answer["ContentLength"], checksum, as_ms(answer["LastModified"]))

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        """A request a page, made when its first object is asked for. Raises Unavailable, Invalid."""
        check_prefix(prefix)
        page = listing_page_max if limit is None else max(1, min(limit, listing_page_max))
        after = {"StartAfter": self.prefix + start_after} if start_after else {}
        found = (
            ObjectMeta(item["Key"].removeprefix(self.prefix), item["Size"], modified_ms=as_ms(item["LastModified"]))
            for answer in self._pages(prefix, MaxKeys=page, **after)
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
        """One conditional request. Raises AlreadyExists, Unknown, Unavailable (409 too), Invalid."""
        data = _as_bytes(body)
        request = {**self._at(key), "Body": data, "IfNoneMatch": "*", **_checksum(crc_of(data))}
        with translated(self.url, key, Unknown):
            self._client(once).put_object(**request)

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
        with translated(self.url, key):
            upload = self._client(repeating).create_multipart_upload(
                **self._at(key), ChecksumAlgorithm="CRC32C", ChecksumType="FULL_OBJECT"
            )
        request = {**self._at(key), "UploadId": upload["UploadId"]}
        try:
            sent = self._send_parts(key, request, chain((first, second), stream))
            with translated(self.url, key, Unknown):
                self._client(once).complete_multipart_upload(
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
        with suppress(NotFound), translated(self.url, key):
            self._client(once).delete_object(**self._at(key))

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        """Multipart uploads that were neither completed nor aborted. Raises Unavailable, Invalid."""
        check_prefix(prefix)
        request = {"Bucket": self.bucket, "Prefix": self.prefix + prefix}
        while True:
            with translated(self.url, prefix):
                answer = self._client(once).list_multipart_uploads(**request)
            for item in answer.get("Uploads", ()):
                if (started_ms := as_ms(item["Initiated"])) < before_ms:
                    yield AbandonedUpload(item["Key"].removeprefix(self.prefix), item["UploadId"], started_ms)
            if not answer.get("IsTruncated"):
                return
            request |= {"KeyMarker": answer["NextKeyMarker"], "UploadIdMarker": answer["NextUploadIdMarker"]}

    def abort_upload(self, upload: AbandonedUpload) -> None:
        """Frees its parts. Raises Unavailable, Invalid."""
        with suppress(NoSuchUpload), translated(self.url, upload.key):
            self._client(once).abort_multipart_upload(**self._at(upload.key), UploadId=upload.upload_id)

    def rules(self) -> Iterator[BucketRule]:
        """What the bucket's owner should know. Raises Unavailable."""
        return bucket_rules(self._client(once), self.bucket, self.prefix, self.url)

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
        with translated(self.url, key):
            answer = self._client(repeating).upload_part(**request, PartNumber=number, Body=data, **checksum)
        return {"PartNumber": number, "ETag": answer["ETag"], "ChecksumCRC32C": checksum["ChecksumCRC32C"]}

    def _abort(self, key: str, request: dict[str, Any], error: BaseException) -> None:
        """Frees what was sent. After an unknown completion too: if that has won, there is nothing left to abort."""
        try:
            with translated(self.url, key):
                self._client(repeating).abort_multipart_upload(**request)
        except LogError as failure:
            error.add_note(
                f"its parts remain as multipart upload {request['UploadId']} ({failure}); "
                "let the bucket's lifecycle rule for incomplete uploads remove them"
            )

    def _pages(self, prefix: str, **request: Any) -> Iterator[dict[str, Any]]:
        request = {"Bucket": self.bucket, "Prefix": self.prefix + prefix, **request}
        while True:
            with translated(self.url, prefix):
                answer = self._client(once).list_objects_v2(**request)
            if "Name" not in answer and "KeyCount" not in answer:
                raise Invalid(f"{self.url}: {NO_S3}")
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
                    client = (self._make or make_client)(config)
                    if self._make is None and config == once:  # a client that is given makes every request by itself
                        self._repeated = RepeatedGets(client)
                    self._clients[config] = client
        return self._clients[config]


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
