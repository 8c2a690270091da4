"""GETs of further ranges of an object: the request that botocore made for the first one, again, signed for another range.

To look up the endpoint, check the parameters, and take an answer apart costs botocore a millisecond of CPU each time, more than
to copy the megabytes of a range. Credentials, connections, proxies and certificates are botocore's here as well. Whatever is not
the range that was asked for is left to botocore, which asks once more and knows what the answer means.
"""

import threading
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from botocore import exceptions as sdk
from botocore.awsrequest import AWSRequest
from botocore.response import StreamingBody
from botocore.utils import get_environ_proxies

from local_log.formats.checksum import crc32c as crc_of
from remote.lru_cache import LruCache
from remote.store.api import Body
from remote.store.s3.plain_connections import PlainConnections

REQUESTS_MAX: Final = 1_000
"""Objects whose request is remembered, about 4 KB each."""
PLAIN_BYTES_MIN: Final = 256 << 10
"""Larger bodies are received without botocore's connections, where nothing but TCP is between us and the server."""
_OPERATION: Final = "GetObject"
_CHECKSUM: Final = "x-amz-checksum-crc32c"


class _Made(NamedTuple):
    """A request as botocore made it, not yet signed, and what signs it."""

    url: str
    headers: Mapping[str, str]
    auth_path: str | None
    context: Mapping[str, Any]
    signer: Any


class RepeatedGets:
    """Of one client, for many threads."""

    def __init__(self, client: Any) -> None:
        config = client.meta.config
        self._session = client._endpoint.http_session  # botocore has no other name for it
        self._plain = PlainConnections(config.connect_timeout, config.read_timeout, config.max_pool_connections)
        proxies = get_environ_proxies(client.meta.endpoint_url) if config.proxies is None else config.proxies
        self._has_proxy = bool(proxies.get("http"))
        """As botocore finds it out, when it makes a client."""
        self._made: LruCache[str, _Made] = LruCache(REQUESTS_MAX)
        self._last = threading.local()
        client.meta.events.register_last(f"before-sign.s3.{_OPERATION}", self._signs)

    def remember(self, key: str) -> None:
        """The last request of this thread was answered with a range of the object."""
        self._made.put(key, self._last.made)

    def get(self, key: str, start: int, end: int) -> Body | None:
        """The bytes `[start, end)`; None if no request is remembered or its answer is another. Raises the SDK's errors."""
        made = self._made.get(key)
        if made is None:
            return None
        request = AWSRequest("GET", made.url, {**made.headers}, auth_path=made.auth_path, stream_output=True)
        request.headers.replace_header("Range", f"bytes={start}-{end - 1}")
        request.context.update(made.context)
        made.signer.sign(_OPERATION, request)
        found = self._answer(request.prepare(), end - start)
        if found is None:
            self._made.forget(key)
            return None
        body, checksum = found
        if checksum and "-" not in checksum and int.from_bytes(b64decode(checksum), "big") != crc_of(body):
            raise sdk.FlexibleChecksumError(error_msg=f"the bytes [{start}, {end}) are not those of their checksum {checksum}")
        return body

    def _answer(self, request: Any, size: int) -> tuple[Body, str] | None:
        """The body of `size` bytes and its checksum, None for any other answer."""
        if size >= PLAIN_BYTES_MIN and request.url.startswith("http://") and not self._has_proxy:
            found = self._plain.get(request.url, request.headers, size)
            return None if found is None else (found.body, found.headers.get(_CHECKSUM, ""))
        answer = self._session.send(request)
        if answer.status_code != 206 or answer.headers.get("Content-Length") != str(size):
            answer.raw.close()
            return None
        return StreamingBody(answer.raw, size).read(), answer.headers.get(_CHECKSUM, "")

    def _signs(self, request: Any, request_signer: Any, **_: Any) -> None:
        self._last.made = _Made(request.url, dict(request.headers), request.auth_path, dict(request.context), request_signer)
