"""A store that counts what is asked of it: calls, failures, bytes and seconds, by verb."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from remote.clock import Stopwatch
from remote.errors import AlreadyExists, NotFound
from remote.object_store import AbandonedUpload, Body, ObjectMeta, ObjectStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Counted:
    """What has been asked of a store by one verb. `bytes` are those of objects; a failed call counts those that it had moved.

    A call is one of the protocol's: an upload counts once, whatever its parts, and a listing once, whatever its pages.
    `failures` are calls that ended with an error; NotFound and AlreadyExists are answers and count as none.
    """

    calls: int = 0
    failures: int = 0
    bytes: int = 0
    seconds: float = 0.0


class Meter:
    """Adds up, for any number of stores and threads. A copy in another process starts at nothing."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._counted: dict[str, Counted] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return Meter, ()

    def add(self, verb: str, size: int, seconds: float, *, failed: bool) -> None:
        """Counts one call that has ended."""
        with self._turn:
            was = self._counted.get(verb, Counted())
            self._counted[verb] = Counted(was.calls + 1, was.failures + failed, was.bytes + size, was.seconds + seconds)

    def snapshot(self) -> dict[str, Counted]:
        """What has been counted up to now, by verb, in the verbs' order."""
        with self._turn:
            return dict(sorted(self._counted.items()))


class _Call:
    """One call under way: the bytes that it has moved, and the seconds in which the store was not the one to wait for."""

    __slots__ = ("away_s", "bytes")

    def __init__(self) -> None:
        self.bytes = 0
        self.away_s = 0.0


class Instrumented:
    """`inner`, with what is asked of it told to `meter`."""

    def __init__(self, inner: ObjectStore, meter: Meter, stopwatch: Stopwatch) -> None:
        self.inner = inner
        self.url = inner.url
        self.meter = meter
        self._stopwatch = stopwatch

    def get(self, key: str) -> bytes:
        """As the inner store's."""
        with self._counted("get") as call:
            body = self.inner.get(key)
            call.bytes = len(body)
            return body

    def get_range(self, key: str, start: int, end: int) -> Body:
        """As the inner store's."""
        with self._counted("get_range") as call:
            body = self.inner.get_range(key, start, end)
            call.bytes = len(body)
            return body

    def head(self, key: str) -> ObjectMeta:
        """As the inner store's."""
        with self._counted("head"):
            return self.inner.head(key)

    def list(self, prefix: str, *, limit: int | None = None, start_after: str = "") -> Iterator[ObjectMeta]:
        """As the inner store's; counted when it ends or is given up, without the time that its reader takes."""
        return self._items("list", lambda: self.inner.list(prefix, limit=limit, start_after=start_after))

    def list_folders(self, prefix: str) -> Iterator[str]:
        """As the inner store's; counted as `list` is."""
        return self._items("list_folders", lambda: self.inner.list_folders(prefix))

    def put_if_absent(self, key: str, body: Body) -> None:
        """As the inner store's."""
        with self._counted("put_if_absent") as call:
            self.inner.put_if_absent(key, body)
            call.bytes = memoryview(body).nbytes

    def upload(self, key: str, parts: Iterable[Body], *, size: int, crc32c: int) -> None:
        """As the inner store's; counted without the time in which its parts are read."""
        with self._counted("upload") as call:
            self.inner.upload(key, self._read(parts, call), size=size, crc32c=crc32c)

    def delete(self, key: str) -> None:
        """As the inner store's."""
        with self._counted("delete"):
            self.inner.delete(key)

    def abandoned_uploads(self, prefix: str, before_ms: int) -> Iterator[AbandonedUpload]:
        """As the inner store's; counted as `list` is."""
        return self._items("abandoned_uploads", lambda: self.inner.abandoned_uploads(prefix, before_ms))

    def abort_upload(self, upload: AbandonedUpload) -> None:
        """As the inner store's."""
        with self._counted("abort_upload"):
            self.inner.abort_upload(upload)

    def _read(self, parts: Iterable[Body], call: _Call) -> Iterator[Body]:
        rest = iter(parts)
        while True:
            asked_s = self._stopwatch()
            part = next(rest, None)
            call.away_s += self._stopwatch() - asked_s
            if part is None:
                return
            yield part
            call.bytes += memoryview(part).nbytes

    def _items(self, verb: str, ask: Callable[[], Iterator[T]]) -> Iterator[T]:
        with self._counted(verb) as call:
            for item in ask():
                given_s = self._stopwatch()
                try:
                    yield item
                finally:
                    call.away_s += self._stopwatch() - given_s

    @contextmanager
    def _counted(self, verb: str) -> Iterator[_Call]:
        call, failed, started_s = _Call(), False, self._stopwatch()
        try:
            yield call
        except Exception as error:
            failed = not isinstance(error, NotFound | AlreadyExists)
            raise
        finally:
            self.meter.add(verb, call.bytes, self._stopwatch() - started_s - call.away_s, failed=failed)
