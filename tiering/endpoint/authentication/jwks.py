"""The keys of an identity provider, a JSON Web Key Set (RFC 7517): from a file, or from an address that is asked now and then."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import urlsplit

from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from local_log.disk import Disk
from local_log.errors import Corrupt, Invalid, LogError, Unavailable
from remote.clock import Time
from tiering.endpoint.addresses import is_loopback
from tiering.endpoint.watched_file import ChangingFile

BYTES_MAX: Final = 1 << 20
TIMEOUT_S: Final = 10.0
AGAIN_MS: Final = 10_000
"""A provider is asked for a key that is not known, or after a failure, so much later at the soonest."""


def read_key_set(data: bytes, place: str) -> KeySet:
    """The keys. Raises Corrupt."""
    try:
        return KeySet.import_key_set(json.loads(data))
    except (JoseError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
        raise Corrupt(f"not a set of JSON web keys ({type(e).__name__})", file=place) from e


@dataclass(slots=True)
class FileKeys:
    """The keys of a file, which is read again when it has changed."""

    disk: Disk
    path: str
    _file: ChangingFile[KeySet] = field(init=False)

    def __post_init__(self) -> None:
        self._file = ChangingFile(self.disk, self.path, lambda data: read_key_set(data, self.path), BYTES_MAX)

    def keys(self, kid: object) -> KeySet:
        """All keys. Raises LogError."""
        return self._file.now()


@dataclass(slots=True)
class FetchedKeys:
    """The keys at an address, fetched again after `refresh_ms` and for a key that is not known."""

    url: str
    clock: Time
    refresh_ms: int
    report: Callable[[str], object]
    fetch: Callable[[str], bytes]
    _keys: KeySet | None = None
    _asked_ms: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def keys(self, kid: object) -> KeySet:
        """All keys; those of before while another thread fetches them. Raises LogError if they never were, and cannot be now.

        A provider may take its time, and the threads that answer requests are few.
        """
        known = self._keys
        if not self._lock.acquire(blocking=known is None):
            assert known is not None
            return known
        try:
            since_ms = self.clock.hi_res_clock_ms() - self._asked_ms
            is_known = self._keys is not None and (kid is None or any(key.kid == kid for key in self._keys))
            if self._keys is None or since_ms >= self.refresh_ms or (not is_known and since_ms >= AGAIN_MS):
                self._fetch()
            if self._keys is None:
                raise Unavailable(f"the keys at {self.url} could not be fetched yet")
            return self._keys
        finally:
            self._lock.release()

    def _fetch(self) -> None:
        if self._asked_ms and self.clock.hi_res_clock_ms() - self._asked_ms < AGAIN_MS:
            return
        try:
            self._keys = read_key_set(self.fetch(self.url), self.url)
        except LogError as e:
            if self._keys is None:
                raise
            self.report(f"tokens are checked with the keys of before: {e}")
        finally:
            self._asked_ms = self.clock.hi_res_clock_ms()  # the answer may have taken as long as that


def fetch(url: str) -> bytes:
    """What is at the address; it follows no redirection. Raises Unavailable."""
    parts = urlsplit(url)
    connection_of: Any = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = connection_of(parts.hostname, parts.port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", parts._replace(scheme="", netloc="", fragment="").geturl() or "/")
        answer = connection.getresponse()
        data: bytes = answer.read(BYTES_MAX + 1)
    except (OSError, HTTPException, ValueError) as e:
        raise Unavailable(f"{url}: {e}") from e
    finally:
        connection.close()
    if answer.status != 200 or len(data) > BYTES_MAX:
        raise Unavailable(f"{url} answers {answer.status} with {len(data)} bytes; expected 200 and {BYTES_MAX} bytes at most")
    return data


def check_url(url: str) -> None:
    """Raises Invalid for an address from which no keys should be taken."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and is_loopback(parts.hostname or ""):
        return
    raise Invalid(f"{url!r}: keys are taken from an https:// address, from http:// on this host, or from a file:///path")
