"""A store with a limit of bytes per second, for reads and writes of all its users together."""

import threading
from collections.abc import Iterable, Iterator
from typing import Any

from local_log.errors import Invalid
from remote.clock import Clock
from remote.store.api import AbandonedUpload, Body, ObjectMeta, ObjectStore

burst_s = 1.0
"""How many seconds' worth of bytes an idle store may move at once."""


class Throttled:
    """`inner`, at most `bytes_per_second`. What is longer than a burst waits before it starts, not in its midst.

    A copy in another process has a limit of its own. Raises Invalid for a limit below 1.
    """

    def __init__(self, inner: ObjectStore, bytes_per_second: float, clock: Clock) -> None:
        if not bytes_per_second >= 1:
            raise Invalid(f"{bytes_per_second} bytes a second move nothing; give 1 or more, or leave the limit out")
        self.inner = inner
        self.url = inner.url
        self._rate = bytes_per_second
        self._clock = clock
        self._start()

    def _start(self) -> None:
        self._turn = threading.Lock()
        self._seen_ms = self._clock.now_ms()
        self._paid_until_ms = self._seen_ms - burst_s * 1000

    def __getstate__(self) -> dict[str, Any]:
        """All but the lock and how much has been used."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_turn", "_seen_ms", "_paid_until_ms")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Starts with a full bucket."""
        self.__dict__.update(state)
        self._start()

    def get(self, key: str) -> bytes:
        """How long it is shows afterwards, so the next call waits for it."""
        self._wait_for(0)
        body = self.inner.get(key)
        self._reserve(len(body))
        return body

    def get_range(self, key: str, start: int, end: int) -> Body:
        self._wait_for(max(0, end - start))
        return self.inner.get_range(key, start, end)

    def head(self, key: str) -> ObjectMeta:
        return self.inner.head(key)

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        return self.inner.list(prefix, limit=limit, start_after=start_after)

    def list_folders(self, prefix: str) -> Iterator[str]:
        return self.inner.list_folders(prefix)

    def put_if_absent(self, key: str, body: Body) -> None:
        self._wait_for(memoryview(body).nbytes)
        self.inner.put_if_absent(key, body)

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        """Part by part."""
        self.inner.upload(key, self._in_time(parts), size=size, crc32c=crc32c)

    def delete(self, key: str) -> None:
        self.inner.delete(key)

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        return self.inner.abandoned_uploads(prefix, before_ms)

    def abort_upload(self, upload: AbandonedUpload) -> None:
        self.inner.abort_upload(upload)

    def _in_time(self, parts: Iterable[Body]) -> Iterator[Body]:
        for part in parts:
            self._wait_for(memoryview(part).nbytes)
            yield part

    def _wait_for(self, count: int) -> None:
        wait_s = self._reserve(count)
        if wait_s > 0:
            self._clock.sleep(wait_s)

    def _reserve(self, count: int) -> float:
        """Takes `count` bytes out of the bucket, into debt where it is empty; gives the seconds until that is paid.

        The bucket is the time up to which bytes are paid for: that of a full one lies a burst back.
        """
        with self._turn:
            now_ms = self._clock.now_ms()
            if now_ms < self._seen_ms:
                # The clock was set back; a debt of seconds must not become one of hours.
                self._paid_until_ms -= self._seen_ms - now_ms
            self._seen_ms = now_ms
            self._paid_until_ms = max(self._paid_until_ms, now_ms - burst_s * 1000) + count / self._rate * 1000
            return (self._paid_until_ms - now_ms) / 1000
