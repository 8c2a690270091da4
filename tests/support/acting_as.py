"""Commands that run as one of the roles: what AWS would ask IAM about each request is asked of our policies before it is sent.

What goes over the wire is looked at, headers and all. With the bucket encrypted by a key, S3 asks KMS in the caller's name, so
that is asked of the policies, too.
"""

import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
from botocore.awsrequest import AWSResponse
from iam import Document, Grant, Request, allowed
from modules import BUCKET_KEY, DATA_KEY, REGION

from remote.store.s3 import store as s3
from remote.transforms import aws_kms

_ACTIONS = {
    "ListObjectsV2": "s3:ListBucket",
    "ListMultipartUploads": "s3:ListBucketMultipartUploads",
    "GetBucketVersioning": "s3:GetBucketVersioning",
    "GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "DeleteObject": "s3:DeleteObject",
}
"""Which right a request needs, from the Service Authorization Reference; of a request that is not here nothing is known."""

_KEY_ACTIONS = {
    "GetObject": ("kms:Decrypt",),
    "HeadObject": ("kms:Decrypt",),
    "PutObject": ("kms:GenerateDataKey",),
    "CreateMultipartUpload": ("kms:GenerateDataKey", "kms:Decrypt"),
    "UploadPart": ("kms:GenerateDataKey", "kms:Decrypt"),
    "CompleteMultipartUpload": ("kms:GenerateDataKey", "kms:Decrypt"),
}
_HEADERS = {
    "if-none-match": "s3:if-none-match",
    "x-amz-server-side-encryption": "s3:x-amz-server-side-encryption",
    "x-amz-server-side-encryption-aws-kms-key-id": "s3:x-amz-server-side-encryption-aws-kms-key-id",
    "x-amz-server-side-encryption-customer-algorithm": "s3:x-amz-server-side-encryption-customer-algorithm",
}


@dataclass
class Role:
    """What a caller may do, and what was asked of it: the grants that were needed and the requests that were refused."""

    documents: tuple[Document, ...]
    used: set[Grant] = field(default_factory=set)
    refused: list[Request] = field(default_factory=list)

    def may(self, requests: Iterable[Request]) -> bool:
        """Whether all of them are allowed."""
        for request in requests:
            if (grant := allowed(self.documents, request)) is None:
                self.refused.append(request)
                return False
            self.used.add(grant)
        return True

    @property
    def used_grants(self) -> set[tuple[str, str]]:
        """The actions and the resources that were needed, as `iam.grants` has them."""
        return {(g.sid, word) for g in self.used for word in (g.action, g.resource)}


@contextmanager
def acting_as(role: Role) -> Iterator[Role]:
    """Every client that the service makes meanwhile has no more rights than `role`."""
    with pytest.MonkeyPatch.context() as patch:
        plain_s3, plain_kms = s3.make_client, aws_kms._client

        def guarded_s3(config: Any) -> Any:
            client = plain_s3(config)
            client.meta.events.register("before-send.s3", lambda request, event_name, **_: _s3(role, event_name, request))
            client.meta.events.register("after-call.s3", lambda parsed, context, **_: _hide(role, parsed, context))
            return client

        def guarded_kms(key: str) -> Any:
            client = plain_kms(key)
            client.meta.events.register("before-send.kms", lambda request, event_name, **_: _kms(role, event_name, request))
            return client

        patch.setattr(s3, "make_client", guarded_s3)
        patch.setattr(aws_kms, "_client", guarded_kms)
        yield role


def s3_requests(operation: str, url: str, headers: dict[str, str]) -> list[Request]:
    """What AWS asks IAM about a request to S3 at a path-style address."""
    address = urlsplit(url)
    bucket, _, key = unquote(address.path).lstrip("/").partition("/")
    query = parse_qs(address.query, keep_blank_values=True)
    bucket_arn = f"arn:aws:s3:::{bucket}"
    context = {"aws:SecureTransport": "true", "s3:TlsVersion": "1.3"}
    context |= {_HEADERS[name.lower()]: value for name, value in headers.items() if name.lower() in _HEADERS}
    action = _ACTIONS[operation]
    if action == "s3:PutObject":
        # Parts and the beginning of an upload create no object yet, and take no condition.
        context["s3:ObjectCreationOperation"] = str(operation in ("PutObject", "CompleteMultipartUpload")).lower()
    if "prefix" in query:
        context["s3:prefix"] = query["prefix"][0]
    by_s3 = {"kms:ViaService": f"s3.{REGION}.amazonaws.com", "kms:EncryptionContext:aws:s3:arn": bucket_arn}
    asked = [Request(action, f"{bucket_arn}/{key}" if key else bucket_arn, context)]
    return asked + [Request(kms, BUCKET_KEY, by_s3) for kms in _KEY_ACTIONS.get(operation, ())]


def _s3(role: Role, event_name: str, request: Any) -> AWSResponse | None:
    headers = {str(name): _text(value) for name, value in request.headers.items()}
    if role.may(s3_requests(event_name.rpartition(".")[2], request.url, headers)):
        return None
    body = b"<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>"
    return _answer(request.url, 403, b"" if request.method == "HEAD" else body)


def _hide(role: Role, parsed: dict[str, Any], context: dict[str, Any]) -> None:
    """Who may not list is not told that an object is missing: S3 says 403 then. Such a request has no prefix."""
    metadata = parsed["ResponseMetadata"]
    if metadata["HTTPStatusCode"] == 404 and not _may_list(role, context):
        metadata["HTTPStatusCode"] = 403
        parsed["Error"] = {"Code": "AccessDenied", "Message": "Access Denied"}


def _may_list(role: Role, context: dict[str, Any]) -> bool:
    bucket = context["input_params"]["Bucket"]
    return allowed(role.documents, Request("s3:ListBucket", f"arn:aws:s3:::{bucket}")) is not None


def _kms(role: Role, event_name: str, request: Any) -> AWSResponse | None:
    asked = json.loads(request.body)
    context = {f"kms:EncryptionContext:{name}": value for name, value in asked.get("EncryptionContext", {}).items()}
    if role.may([Request(f"kms:{event_name.rpartition('.')[2]}", DATA_KEY, context)]):
        return None
    return _answer(request.url, 400, b'{"__type": "AccessDeniedException", "message": "not authorized"}')


def _answer(url: str, status: int, body: bytes) -> AWSResponse:
    class Raw(io.BytesIO):
        def stream(self, **_: object) -> Iterator[bytes]:
            yield self.read()

    return AWSResponse(url, status, {"content-type": "application/xml"}, Raw(body))


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
